#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The Python of the tests: a virtual environment with PyTorch, made once, and banyan's own package, built anew where its files changed.

Usage: python_venv.py make            makes the environment where it is not there, or is not this one; prints nothing where it is
       python_venv.py ready           status 0 where it is
       python_venv.py package FOLDER  installs banyan_ckpt there, for PYTHONPATH
       python_venv.py wheels FOLDER   makes wheels of banyan_ckpt there, for the Pythons of this host; prints those that it leaves out"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
HOME = Path(os.environ.get("BANYAN_DEPS") or REPOSITORY / "build" / "deps") / "venv"
TORCH = "torch==2.13.0"
# Beside it, without what it has brought: each of these would ask for a torch or a cmake of its own.
OTHERS = ["numpy==2.4.6", "safetensors==0.8.0", "torchdata==0.11.0", "nanobind==3.1.0", "scikit-build-core==1.1.2", "packaging", "pathspec",
          "pytest==9.2.0", "pluggy", "iniconfig", "pygments", "mypy==2.4.1", "mypy_extensions", "ast-serialize", "librt"]
SOURCES = [REPOSITORY / "ckptd" / "python", REPOSITORY / "ckptd" / "client" / "include" / "banyan" / "ckpt.h"]


class Failed(Exception):
    """A command that failed; its last words."""


def run(*words, **named):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **named)
    if done.returncode != 0:
        lines = [line for line in (done.stderr + done.stdout).strip().splitlines() if "error" in line.lower()]
        raise Failed(f"`{' '.join(map(str, words[:4]))} ...` failed: {lines[-1] if lines else done.returncode}")
    return done.stdout


def wanted():
    python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    return python, "\n".join([python, run(python, "--version").strip(), TORCH, *OTHERS]) + "\n"


def is_ready():
    stamp = HOME / ".stamp"
    return stamp.exists() and stamp.read_text() == wanted()[1]


def make():
    """Raises Failed where the packages cannot be had."""
    HOME.parent.mkdir(parents=True, exist_ok=True)
    with open(HOME.parent / ".venv.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_ready():
            return
        python, stamp = wanted()
        shutil.rmtree(HOME, ignore_errors=True)
        run(python, "-m", "venv", HOME)
        pip = (HOME / "bin" / "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check")
        run(*pip, TORCH)
        run(*pip, "--no-deps", *OTHERS)
        (HOME / ".stamp").write_text(stamp)


def digest():
    """Of all that the package is made of."""
    told = hashlib.sha256((HOME / ".stamp").read_bytes())
    for source in SOURCES:
        for file in sorted(source.rglob("*")) if source.is_dir() else [source]:
            parts = file.relative_to(REPOSITORY).parts
            if file.is_file() and "__pycache__" not in parts and "build" not in parts:
                told.update(str(file.relative_to(REPOSITORY)).encode() + b"\0" + file.read_bytes())
    return told.hexdigest()


def package(folder):
    """banyan_ckpt in `folder`, built by pip as a user builds it, with the tools of the environment. Raises Failed."""
    make()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / f".{folder.name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp, now = folder / ".stamp", digest()
        if stamp.exists() and stamp.read_text() == now:
            return
        shutil.rmtree(folder, ignore_errors=True)
        run(HOME / "bin" / "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--no-build-isolation", "--no-deps",
            "--no-index", "--target", folder, SOURCES[0], env=build_environment())
        stamp.write_text(now)


def build_environment():
    """The distribution's cmake and ninja, not a copy that comes first in the user's PATH."""
    return {**os.environ, "PATH": f"{HOME}/bin:/usr/bin:" + os.environ.get("PATH", "")}


def wheels(folder):
    """A wheel for each Python that is there: by the environment's tools for its own, by those that pip fetches for others. Raises Failed."""
    make()
    own = run(HOME / "bin" / "python", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    common = ("wheel", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps", "--wheel-dir", folder)
    run(HOME / "bin" / "pip", *common, "--no-build-isolation", "--no-index", SOURCES[0], env=build_environment())
    # One wheel is for 3.12 and all later ones: the first that is there makes it.
    for names in (("3.10",), ("3.11",), ("3.12", "3.13", "3.14")):
        found = next((python for name in names if (python := interpreter(name))), None)
        if own in names:
            continue
        if found is None:
            print(f"left out: the wheel for Python {names[0]}{' and later' if len(names) > 1 else ''} (python{names[0]} is not installed)")
        else:
            run(found, "-m", "pip", *common, SOURCES[0], env={**os.environ, "PATH": "/usr/bin:" + os.environ.get("PATH", "")})


def interpreter(version):
    """One of that version, such as 3.12, or None: in the user's PATH, or of pyenv."""
    known = [shutil.which(f"python{version}"), *sorted(Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python{version}"))]
    for python in known:  # a shim of pyenv's may stand for nothing
        if python and subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0:
            return str(python)
    return None


def main():
    words = sys.argv[1:]
    try:
        if words == ["make"]:
            make()
        elif words == ["ready"]:
            return 0 if is_ready() else 1
        elif len(words) == 2 and words[0] == "package":
            package(Path(words[1]).absolute())
        elif len(words) == 2 and words[0] == "wheels":
            wheels(Path(words[1]).absolute())
        else:
            print(__doc__, file=sys.stderr)
            return 2
    except (Failed, OSError) as error:
        print(f"python_venv.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

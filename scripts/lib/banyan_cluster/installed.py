# SPDX-License-Identifier: BSD-3-Clause
"""The installed tree of a build: what `cmake --install` puts below DESTDIR, as a package would. Trees are kept in the build's own
folder, each under the fingerprint of what it was made from; one that is no longer of use goes when no cluster runs on it."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

from . import ClusterError

PREFIX = "/usr"
FOLDERS = ("bin", "libexec/banyan")
LOCK = "in-use"  # shared by each cluster that runs on the tree
SLURM = "slurm"  # a link to the root of another Slurm, where the build was made for one


class Tree:
    """Where things lie in an installed tree."""

    def __init__(self, root):
        self.root = Path(root)

    @property
    def usr(self):
        return self.root / PREFIX[1:]

    @property
    def slurm(self):
        """The root of the Slurm that the build was made for: of this system, or of a tree that CMake was given."""
        link = self.root / SLURM
        if not link.is_symlink():
            return Path("/")
        if not (link / "usr/sbin/slurmctld").exists():
            raise ClusterError(f"the build was made for the Slurm in {link.readlink()}, where there is no usr/sbin/slurmctld: install it there "
                               "again, or take another build")
        return link.readlink()

    def program(self, name):
        """The program's file in the tree, or None. On a cluster it is /usr/bin/NAME or /usr/libexec/banyan/NAME."""
        for folder in FOLDERS:
            if (self.usr / folder / name).exists():
                return self.usr / folder / name
        return None

    def plugin(self, name):
        """The plugin's path below the root, as a string that begins with /usr, or None."""
        for file in self.usr.glob(f"lib*/**/{name}"):
            return f"/{file.relative_to(self.root)}"
        return None


def of(build):
    """The tree of a build as it is now, made where there is none."""
    build = Path(build).absolute()
    if not (build / "cmake_install.cmake").exists():
        raise ClusterError(f"{build} is no build: scripts/build makes one; --build names another")
    trees = build / "installed"
    root = trees / fingerprint(build)
    if not root.exists():
        trees.mkdir(exist_ok=True)
        with open(trees / "lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            root = trees / fingerprint(build)  # the build may have gone on while we waited
            if not root.exists():
                install(build, root)
                remove_others(trees, root)
    return Tree(root)


def program(build, name):
    """A program as it is installed. For those who need no cluster."""
    file = of(build).program(name)
    if file is None:
        raise ClusterError(f"{build} installs no {name}")
    return file


def install(build, root):
    fresh = root.with_suffix(".new")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        # Others than the one who installs use what is installed.
        run = subprocess.run(["cmake", "--install", str(build), "--prefix", PREFIX], env={**os.environ, "DESTDIR": str(fresh)},
                             capture_output=True, text=True, umask=0o022)
        if run.returncode != 0:
            wrong = " ".join(line.strip() for line in run.stderr.splitlines() if line.strip())[:600]
            raise ClusterError(f"{build} cannot be installed, as a cluster needs it: {wrong}\n"
                               "scripts/build builds what is missing; --build names another build")
        (fresh / LOCK).touch()
        if slurm := slurm_of(build):
            (fresh / SLURM).symlink_to(slurm)
        fresh.rename(root)
    except OSError as error:
        raise ClusterError(f"{build} cannot be installed below {root.parent}: {error}")
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def remove_others(trees, root):
    """Of older builds. A cluster that runs on one holds its lock."""
    for tree in trees.iterdir():
        if tree == root or not tree.is_dir():
            continue
        try:
            with open(tree / LOCK, encoding="utf-8") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            pass  # half made
        except OSError:
            continue
        shutil.rmtree(tree, ignore_errors=True)


def fingerprint(build):
    """Changes with every rule of the installation, and with every file that one names; and with who installs, since the daemons start
    no program that belongs to somebody else."""
    seen = hashlib.sha256(f"{os.geteuid()}\n{slurm_of(build)}\n".encode())
    source = cached(build, "CMAKE_HOME_DIRECTORY")
    ours = [build.resolve(), *([Path(source)] if source else [])]
    pending, known = [build / "cmake_install.cmake"], set()
    while pending:
        script = pending.pop()
        text = script.read_text(errors="replace")
        seen.update(text.encode())
        for name in sorted(set(re.findall(r'"(/[^"$;]+)"', text))):
            path = Path(name)
            if name in known or not any(path.is_relative_to(folder) for folder in ours):
                continue
            known.add(name)
            if path.name == "cmake_install.cmake":
                pending.append(path)
                continue
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                add(seen, file)
    return seen.hexdigest()[:16]


def add(seen, file):
    try:
        stat = file.stat()
        seen.update(f"{file} {stat.st_mtime_ns} {stat.st_size}\n".encode())
    except OSError:
        seen.update(f"{file} missing\n".encode())


def slurm_of(build):
    """The tree of Slurm that CMake was given, "" for this system's."""
    return cached(build, "BANYAN_SLURM_TREE")


def cached(build, name):
    """A variable of the build's configuration, "" where it has none."""
    try:
        found = re.search(rf"^{name}:[A-Z]+=(.+)$", (build / "CMakeCache.txt").read_text(), re.M)
    except OSError:
        found = None
    return found.group(1) if found else ""

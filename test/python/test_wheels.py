# SPDX-License-Identifier: BSD-3-Clause
"""The wheel of each Python that this host has, installed by pip into a new environment, at work with a daemon."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts" / "lib"))
import python_venv

SMOKE = Path(__file__).with_name("wheel_smoke.py")
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheels")
    try:
        python_venv.wheels(folder)
    except python_venv.Failed as error:
        pytest.skip(f"other Pythons' build tools cannot be had: {error}")
    return folder


@pytest.mark.parametrize("version", VERSIONS)
def test_a_wheel_at_work(lab, wheels, version):
    python = python_venv.interpreter(version)
    if python is None:
        pytest.skip(f"python{version} is not installed")
    home = lab.tmp / "venv"
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    subprocess.run([python, "-m", "venv", home], check=True, env=clean)
    pip = [home / "bin" / "pip", "install", "--quiet", "--no-index", "--find-links", wheels, "banyan-ckpt"]
    subprocess.run([str(word) for word in pip], check=True, env=clean)
    nodes = lab.daemons()
    nodes.open(7)
    done = subprocess.run([home / "bin" / "python", "-I", SMOKE], env={**clean, **nodes.environment(7, 0, 1)}, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    assert f"by {version}." in done.stdout and ("abi3" in done.stdout) == (version not in ("3.10", "3.11"))

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""banyan on another release of Slurm than this host's: `run.py RELEASE build`, then `run.py RELEASE FOLDER/NAME` for
test/FOLDER/test_NAME.py.

trixie   Debian 13 with Slurm 24.11, in the root folder of scripts/chroot. Where there is none yet BANYAN_MAKE_CHROOT=1 makes it.
given    the Slurm of a tree: BANYAN_SLURM_TREE and BANYAN_SLURM_SOURCE (CONTRIBUTING.md, Another Slurm).

Ends with 77, for ctest a skipped test, where that Slurm is not at hand."""

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SKIPPED = 77


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def settings(build):
    return ["env", f"BANYAN_BUILD={build}", f"PYTHONPATH={REPOSITORY}/test/cluster", "PYTHONUNBUFFERED=1"]


class Trixie:
    def __init__(self):
        chroots = Path(os.environ.get("BANYAN_CHROOTS", REPOSITORY / "build" / "deps" / "chroot"))
        if not (chroots / "trixie" / "root").exists() and os.environ.get("BANYAN_MAKE_CHROOT") != "1":
            skip("there is no Debian 13 yet: `scripts/chroot trixie` makes it once, or BANYAN_MAKE_CHROOT=1 here")

    def build(self):
        return ["scripts/chroot", "trixie", "scripts/build", "demo", "programs"]

    def test(self, file):
        # Its hosts have a network of their own; the Debian in which they begin comes from a mirror.
        online = ["--online"] if file == "test/installed/test_install.py" else []
        return ["scripts/chroot", *online, "trixie", *settings(f"{REPOSITORY}/build/demo"), "python3", file, "-v"]


class Given:
    folder = REPOSITORY / "build" / "slurm-given"

    def __init__(self):
        self.tree, self.source = (os.environ.get(name) for name in ("BANYAN_SLURM_TREE", "BANYAN_SLURM_SOURCE"))
        if not self.tree or not self.source:
            skip("no other Slurm is given: BANYAN_SLURM_TREE and BANYAN_SLURM_SOURCE name its root and its configured source")

    def build(self):
        subprocess.run(["cmake", "--preset", "demo", "-B", self.folder, f"-DBANYAN_SLURM_TREE={self.tree}",
                        f"-DBANYAN_SLURM_SOURCE={self.source}"], cwd=REPOSITORY, check=True, stdout=subprocess.DEVNULL)
        return ["cmake", "--build", str(self.folder), "--target", "programs"]

    def test(self, file):
        return [*settings(self.folder), sys.executable, file, "-v"]


def main():
    release, what = sys.argv[1:]
    other = {"trixie": Trixie, "given": Given}[release]()
    folder, _, name = what.partition("/")
    command = other.build() if what == "build" else other.test(f"test/{folder}/test_{name}.py")
    os.chdir(REPOSITORY)
    os.execvp(command[0], command)


main()

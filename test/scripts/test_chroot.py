# SPDX-License-Identifier: BSD-3-Clause
"""scripts/chroot where it cannot make its Debian: one clear sentence, and nothing is left that a later run would take for one."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "chroot"
ROOT = os.geteuid() == 0
NOWHERE = "http://127.0.0.1:9"


class Chroot(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="banyan-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.folder.chmod(0o755)
        self.chroots = self.folder / "chroots"

    def run_it(self, *words, prefix=(), **variables):
        env = {**os.environ, "BANYAN_CHROOTS": str(self.chroots), **{key: str(value) for key, value in variables.items()}}
        return subprocess.run([*prefix, str(SCRIPT), *words], env=env, capture_output=True, text=True, timeout=50, stdin=subprocess.DEVNULL,
                              check=False)

    def assert_one_sentence(self, run, *words):
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        self.assertEqual(len([line for line in run.stderr.splitlines() if line.startswith("scripts/chroot: ")]), 1, run.stderr)
        for word in words:
            self.assertIn(word, run.stderr)

    def apt_with(self, text):
        """A configuration of apt that knows these sources alone, and no list of theirs."""
        self.folder.joinpath("sources").write_text(text)
        (self.folder / "lists").mkdir()
        conf = self.folder / "apt.conf"
        conf.write_text(f'Dir::Etc::sourcelist "{self.folder}/sources";\nDir::Etc::sourceparts "-";\nDir::State::lists "{self.folder}/lists";\n')
        return conf

    def test_help(self):
        run = self.run_it("--help")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertIn(f"{self.chroots}/SUITE", run.stdout)

    def test_without_a_word(self):
        run = self.run_it()
        self.assertEqual((run.returncode, run.stdout), (2, ""))
        self.assertIn("usage: scripts/chroot [--online] SUITE", run.stderr)

    def test_what_it_does_not_know(self):
        self.assert_one_sentence(self.run_it("woody", "true"), "'woody'", "trixie")
        self.assert_one_sentence(self.run_it("../../etc"), "'../../etc'", "trixie")
        self.assert_one_sentence(self.run_it("--fast"), "'--fast'", "--help")
        self.assertFalse(self.chroots.exists())

    @unittest.skipUnless(ROOT, "needs root to become another user")
    def test_without_root(self):
        run = self.run_it("trixie", prefix=("setpriv", "--reuid=65534", "--clear-groups"))
        self.assert_one_sentence(run, "root is needed", "sudo scripts/chroot trixie")
        self.assertFalse(self.chroots.exists())

    @unittest.skipUnless(ROOT, "needs root")
    def test_a_folder_that_cannot_be(self):
        self.chroots.write_text("a file")
        self.assert_one_sentence(self.run_it("trixie"), "cannot write to", "BANYAN_CHROOTS")

    @unittest.skipUnless(ROOT and shutil.which("debootstrap"), "needs root and debootstrap")
    def test_no_mirror(self):
        self.assert_one_sentence(self.run_it("trixie", APT_CONFIG=self.apt_with("")), "no mirror of Debian", "apt-get update")
        self.assertFalse((self.chroots / "trixie" / "root").exists())

    @unittest.skipUnless(ROOT and shutil.which("debootstrap"), "needs root and debootstrap")
    def test_a_mirror_that_does_not_answer(self):
        left = self.chroots / "trixie" / "root.new" / "etc"  # by an attempt that was interrupted
        left.mkdir(parents=True)
        run = self.run_it("trixie", "true", http_proxy=NOWHERE, https_proxy=NOWHERE)
        self.assert_one_sentence(run, "debootstrap could not make a Debian (trixie)", str(self.chroots / "trixie" / "debootstrap.log"))
        self.assertFalse(left.exists())
        self.assertFalse((self.chroots / "trixie" / "root").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)

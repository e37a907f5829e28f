# SPDX-License-Identifier: BSD-3-Clause
"""The installed tree that a cluster runs on: it is that of the build as it is now, and stays while a cluster runs on it."""

import concurrent.futures
import fcntl
import os
import shutil
import tempfile
import unittest
from pathlib import Path

from harness import main

from banyan_cluster import ClusterError, installed

RULES = 'file(INSTALL DESTINATION "${{CMAKE_INSTALL_PREFIX}}/bin" TYPE PROGRAM FILES "{build}/tool")\n'


class InstallTree(unittest.TestCase):
    def setUp(self):
        self.build = Path(tempfile.mkdtemp(prefix="banyan-")).resolve()
        self.addCleanup(shutil.rmtree, self.build)
        (self.build / "tool").write_text("#!/bin/sh\necho first\n")
        (self.build / "cmake_install.cmake").write_text(RULES.format(build=self.build))

    def text(self):
        return installed.program(self.build, "tool").read_text()

    def trees(self):
        return sorted(path.name for path in (self.build / "installed").iterdir() if path.is_dir())

    def test_it_is_made_once(self):
        root = installed.of(self.build).root
        made = root.stat().st_ctime_ns
        self.assertEqual(installed.of(self.build).root, root)
        self.assertEqual((root.stat().st_ctime_ns, self.trees()), (made, [root.name]))

    def test_it_follows_the_build(self):
        self.assertIn("first", self.text())
        (self.build / "tool").write_text("#!/bin/sh\necho second, of another size\n")
        self.assertIn("second", self.text())
        with open(self.build / "cmake_install.cmake", "a", encoding="utf-8") as rules:
            rules.write(RULES.format(build=self.build).replace("/bin", "/libexec/banyan"))
        self.assertTrue((installed.of(self.build).usr / "libexec/banyan/tool").exists())
        self.assertEqual(len(self.trees()), 1, "those of older builds are gone")

    def test_what_runs_keeps_its_tree(self):
        old = installed.of(self.build).root
        with open(old / installed.LOCK, encoding="utf-8") as held:
            fcntl.flock(held, fcntl.LOCK_SH)
            (self.build / "tool").write_text("#!/bin/sh\necho second, of another size\n")
            self.assertIn("second", self.text())
            self.assertEqual(len(self.trees()), 2)
            self.assertIn("first", (old / "usr/bin/tool").read_text())
        (self.build / "tool").write_text("#!/bin/sh\necho third\n")
        self.assertIn("third", self.text())
        self.assertEqual(len(self.trees()), 1)

    def test_several_at_once(self):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            roots = {tree.root for tree in pool.map(installed.of, [self.build] * 8)}
        self.assertEqual([root.name for root in roots], self.trees())
        self.assertEqual(sorted(path.name for path in (self.build / "installed").iterdir()), sorted([*self.trees(), "lock"]))

    def test_others_can_use_it(self):
        """Whatever umask the one has who installs."""
        before = os.umask(0o077)
        try:
            tree = installed.of(self.build)
        finally:
            os.umask(before)
        for path in (tree.usr, tree.usr / "bin", tree.usr / "bin/tool"):
            self.assertEqual(path.stat().st_mode & 0o755, 0o755, path)

    def test_a_build_that_is_not_finished(self):
        (self.build / "tool").unlink()
        with self.assertRaisesRegex(ClusterError, r"cannot be installed.*cannot find.*tool(.|\n)*scripts/build"):
            installed.of(self.build)
        self.assertEqual(self.trees(), [])

    def test_no_build(self):
        with self.assertRaisesRegex(ClusterError, "is no build: scripts/build"):
            installed.of(self.build / "none")


if __name__ == "__main__":
    main()

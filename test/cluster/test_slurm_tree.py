# SPDX-License-Identifier: BSD-3-Clause
"""A build that was made for a Slurm in a tree of its own has clusters on that Slurm. The trees here are small ones made by hand; the last
test asks the Slurm of the build at hand, whichever that is."""

import os
import shutil
import subprocess
import sysconfig
import tempfile
import unittest
from pathlib import Path

import harness
from harness import BUILD, Cluster, main

from banyan_cluster import ClusterError, installed, layout as layouts, namespace, process

PLUGINS = f"lib/{sysconfig.get_config_var('MULTIARCH')}/slurm-wlm"  # where this system's Slurm has them
RULES = 'file(INSTALL DESTINATION "${{CMAKE_INSTALL_PREFIX}}/{plugins}" TYPE FILE FILES "{build}/job_submit_banyan.so")\n'


class SlurmTree(unittest.TestCase):
    def setUp(self):
        self.work = Path(tempfile.mkdtemp(prefix="banyan-"))
        self.work.chmod(0o755)
        self.addCleanup(shutil.rmtree, self.work)
        self.build = self.work / "build"
        self.build.mkdir()
        (self.build / "job_submit_banyan.so").write_text("ours")
        (self.build / "cmake_install.cmake").write_text(RULES.format(build=self.build, plugins=PLUGINS))

    def tree(self, name, plugins=PLUGINS):
        root = self.work / name
        self.write(root / "usr/sbin/slurmctld", f"#!/bin/sh\necho that of {name}\n")
        self.write(root / "usr" / plugins / "select_cons_tres.so", name)
        return root

    def write(self, file, text):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)

    def made_for(self, root):
        (self.build / "CMakeCache.txt").write_text(f"BANYAN_SLURM_TREE:PATH={root}\n")
        return installed.of(self.build)

    def space(self, root):
        """What a command sees in the namespace of a cluster of the build: a function."""
        layout = layouts.Layout(self.work / "cluster", {"nodes": 1, "tree": str(self.made_for(root).root), "select": "cons_tres_banyan"})
        layouts.prepare(layout)
        layout.path("etc", "hosts").write_text("127.0.0.1 localhost\n")
        self.addCleanup(process.end_all, layout)
        namespace.start(layout)
        return lambda *words: namespace.run(layout, words, cwd="/", check=True, text=True, stdout=subprocess.PIPE).stdout.split("\n")[:-1]

    def test_it_lies_over_usr(self):
        """Its programs come first, its folder of plugins has nothing of another release's, and the rest of /usr is this system's."""
        seen = self.space(self.tree("other"))
        self.assertEqual(seen("/usr/sbin/slurmctld"), ["that of other"])
        self.assertEqual(seen("ls", f"/usr/{PLUGINS}"), ["job_submit_banyan.so", "select_cons_tres.so"])
        self.assertEqual(seen("sh", "-c", f"cat /usr/{PLUGINS}/*; echo"), ["oursother"])
        self.assertEqual(sorted(seen("ls", "-A", "/usr/bin")), sorted(os.listdir("/usr/bin")))

    def test_its_plugins_may_stand_elsewhere(self):
        seen = self.space(self.tree("other", "lib64/slurm"))
        self.assertEqual(seen("ls", "/usr/lib64/slurm"), ["select_cons_tres.so"])
        self.assertLess(set(os.listdir(f"/usr/{PLUGINS}")), set(seen("ls", "-A", f"/usr/{PLUGINS}")))

    def test_it_follows_the_build(self):
        one, two = self.tree("one"), self.tree("two")
        self.assertEqual([self.made_for(root).slurm for root in (one, two, one)], [one, two, one])
        self.assertEqual(self.made_for("").slurm, Path("/"))

    def test_a_tree_that_is_gone(self):
        root = self.tree("other")
        shutil.rmtree(root)
        with self.assertRaisesRegex(ClusterError, f"made for the Slurm in {root}, where there is no usr/sbin/slurmctld: install it"):
            self.space(root)

    def test_a_tree_without_plugins(self):
        root = self.tree("other")
        shutil.rmtree(root / "usr/lib")
        with self.assertRaisesRegex(ClusterError, f"{root} has no select_cons_tres.so below usr/lib"):
            self.space(root)


class OwnSlurm(unittest.TestCase):
    def test_the_cluster_has_the_release_of_the_build(self):
        built_for = subprocess.run([harness.program("banyan-topo"), "--version"], capture_output=True, text=True, check=True).stdout
        if "(without Slurm)" in built_for:
            self.skipTest(f"{BUILD} is built without Slurm")
        cluster = Cluster(nodes=4, options=("--select", "cons_tres", "--without", "spank,submit,snapshot,fault"))
        self.addCleanup(cluster.remove)
        cluster.up()
        release = cluster.out("sinfo", "--version").split()[-1]
        self.assertIn(f"(Slurm {release})", built_for)
        self.assertEqual(cluster.out("sh", "-c", "slurmd -V; slurmctld -V").split()[1::2], [release] * 2)
        self.assertEqual(sorted(cluster.out("srun", "-N4", "hostname").split()), ["n01", "n02", "n03", "n04"])


if __name__ == "__main__":
    main()

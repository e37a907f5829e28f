# SPDX-License-Identifier: BSD-3-Clause
"""What `banyan-topo slurm` writes, read by a real slurmctld with topology/tree: `scontrol show topology` has every node under exactly
one leaf switch, and under one root where the fabric is connected. A slurmctld alone, without slurmds: its nodes are cloud nodes."""

import json
import shutil
import subprocess
import tempfile
import time
import unittest
import xml.etree.ElementTree
from pathlib import Path

import harness
from banyan_cluster import files, installed, layout as layouts, parts, process

FIXTURES = harness.REPOSITORY / "test" / "fixtures"


def topo(*words, **options):
    done = subprocess.run([str(word) for word in (harness.program("banyan-topo"), *words)], capture_output=True, text=True, timeout=60, **options)
    if done.returncode != 0:
        raise harness.Failure(f"banyan-topo {words} ended with {done.returncode}: {done.stderr}")
    return done.stdout


class Controller:
    """munged and one slurmctld at a time, in a directory and on ports of their own."""

    def __init__(self):
        self.layout = layouts.Layout(tempfile.mkdtemp(prefix="banyan-"), {"nodes": 1, "gpus": 1, "tree": str(installed.of(harness.BUILD).root),
                                                                         "select": "cons_tres", "submit": False})
        layouts.prepare(self.layout)
        self.layout.options["port"], self.reservation = layouts.choose_port(self.layout)
        self.layout.save()

    def start(self, nodes, topology_conf):
        etc = self.layout.path("etc")
        (etc / "slurm.conf").write_text(self.slurm_conf(nodes))
        (etc / "topology.conf").write_text(topology_conf)
        log = self.layout.path("log", "slurmctld.log")
        log.write_text("")  # which stays SlurmUser's
        # -c: nothing of the fabric before.
        self.child = process.spawn(self.layout, "slurmctld", parts.controller_command(self.layout, options=["-c"]))

        def ready():
            process.complain_if_dead(self.layout, self.child, "slurmctld")
            return parts.answers_slurmctld(self.layout)
        process.wait_until(ready, 60, "slurmctld answers", pause=0.05)

    def slurm_conf(self, nodes):
        return "\n".join([
            *files.controller_conf(self.layout, topology="tree"), *files.cloud_conf(), "SelectTypeParameters=CR_Core",
            f"NodeName={nodes} CPUs=8 RealMemory=1000 State=CLOUD", "PartitionName=train Nodes=ALL Default=YES State=UP"]) + "\n"

    def topology(self):
        """[{field: text}], one for each switch."""
        text = parts.run_tool(self.layout, "scontrol", "show", "topology").stdout
        return [dict(word.split("=", 1) for word in line.split()) for line in text.splitlines() if line.startswith("SwitchName=")]

    def hosts(self, expression):
        return parts.run_tool(self.layout, "scontrol", "show", "hostnames", expression).stdout.split() if expression else []

    def complaints(self):
        log = self.layout.path("log", "slurmctld.log").read_text()
        return [line for line in log.splitlines() if "opology" in line and "loaded" not in line or "switch" in line.lower()]

    def stop(self):
        process.end_parts(self.layout, ("slurmctld",), grace=10)

    def remove(self):
        process.end_all(self.layout)
        for one in self.reservation:
            one.close()
        shutil.rmtree(self.layout.dir)


class TopologyConf(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.controller = Controller()
        cls.addClassCleanup(cls.controller.remove)
        parts.start_base(cls.controller.layout)

    def test_fixtures(self):
        for name in ("ibnetdiscover", "ibnetdiscover-3level-sharp", "ibnetdiscover-fattree3", "ibnetdiscover-p",
                     "ibnetdiscover-after-faults"):
            with self.subTest(name):
                self.check((FIXTURES / "ib" / f"{name}.txt").read_text())

    def test_generated(self):
        for words in (["--nodes", 16], ["--nodes", 21, "--group-size", 4], ["--nodes", 5, "--rails", 1, "--spines", 1]):
            with self.subTest(words):
                self.check(topo("gen", *words))

    def test_two_fabrics_have_two_roots(self):
        one = topo("gen", "--nodes", 16, "--group-size", 4)
        other = topo("gen", "--nodes", 8, "--group-size", 4, "--host-prefix", "m", "--sm-host", "sm02")
        other = other.replace("fc6a1c03", "fc6a1c04").replace("a088c203", "a088c204")
        self.check(one + other, roots=2)

    def test_twelve_thousand_nodes(self):
        start = time.monotonic()
        dump = topo("gen", "--nodes", 12800, "--group-size", 32, "--host-digits", 5, "--spines", 32, "--links", 1)
        generated = time.monotonic()
        self.check(dump)
        print(f"12,800 nodes: generated in {generated - start:.1f} s, written and read by slurmctld in "
              f"{time.monotonic() - generated:.1f} s")

    def test_nodes_that_only_one_side_knows(self):
        dump = topo("gen", "--nodes", 16, "--group-size", 8)
        conf = self.controller.layout.path("tmp", "slurm.conf")
        conf.write_text(self.controller.slurm_conf("n[01-12],login[1-2]"))
        text = topo("slurm", "-", "--plugin", "tree", "--slurm-conf", conf, input=dump)
        self.assertIn("# On the fabric, but no node of this Slurm: n[13-16]\n", text)
        self.assertIn("# Nodes of this Slurm that are no compute host of the fabric: login[1-2]\n", text)
        self.controller.start("n[01-12],login[1-2]", text)
        try:
            leaves = [self.controller.hosts(s["Nodes"]) for s in self.controller.topology() if s["Level"] == "0"]
            self.assertEqual(leaves, [[f"n{i:02}" for i in range(1, 9)], [f"n{i:02}" for i in range(9, 13)]])
        finally:
            self.controller.stop()

    def check(self, dump, roots=1):
        groups = json.loads(topo("show", "-", "--json", input=dump))["leaf_groups"]
        hosts = sorted(node for group in groups for node in group["nodes"])
        self.controller.start(",".join(hosts), topo("slurm", "-", "--plugin", "tree", input=dump))
        try:
            switches = self.controller.topology()
            leaves = {s["SwitchName"]: self.controller.hosts(s["Nodes"]) for s in switches if s["Level"] == "0"}
            self.assertEqual(sorted(node for nodes in leaves.values() for node in nodes), hosts)
            self.assertEqual(leaves, {group["id"]: leaves[group["id"]] for group in groups})
            for group in groups:
                self.assertEqual(set(leaves[group["id"]]), set(group["nodes"]))
            children = {child for s in switches for child in self.controller.hosts(s.get("Switches", ""))}
            tops = [s for s in switches if s["SwitchName"] not in children]
            self.assertEqual(len(tops), roots, switches)
            self.assertEqual(sorted(node for s in tops for node in self.controller.hosts(s["Nodes"])), hosts)
            expected = 0 if roots == 1 else 1
            complaints = self.controller.complaints()
            self.assertEqual(len(complaints), expected, complaints)
            if expected:
                self.assertIn("no switch can reach all nodes", complaints[0])
        finally:
            self.controller.stop()


class NcclTopology(unittest.TestCase):
    def test_a_parser_reads_it(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "topo.xml"
            topo("nccl", FIXTURES / "ib" / "ibnetdiscover.txt", "--hwloc", FIXTURES / "export" / "hwloc-2p8g8h.xml", "--xml", file)
            system = xml.etree.ElementTree.parse(file).getroot()
        self.assertEqual((system.tag, system.attrib), ("system", {"version": "1"}))
        self.assertEqual([net.get("name") for net in system.iter("net")], [f"mlx5_{i}" for i in range(8)])


if __name__ == "__main__":
    harness.main()

# SPDX-License-Identifier: BSD-3-Clause
"""The fabric tools on a live subnet: what goes in as a dump comes back as the same model, and faults show in diff and check."""

import json
import re

from harness import ClusterCase, main

from banyan_cluster import fabric, layout as layouts


class Fabric(ClusterCase):
    options = ("--without", "fault,spank,submit,snapshot")

    def setUp(self):
        self.layout = layouts.load(self.cluster.dir)
        self.before = self.dump("before")
        self.undo = []
        self.addCleanup(self.heal)

    def heal(self):
        for command in reversed(self.undo):
            fabric.console(self.layout, command)

    def dump(self, name):
        """What ibnetdiscover sees now, in a file."""
        path = self.cluster.dir / "tmp" / f"{name}.txt"
        self.cluster.run("banyan-topo", "discover", "-o", path)
        return path

    def model(self, path):
        """The model without what may differ from run to run: LIDs are the subnet manager's choice."""
        shown = json.loads(self.cluster.out("banyan-topo", "show", "--json", path))
        for group in shown["leaf_groups"]:
            group["nodes"].sort()
        return shown

    def break_link(self, node, port):
        node = fabric.node_id(self.layout, node)
        fabric.console(self.layout, f'Unlink "{node}"[{port}]')
        self.undo.append(f'ReLink "{node}"[{port}]')
        return node

    def record(self, name):
        """The record of the node whose description begins with or holds the name."""
        heads = re.compile(rf'^(?:Switch|Ca)\s.*# "[^"]*{re.escape(name)}', re.M)
        return next(record for record in self.before.read_text().split("\n\n") if heads.search(record))

    def diff(self, after):
        run = self.cluster.run("banyan-topo", "diff", "--json", self.before, after, check=False)
        self.assertEqual(run.returncode, 1, run.stderr)
        return json.loads(run.stdout)

    def defects(self, path, *options):
        run = self.cluster.run("banyan-topo", "check", "--json", *options, path, check=False)
        found = json.loads(run.stdout)
        self.assertEqual(run.returncode, 1 if found else 0)
        return {(defect["kind"], *defect["objects"]) for defect in found}

    def test_round_trip(self):
        """dump -> ibsim -> opensm -> ibnetdiscover -> the same model."""
        self.assertEqual(self.model(self.before), self.model(self.layout.path("fabric", "net")))
        self.assertEqual(self.defects(self.before), set())
        same = self.cluster.run("banyan-topo", "diff", self.layout.path("fabric", "net"), self.before)
        self.assertEqual(same.stdout, "no difference\n")

    def test_every_tool_gives_the_same_model(self):
        """iblinkinfo has port GUIDs where ibnetdiscover has those of HCAs, so the two are compared by names."""
        expected = self.model(self.before)
        for options in ((), ("-l",)):
            path = self.cluster.dir / "tmp" / "iblinkinfo.txt"
            path.write_text(self.cluster.out("iblinkinfo", *options))
            model = self.model(path)
            for part in ("hosts", "switches", "hcas", "links", "levels", "capacity", "leaf_groups", "leaves"):
                self.assertEqual(model[part], expected[part], part)
            self.assertEqual(self.defects(path), set())

    def test_a_link_that_is_up_and_bad(self):
        node, leaf = fabric.node_id(self.layout, "n05 mlx5_3"), fabric.node_id(self.layout, "leaf-02")
        uplink = re.search(r"^\[(\d+)\].*spine", self.record("leaf-02"), re.M).group(1)
        for port, counter in ((f'"{node}"[1]', "SymbolErrorCounter"), (f'"{leaf}"[{uplink}]', "PortRcvErrors")):
            fabric.console(self.layout, f"PerformanceSet {port} PortCounters.{counter}=240")
            self.undo.append(f"PerformanceSet {port} PortCounters.{counter}=0")
        errors = self.cluster.dir / "tmp" / "errors.txt"

        def seen():
            # The simulator takes what its console was told when it comes to it.
            errors.write_text(self.cluster.run("ibqueryerrors", check=False).stdout + self.cluster.out("sminfo"))  # 1 where it found any
            return all(counter in errors.read_text() for counter in ("SymbolErrorCounter", "PortRcvErrors"))
        self.cluster.wait_for(seen, "both ports' errors are read")
        found = self.defects(self.before, "--health", errors)
        self.assertEqual({kind for kind, *_ in found}, {"bad-link"})
        ends = " ".join(end for _, *ends in found for end in ends)
        self.assertRegex(ends, "n05 mlx5_3 port 1")
        self.assertRegex(ends, f"leaf-02.* port {uplink} ")
        shown = json.loads(self.cluster.out("banyan-topo", "show", "--json", "--health", errors, self.before))
        self.assertEqual([manager["name"] for manager in shown["subnet_managers"]], ["sm01 mlx5_0"])
        # A placement takes the host last.
        place = ("banyan-topo", "place", "--json", "--shape", "tp=8,dp=15", "--ranks-per-node", "8", "--free", "n[01-16]")
        placed = json.loads(self.cluster.out(*place, "--health", errors, self.before))
        self.assertNotIn("n05", placed["nodes"])

    def test_a_broken_link(self):
        record = self.record("leaf-03")
        self.break_link("leaf-03", re.search(r'^\[(\d+)\].*spine', record, re.M).group(1))
        after = self.dump("after")
        lost = self.diff(after)["lost_links"]
        self.assertEqual(len(lost), 1)
        self.assertEqual({end["node"].split(";")[1].split(":")[0].split("-")[0] for end in lost[0]["ends"]}, {"leaf", "spine"})
        (kind, switch), = self.defects(after)
        self.assertEqual((kind, "leaf-03" in switch), ("missing-uplink", True))

    def test_a_dead_host(self):
        for rail in range(8):
            self.break_link(f"n05 mlx5_{rail}", 1)
        after = self.dump("after")
        self.assertEqual({node["name"] for node in self.diff(after)["lost_nodes"]}, {f"n05 mlx5_{rail}" for rail in range(8)})
        # Nothing in a dump says that a host was there; the accepted state does.
        self.assertEqual(self.defects(after), set())
        self.assertEqual({kind for kind, *_ in self.defects(after, "--golden", self.before)}, {"lost-node"})

    def test_a_dead_switch(self):
        for port in re.findall(r"^\[(\d+)\]", self.record("leaf-10"), re.M):
            self.break_link("leaf-10", port)
        after = self.dump("after")
        lost = {node["name"].split(";")[-1].split(":")[0] for node in self.diff(after)["lost_nodes"]}
        self.assertIn("leaf-10", lost)
        kinds = {kind for kind, *_ in self.defects(after)}
        self.assertEqual(kinds, {"missing-leaf"})

    def test_crossed_cables(self):
        ends = {}
        for name in ("n02 mlx5_1", "n06 mlx5_1"):
            ends[name] = (fabric.node_id(self.layout, name), *re.search(r'\t"(S-[0-9a-f]+)"\[(\d+)\]', self.record(name)).groups())
        (a, a_leaf, a_port), (b, b_leaf, b_port) = ends.values()
        cables = [f'Link "{a}"[1] "{a_leaf}"[{a_port}]', f'Link "{b}"[1] "{b_leaf}"[{b_port}]']
        crossed = [f'Link "{a}"[1] "{b_leaf}"[{b_port}]', f'Link "{b}"[1] "{a_leaf}"[{a_port}]']
        for command in (*(f'Unlink "{node}"[1]' for node in (a, b)), *crossed):
            fabric.console(self.layout, command)
        self.undo = [*cables, f'Unlink "{b}"[1]', f'Unlink "{a}"[1]']
        after = self.dump("after")
        self.assertEqual({link["port"]["node"] for link in self.diff(after)["moved_links"]}, set(ends))
        (kind, *hcas), = self.defects(after)
        self.assertEqual((kind, set(hcas)), ("swapped-cables", set(ends)))


if __name__ == "__main__":
    main()

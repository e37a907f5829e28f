# SPDX-License-Identifier: BSD-3-Clause
"""banyan-topo check where all switches have one name: how a defect is told, and what an accepted state accepts; and ids that stay."""

import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
TOPO = Path(os.environ.get("BANYAN_BUILD", REPOSITORY / "build" / "dev")) / "bin" / "banyan-topo"
FACTORY = "Quantum Mellanox Technologies"


def run(*words):
    return subprocess.run([TOPO, *map(str, words)], text=True, timeout=60, check=False, capture_output=True)


class Check(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def fabric(self, name, *defects):
        """A fabric of 16 x 4 hosts whose switches all have one name."""
        made = run("gen", "--nodes", 64, "--group-size", 16, "--rails", 4, "--spines", 16, *defects)
        self.assertEqual(made.returncode, 0, made.stderr)
        path = self.folder / name
        path.write_text(re.sub(r"MF0;(leaf|spine)-\d+:MQM9790/U1", FACTORY, made.stdout))
        return path

    def without_link(self, path, name, switch, port):
        """Without the cable at that port, on both of its ends."""
        text = path.read_text()
        records = {record.split('"')[1]: record for record in text.split("\n\n")[1:]}
        line = next(line for line in records[switch].splitlines() if line.startswith(f"[{port}]\t"))
        peer, peer_port = re.match(r'\[\d+\]\t"([^"]+)"\[(\d+)\]', line).groups()
        back = next(line for line in records[peer].splitlines() if line.startswith((f"[{peer_port}]\t", f"[{peer_port}](")))
        path = self.folder / name
        path.write_text(text.replace(line + "\n", "", 1).replace(back + "\n", "", 1))
        return path

    def test_an_hca_without_a_link_is_on_no_rail(self):
        path = self.without_link(self.fabric("whole"), "one", "S-fc6a1c03000000c0", 1)
        shown = run("show", "--node", "n01", path).stdout
        rails = {line.split()[2]: line.split()[0] for line in shown.splitlines() if " mlx5_" in line}
        self.assertEqual(rails, {"mlx5_0": "0", "mlx5_1": "1", "mlx5_2": "-", "mlx5_3": "3"}, shown)
        hcas = json.loads(run("show", "--node", "n01", "--json", path).stdout)["hcas"]
        self.assertEqual({hca["name"]: hca["rail"] for hca in hcas}["n01 mlx5_2"], None)

    def test_one_of_a_kind_is_told_as_one(self):
        path = self.folder / "small"
        run("gen", "--nodes", 2, "--group-size", 2, "--rails", 1, "--spines", 1, "-o", path)
        self.assertRegex(run("show", path).stdout, r"^2 hosts, 3 HCAs, 2 switches \(1 leaf, 1 spine, 0 cores\)")
        self.assertIn("g1: 2 hosts x 1 rail -", run("draw", path).stdout)
        text = run("gen", "--nodes", 64, "--group-size", 16, "--rails", 4, "--spines", 16).stdout
        path.write_text(text.replace('"n07 mlx5_2"', '"MT4129 ConnectX7   Mellanox Technologies"'))
        self.assertTrue(run("check", path).stdout.endswith("\n1 defect on 64 hosts and 32 switches\n"), run("check", path).stdout)

    def test_a_fabric_without_hosts_carries_nothing(self):
        text = run("gen", "--shape", "fat-tree", "--directors", "--nodes", 64, "--group-size", 16).stdout
        path = self.folder / "hostless"
        path.write_text("\n".join(line for line in "\n\n".join(record for record in text.split("\n\n") if "\nCa\t" not in "\n" + record).split("\n")
                                  if '"H-' not in line))
        self.assertIn("\nleaves are without a host: nothing to carry\n", run("show", path).stdout)

    def test_a_cut_dump_counts_its_links(self):
        text = run("gen", "--nodes", 8, "--group-size", 8, "--rails", 1, "--spines", 2).stdout
        path = self.folder / "cut"
        switch = text.index("\nSwitch\t") + 1
        path.write_text(text[switch:text.index("\n\n", switch) + 1])
        leads = sum(line.startswith("[") for line in path.read_text().splitlines())
        told = re.search(r"of (\d+) links (\d+) stand in it from one end alone", run("show", path).stderr)
        self.assertTrue(told, run("show", path).stderr)
        self.assertEqual((int(told[1]), int(told[2])), (leads, leads))

    def test_diff_says_what_it_could_not_read(self):
        whole, path = self.fabric("whole"), self.folder / "blackened"
        path.write_text(whole.read_text().replace('"H-a088c20300001000"', '"H-a088c203xxxxxxxx"', 1))
        for before, after in ((whole, path), (path, whole)):
            told = run("diff", before, after)
            self.assertEqual(told.returncode, 1)
            self.assertRegex(told.stdout, r"blackened line \d+ column \d+ could not be read: ")
            self.assertTrue(json.loads(run("diff", "--json", before, after).stdout)["unreadable"])
            self.assertIn("could not be read", run("diff", "--csv", before, after).stderr)
        self.assertEqual(run("diff", whole, whole).stdout, "no difference\n")

    def test_a_new_lost_uplink_of_a_nameless_switch_is_not_accepted(self):
        whole = self.fabric("whole")
        leaf = "S-fc6a1c0300000080"
        one = self.without_link(whole, "one", leaf, 35)
        self.assertIn(" defects beside", run("check", "--golden", one, one).stdout)
        self.assertEqual(run("check", "--golden", one, one).returncode, 0)
        two = self.without_link(one, "two", leaf, 39)
        other = self.without_link(one, "other", "S-fc6a1c0300000200", 37)
        for path in (two, other):
            found = run("check", "--golden", one, path)
            self.assertEqual(found.returncode, 1)
            self.assertIn("missing-uplink", found.stdout)
        # From a snapshot as from a dump.
        snapshot = self.folder / "accepted"
        self.assertEqual(run("snapshot", one, "-o", snapshot).returncode, 0)
        self.assertEqual(run("check", "--golden", snapshot, one).returncode, 0)
        self.assertEqual(run("check", "--golden", snapshot, two).returncode, 1)

    def test_it_is_named_by_guid_and_by_a_name_that_stays(self):
        path = self.without_link(self.fabric("whole"), "one", "S-fc6a1c0300000080", 35)
        text = run("check", path).stdout
        self.assertIn("switch-000080 (0xfc6a1c0300000080) (90 % sure)", text)
        self.assertIn("missing: switch-000080 port 35 to switch-000", text)
        self.assertIn("switch-000080 (0xfc6a1c0300000080): leaf of n[01-16] (g1), rail 1", text)
        found = [d for d in json.loads(run("check", "--json", path).stdout) if d["kind"] == "missing-uplink"]
        self.assertEqual(found[0]["nameless_switches"][0],
                         {"guid": "0xfc6a1c0300000080", "name": "switch-000080", "place": "leaf of n[01-16] (g1), rail 1"})

    def test_all_lists_every_missing_cable(self):
        path = self.fabric("broken")
        for leaf in range(1, 13):
            path = self.without_link(path, f"less{leaf}", f"S-{0xfc6a1c0300000000 + leaf * 0x40:016x}", 36)
        short, full = run("check", path).stdout, run("check", "--all", path).stdout
        self.assertEqual(short.count("missing: "), 4)
        self.assertIn("and 8 more missing cables: --all lists them", short)
        self.assertEqual(full.count("missing: "), 12)
        found = [d for d in json.loads(run("check", "--json", path).stdout) if d["kind"] == "asymmetric-spine"]
        self.assertEqual(len(found[0]["missing"]), 12)
        for cable in found[0]["missing"]:
            self.assertRegex(cable, r"^switch-\w{6} port 36 to switch-\w{6} port \d+$")


class Ids(unittest.TestCase):
    """banyan-topo snapshot where the file has leaf groups already."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.snapshot = self.folder / "fabric.snapshot"

    def dump(self, name, *options):
        path = self.folder / name
        made = run("gen", "--nodes", 64, "--group-size", 16, "--rails", 4, *options, "-o", path)
        self.assertEqual(made.returncode, 0, made.stderr)
        return path

    def ids(self, path):
        return {group["nodes"][0]: group["id"] for group in json.loads(run("show", "--json", path).stdout)["leaf_groups"]}

    def write(self, dump, *options):
        written = run("snapshot", dump, "-o", self.snapshot, *options)
        self.assertEqual(written.returncode, 0, written.stderr)
        return written

    def test_the_file_to_replace_keeps_the_ids(self):
        whole, off = self.dump("whole"), self.dump("off", "--racks-off", 0.25, "--seed", 2)
        self.write(whole)
        first = self.ids(self.snapshot)
        self.assertEqual(first, {"n01": "g1", "n17": "g2", "n33": "g3", "n49": "g4"})
        self.assertNotEqual({**first, **self.ids(off)}, first, "the rack that is off must not be the last one")
        self.write(off)
        less = self.ids(self.snapshot)
        self.assertEqual(len(less), 3)
        self.assertEqual({**first, **less}, first)
        # A second time, and back.
        self.write(off)
        self.assertEqual(self.ids(self.snapshot), less)
        self.write(whole)
        self.assertEqual(self.ids(self.snapshot), first)

    def test_another_snapshot_can_be_named(self):
        whole, off = self.dump("whole"), self.dump("off", "--racks-off", 0.25, "--seed", 2)
        self.write(whole)
        old = self.folder / "old.snapshot"
        self.snapshot.rename(old)
        self.write(off, "--previous", old)
        self.assertEqual({**self.ids(old), **self.ids(self.snapshot)}, self.ids(old))
        gone = run("snapshot", off, "-o", self.snapshot, "--previous", self.folder / "none")
        self.assertEqual(gone.returncode, 2)
        self.assertIn("none", gone.stderr)

    def test_a_file_that_is_no_snapshot_is_told_and_replaced(self):
        whole = self.dump("whole")
        self.snapshot.write_bytes(b"BNYNFAB\0 and then nothing")
        written = self.write(whole)
        self.assertIn("the leaf groups are numbered anew", written.stderr)
        self.assertEqual(self.ids(self.snapshot)["n17"], "g2")


if __name__ == "__main__":
    unittest.main(verbosity=2)

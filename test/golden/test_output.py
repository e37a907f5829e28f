# SPDX-License-Identifier: BSD-3-Clause
"""Where banyan-topo's output goes: what -o may replace, a standard output that is full, and what a terminal gets to see."""

import json
import os
import re
import shutil
import stat
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
TOPO = Path(os.environ.get("BANYAN_BUILD", REPOSITORY / "build" / "dev")) / "bin" / "banyan-topo"
FIXTURES = REPOSITORY / "test" / "fixtures" / "ib"
DUMP = str(FIXTURES / "ibnetdiscover.txt")
PLAN = ('{"version":3,"job":1,"generation":1,"restart":0,"shape":"tp=8,pp=8,dp=2","ranks_per_node":8,'
        '"nodes":"gpu[0001-0016]","buddies":[8,16]}')
# Every subcommand that prints, as it prints to standard output.
PRINTING = (("show", DUMP), ("show", "--json", DUMP), ("check", DUMP), ("check", "--json", DUMP), ("diff", DUMP, DUMP), ("diff", "--csv", DUMP, DUMP),
            ("draw", DUMP), ("draw", "--format", "svg", DUMP), ("draw", "--format", "html", DUMP), ("place", DUMP, "--shape", "tp=8,dp=16", "--ranks-per-node", "8"),
            ("explain", "--plan", PLAN, "--fabric", DUMP), ("slurm", "--plugin", "tree", DUMP), ("nccl", DUMP), ("gen", "--nodes", "4"), ("--help",),
            ("--version",))
# And with -o, as it replaces a file.
WRITING = (("snapshot", DUMP), ("gen", "--nodes", "4"), ("draw", DUMP), ("slurm", "--plugin", "tree", DUMP))


def run(words, **how):
    return subprocess.run([TOPO, *words], text=True, timeout=60, check=False, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how})


class Output(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_a_link_is_not_replaced(self):
        file, link = self.folder / "file", self.folder / "link"
        for words in WRITING:
            with self.subTest(words):
                file.write_text("kept")
                link.unlink(missing_ok=True)
                link.symlink_to(file)
                done = run((*words, "-o", str(link)))
                self.assertEqual((done.returncode, link.is_symlink(), file.read_text()), (2, True, "kept"), done.stderr)
                self.assertIn("symbolic link", done.stderr)

    def test_a_fifo_gets_the_text_and_stays(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        for words in WRITING:
            with self.subTest(words):
                got = []
                keeper = os.open(fifo, os.O_RDWR)  # so that no open waits for ever
                with open(fifo, "rb", opener=lambda path, _: os.open(path, os.O_RDONLY | os.O_NONBLOCK)) as end:
                    os.set_blocking(end.fileno(), True)
                    reader = threading.Thread(target=lambda: got.append(end.read()))
                    process = subprocess.Popen([TOPO, *words, "-o", fifo], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                    reader.start()
                    process.communicate(timeout=60)
                    os.close(keeper)
                    reader.join()
                self.assertEqual(process.returncode, 0)
                self.assertTrue(stat.S_ISFIFO(fifo.lstat().st_mode))
                self.assertGreater(len(got[0]), 100)

    def test_a_device_is_not_replaced(self):
        # A link to one leads to it, as for a shell; nobody but root could replace the device itself.
        full, null = self.folder / "full", self.folder / "null"
        full.symlink_to("/dev/full")
        null.symlink_to("/dev/null")
        for words in WRITING:
            with self.subTest(words):
                done = run((*words, "-o", str(full)))
                self.assertEqual(done.returncode, 2)
                self.assertIn("No space left", done.stderr)
                self.assertEqual(run((*words, "-o", str(null))).returncode, 0)
                self.assertEqual([path.is_symlink() for path in (full, null)], [True, True])

    def test_an_output_without_a_name_is_refused(self):
        for words in WRITING:
            with self.subTest(words):
                done = run((*words, "-o", ""))
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn("the name is empty", done.stderr)

    def test_two_outputs_are_two_files(self):
        one = self.folder / "x"
        (self.folder / "link").symlink_to(self.folder)
        for other in (one, f"{self.folder}/./../{self.folder.name}/x", self.folder / "link" / "x"):
            with self.subTest(other):
                done = run(("gen", "--nodes", "4", "-o", str(one), "--truth", str(other)))
                self.assertEqual((done.returncode, done.stdout, one.exists()), (2, "", False))
                self.assertIn("--truth", done.stderr)
        self.assertEqual(run(("gen", "--nodes", "4", "-o", "/dev/null", "--truth", "/dev/null")).returncode, 0)

    def test_a_picture_is_what_its_name_says(self):
        for name, begins in (("x.svg", "<?xml"), ("x.html", "<!doctype html"), ("x", "")):
            at = self.folder / name
            self.assertEqual(run(("draw", DUMP, "-o", str(at))).returncode, 0)
            self.assertEqual(at.read_text().lstrip()[:len(begins)].lower(), begins, name)
        self.assertFalse((self.folder / "x").read_text().lstrip().startswith("<"))

    def test_output_that_is_lost_is_an_error(self):
        for words in PRINTING:
            with self.subTest(words), open("/dev/full", "w", encoding="ascii") as full:
                done = run(words, stdout=full)
                self.assertEqual(done.returncode, 2)
                self.assertIn("cannot write to standard output", done.stderr)

    def test_control_characters_reach_no_terminal(self):
        dump = self.folder / "dump"
        names = b'evil\x1b[31m', b"evil\x9b31m", b"evil\xc2\x9b31m", b"evil\rgood", b"evil\xe2\x80\xaegood", b"evil\x7f", b"evil\xff"
        for name in names:
            for before in (b"gpu0003 mlx5_0", b"MF0;leaf-01:MQM9790/U1"):
                text = Path(DUMP).read_bytes()
                self.assertIn(before, text)
                dump.write_bytes(text.replace(before, name + b" mlx5_0"))
                for words in (("show",), ("check",), ("show", "--node", "evil\x1b[31m"), ("draw",), ("slurm", "--plugin", "tree")):
                    with self.subTest(name=name, words=words):
                        done = subprocess.run([TOPO, *words, dump], capture_output=True, timeout=60, check=False)
                        seen = (done.stdout + done.stderr).decode()  # UTF-8, or it throws
                        bad = [c for c in seen if (ord(c) < 0x20 and c != "\n") or 0x7f <= ord(c) < 0xa0 or c == "\u202e"]
                        self.assertEqual(bad, [])

    def test_a_dump_as_a_terminal_shows_it(self):
        whole = Path(DUMP).read_text()
        told = run(("check", DUMP)).stdout
        for before, after in (("[root@sm01 ~]# ibnetdiscover\n", ""), ("root@sm01:~# ibnetdiscover\n", ""), ("$ ibnetdiscover\n", "")):
            with self.subTest(before):
                dump = self.folder / "dump"
                dump.write_text(before + whole.rstrip("\n") + after)
                done = run(("check", str(dump)))
                self.assertEqual((done.stdout, done.stderr), (told, ""))

    @unittest.skipUnless(shutil.which("node"), "node runs the picture's own script")
    def test_small_fabrics_fill_the_screen(self):
        # 140 hosts of which every name is to be read: no narrow column with two thirds of the screen empty.
        page = REPOSITORY / "topo" / "draw" / "page" / "geometry.js"
        for groups, hosts in ((10, 14), (14, 10), (16, 10)):
            script = f"""
                const groups = Array.from({{ length: {groups} }}, (_, g) =>
                  ({{ id: "g" + g, leaves: [g], hosts: Array.from({{ length: {hosts} }}, (_, i) => g * {hosts} + i) }}));
                const hosts = {{ name: groups.flatMap((g) => g.hosts).map((h) => "n" + (100 + h)) }};
                const spineGroups = [{{ groups: groups.map((_, i) => i), spines: [90, 91] }}], cores = [], marks = new Map([[0, {{}}]]);
                const leafName = () => "dir1/L01/U1";
                {page.read_text()}
                const all = place();
                console.log(all.w, all.h);"""
            done = subprocess.run(["node", "-e", script], text=True, timeout=60, check=False, capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            width, height = map(float, done.stdout.split())
            self.assertGreater(min(1500 / width, 1000 / height), 0.9, f"{groups} groups: {width} x {height}")

    def test_a_big_fabric_is_drawn_as_rows(self):
        made = run(("gen", "--nodes", "48", "--group-size", "8", "--rails", "2", "--defects", "missing-rail=0.02"))
        file = self.folder / "dump"
        file.write_text(made.stdout)
        lines = run(("draw", str(file))).stdout.splitlines()
        rows = [line.split() for line in lines if re.match(r"g\d", line)]
        self.assertEqual([row[:4] for row in rows[:2]], [["g1", "8", "n01", "–"], ["g2", "8", "n09", "–"]])
        self.assertEqual(len(rows), 6)
        self.assertEqual([row[-1] for row in rows].count("1"), 1, "one group has the defect")
        self.assertFalse([line for line in lines if line.startswith("+")], "no empty boxes")
        # With a job, what it does not touch is one line.
        lines = run(("draw", str(file), "--nodes", "n[01-08]")).stdout.splitlines()
        self.assertIn("  g2 – g6, 5 groups: 40 hosts, none of the job", lines)

    def test_what_place_prints_is_a_plan(self):
        plan = self.folder / "plan"
        plan.write_text(run(("place", DUMP, "--shape", "tp=8,pp=4,dp=4", "--ranks-per-node", "8", "--json")).stdout)
        own = self.folder / "own"
        own.write_text(PLAN)
        for words in (("explain", "--fabric", DUMP), ("draw", DUMP)):
            for file in (plan, own):
                for option in ("--plan", "--job"):
                    done = run((*words, option, str(file)))
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                done = run((*words, "--plan", "-"), input=file.read_text())
                self.assertEqual((done.returncode, done.stderr), (0, ""))
        for text in ('{"nodes":[]}', '{"nodes":[],"shape":"tp=8"}', '{"nodes":["gpu0001"],"shape":"tp=8,dp=2,pp=3x"}', '{"nodes":7,"shape":"tp=8"}',
                     '{"nodes":["gpu0001","gpu0002","gpu0003"],"shape":"tp=8"}', "{", "[]", ""):
            plan.write_text(text)
            done = run(("explain", "--fabric", DUMP, "--plan", str(plan)))
            self.assertEqual((done.returncode, done.stdout), (2, ""), text)

    def test_a_node_has_one_slot_of_a_plan(self):
        twice = '{"shape":"tp=8,dp=2","nodes":["gpu0001","gpu0001"]}'
        spare_too = '{"shape":"tp=8,dp=2","nodes":["gpu0001","gpu0002"],"spares":["gpu0002"]}'
        for words in (("explain", "--fabric", DUMP), ("draw", DUMP)):
            for plan in (twice, spare_too):
                done = run((*words, "--plan", plan))
                self.assertEqual((done.returncode, done.stdout), (2, ""), plan)
                self.assertIn(" twice; a node has one slot", done.stderr)

    def test_a_node_that_the_fabric_lacks_is_told(self):
        done = run(("draw", DUMP, "--plan", '{"shape":"tp=8,dp=2","nodes":["elsewhere","gpu0001"]}'))
        self.assertEqual(done.returncode, 0)
        self.assertIn("\nJob tp=8,dp=2: 16 ranks on 2 hosts, 0 spares; 1 host not on the fabric\n", done.stdout)

    def test_one_free_node_is_told_as_one(self):
        done = run(("place", DUMP, "--shape", "tp=8,dp=2", "--nodes", "2", "--free", "gpu0001"))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("2 nodes are needed (2 and 0 spares), 1 is free on the fabric", done.stderr)

    def test_a_switch_without_a_name_is_known_by_its_guid(self):
        whole = run(("gen", "--shape", "fat-tree", "--nodes", "64", "--group-size", "8", "--radix", "16")).stdout
        leaves = re.findall(r'"S-([0-9a-f]+)"\t\t# "MF0;leaf', whole)

        def without_uplink(text, leaf, number):
            records = text.split("\n\n")
            own = next(i for i, record in enumerate(records) if f'"S-{leaf}"\t\t#' in record)
            line = [line for line in records[own].splitlines() if re.match(r'\[\d+\]\t"S-', line)][number]
            peer, port = re.match(r'\[\d+\]\t"S-([0-9a-f]+)"\[(\d+)\]', line).groups()
            other = next(i for i, record in enumerate(records) if re.search(rf'Switch\t\d+ "S-{peer}"', record))
            records[own] = (records[own] + "\n").replace(line + "\n", "").rstrip("\n")
            records[other] = re.sub(rf"\n\[{port}\]\t[^\n]*", "", records[other])
            return "\n\n".join(records).rstrip("\n") + "\n"

        for name in ("Quantum Mellanox Technologies", "Sun DCS 36 QDR switch localhost"):
            bare = re.sub(r'"MF0;[^"]*"', f'"{name}"', whole)
            accepted, again, other = self.folder / "accepted", self.folder / "again", self.folder / "other"
            accepted.write_text(without_uplink(bare, leaves[1], 0))
            again.write_text(without_uplink(accepted.read_text(), leaves[1], 2))
            other.write_text(without_uplink(accepted.read_text(), leaves[5], 2))
            for now, leaf, found in ((accepted, None, 0), (again, leaves[1], 1), (other, leaves[5], 1)):
                with self.subTest(name=name, now=now.name):
                    done = run(("check", "--golden", str(accepted), "--json", str(now)))
                    self.assertEqual(done.returncode, found, done.stderr)
                    told = [defect for defect in json.loads(done.stdout) if defect["kind"] == "missing-uplink"]
                    self.assertEqual([defect.get("where", defect["objects"])[0] for defect in told], [f"0x{leaf}"] if leaf else [])
                    self.assertTrue(all(f"0x{leaf}" in defect["objects"][0] for defect in told))

    def test_sums_are_exact(self):
        dump = self.folder / "dump"
        for rate in ("4xFDR10", "4xEDR", "4xSDR", "4xFDR"):
            run(("gen", "--shape", "fat-tree", "--nodes", "36", "--group-size", "9", "--rate", rate, "-o", str(dump)))
            for words in ("show", "show --json"):
                self.assertNotRegex(run((*words.split(), str(dump))).stdout, r"(gbps\": |to leaves +|to spines +|by_rail\": \[\s+)\d+\.\d{3}", rate)


if __name__ == "__main__":
    unittest.main(verbosity=2)

# SPDX-License-Identifier: BSD-3-Clause
"""What banyan-topo snapshot keeps of the last one, by whose names it goes, and that a fabric without hosts is no fabric. Asks a stand-in of sinfo."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
TOPO = Path(os.environ.get("BANYAN_BUILD", REPOSITORY / "build" / "dev")) / "bin" / "banyan-topo"
DUMP = (REPOSITORY / "test" / "fixtures" / "ib" / "ibnetdiscover.txt").read_text()


def without(text, host):
    """The dump as it is while the host is off: no record of its HCAs, and their ports of the leaves are dark."""
    records = [record for record in text.split("\n\n") if f'# "{host} ' not in record.split("\n[")[0]]
    return "\n\n".join("\n".join(line for line in record.split("\n") if f'"{host} ' not in line) for record in records)


class Snapshot(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.file = self.folder / "fabric"

    def run_topo(self, *words):
        path = f"{self.folder}:{os.environ['PATH']}" if (self.folder / "sinfo").exists() else str(self.folder)
        return subprocess.run([TOPO, *words], text=True, timeout=60, check=False, capture_output=True, env={**os.environ, "PATH": path})

    def sinfo_says(self, text, status=0):
        program = self.folder / "sinfo"
        program.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {status}\n")
        program.chmod(0o755)

    def dump(self, text):
        file = self.folder / "dump"
        file.write_text(text)
        return str(file)

    def snapshot(self, text, *words):
        return self.run_topo("snapshot", self.dump(text), "-o", str(self.file), *words)

    def hosts(self, *words):
        return self.run_topo("show", str(self.file), *words).stdout.split(" hosts")[0]

    def test_hosts_that_slurm_has_switched_off_keep_their_places(self):
        self.assertEqual(self.snapshot(DUMP).returncode, 0)
        golden = self.folder / "golden"
        golden.write_bytes(self.file.read_bytes())
        before = self.run_topo("show", str(self.file)).stdout
        today = without(without(without(DUMP, "gpu0003"), "gpu0004"), "gpu0009")
        self.sinfo_says("gpu0003 idle~\ngpu0003 idle~\ngpu0004 idle#\ngpu0005 idle\ngpu0009 down*")
        self.assertEqual(self.snapshot(today).stderr, "")
        self.assertEqual(self.hosts(), "15", "gpu0009 is down, and not switched off")
        checked = self.run_topo("check", self.dump(today), "--golden", str(golden)).stdout
        self.assertEqual(set(re.findall(r"gpu0\d+", checked)), {"gpu0009"})
        self.sinfo_says("gpu0003 idle~\ngpu0004 idle#\ngpu0009 idle~")
        golden.replace(self.file)
        self.snapshot(today)
        self.assertEqual(self.run_topo("show", str(self.file)).stdout, before)
        # On again, and once more off.
        self.snapshot(DUMP)
        self.snapshot(today)
        self.assertEqual(self.hosts(), "16")

    def test_where_slurm_cannot_be_asked_it_is_said(self):
        for says in (None, ("", 1)):
            with self.subTest(says):
                self.snapshot(DUMP)
                if says:
                    self.sinfo_says(*says)
                done = self.snapshot(without(DUMP, "gpu0003"))
                self.assertEqual(done.returncode, 0)
                self.assertIn("1 host is not on the fabric any more; whether Slurm has switched them off is not known", done.stderr)
                self.assertEqual(self.hosts(), "15")

    def test_hosts_go_by_the_names_of_their_nodes(self):
        names = self.folder / "names"
        names.write_text("".join(f"pod-{i}\tgpu{i:04}\n" for i in range(1, 17)))
        self.snapshot(DUMP, "--names", str(names))
        self.assertIn("pod-[1-9],pod-[10-16]", self.run_topo("show", str(self.file)).stdout)

    def test_a_fabric_without_hosts_is_refused(self):
        nameless = re.sub(r'"\w+ mlx5_\d"', '"MT4129 ConnectX7   Mellanox Technologies"', DUMP)
        for words in (("show",), ("show", "--json"), ("check",), ("nccl",)):
            with self.subTest(words):
                done = self.run_topo(*words, self.dump(nameless))
                self.assertEqual(done.returncode, 2)
                self.assertIn('has no compute host: HCAs are called "MT4129 ConnectX7', done.stderr)
        self.assertEqual(self.snapshot(nameless).returncode, 2)
        self.assertFalse(self.file.exists())


if __name__ == "__main__":
    unittest.main()

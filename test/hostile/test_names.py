# SPDX-License-Identifier: BSD-3-Clause
"""Node descriptions that a host set on its own HCA (any root of any host may): bytes that are no UTF-8, escape sequences, line feeds.
Every way in which banyan-topo shows a fabric goes on working, and its JSON is JSON."""

import json
import subprocess
import tempfile
import unittest
from pathlib import Path

from harness import program

TOOL = program("banyan-topo")
BAD = {"no UTF-8": b"n\xff\xc01", "an escape sequence": b"n\x1b[2J1", "one byte of C1": b"n\xc2\x9b2J1", "half a character": b"n01\xe2\x82"}


class Names(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)
        self.fabric = subprocess.run([TOOL, "gen", "--nodes", "4", "--group-size", "2", "--rails", "2"], check=True,
                                     capture_output=True).stdout

    def run_tool(self, *words):
        done = subprocess.run([TOOL, *words], capture_output=True, timeout=60)
        # A signal is a negative status: std::terminate is one.
        self.assertGreaterEqual(done.returncode, 0, (words, done.stderr))
        # Nothing that a terminal obeys.
        for text in (done.stdout, done.stderr):
            self.assertFalse([byte for byte in text if byte < 32 and byte not in b"\n\t" or byte == 127], (words, text[:2000]))
            self.assertNotIn(b"\xc2\x9b", text, words)
        return done

    def test_whatever_a_host_calls_itself(self):
        self.assertEqual(self.fabric.count(b"n01") > 0, True)
        for what, name in BAD.items():
            file = self.dir / "fabric"
            file.write_bytes(self.fabric.replace(b"n01", name))
            plan = json.dumps({"version": 2, "job": 1, "generation": 1, "restart": 0, "shape": "dp=2", "ranks_per_node": 1,
                               "nodes": "n[02-03]", "buddies": [1, 2]})
            for words in (["show", "--json", file], ["check", "--json", file], ["diff", "--json", file, file],
                          ["place", "--json", "--shape", "tp=2,dp=2", "--nodes", "4", "--ranks-per-node", "1", file],
                          ["explain", "--json", "--plan", plan, "--fabric", file]):
                with self.subTest(name=what, command=words[0]):
                    done = self.run_tool(*words)
                    if done.stdout:
                        json.loads(done.stdout)
            for words in (["show", file], ["check", file], ["slurm", file], ["snapshot", file, "-o", self.dir / "snapshot"],
                          ["draw", file, "-o", self.dir / "drawing.svg"]):
                with self.subTest(name=what, command=words[0]):
                    self.run_tool(*words)


if __name__ == "__main__":
    unittest.main(verbosity=2)

# SPDX-License-Identifier: BSD-3-Clause
"""banyan-doctor on hosts that are spoilt in one way each: it names just that, and nothing else is called wrong."""

import os
import re
import secrets
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import spoilt_host  # noqa: F401  declares cases
import spoilt_slurm  # noqa: F401
from broken_site import BUILD, Host, plugin
from spoilt import CASES, h_agents


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare") and shutil.which("munged"), "needs root and munge")
class BrokenSites(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = Path(tempfile.mkdtemp(prefix="banyan-doctor-"))
        cls.dir.chmod(0o755)
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)
        plugin(cls.dir / "right.so", "0x160508")
        plugin(cls.dir / "older.so", "0x160507")
        topo = BUILD / "bin" / "banyan-topo"
        subprocess.run([topo, "gen", "--nodes", "10", "--group-size", "5", "--rails", "1", "--host-prefix", "n", "-o", cls.dir / "dump"], check=True)
        dump = (cls.dir / "dump").read_text()
        (cls.dir / "dump").write_text(re.sub(r"\bn(\d\d?)\b", lambda m: f"n{int(m[1]):03}", dump))
        subprocess.run([topo, "snapshot", cls.dir / "dump", "-o", cls.dir / "snapshot"], check=True, capture_output=True)
        key = cls.dir / "key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))
        cls.munged = subprocess.Popen(["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={cls.dir}/munge",
                                       f"--pid-file={cls.dir}/pid", f"--log-file={cls.dir}/log", f"--seed-file={cls.dir}/seed"],
                                      stderr=subprocess.DEVNULL)
        cls.addClassCleanup(cls.munged.wait)
        cls.addClassCleanup(cls.munged.terminate)
        while subprocess.run(["munge", "-S", cls.dir / "munge", "-n"], capture_output=True, check=False).returncode:
            if cls.munged.poll() is not None:
                raise AssertionError("munged ended")
            time.sleep(0.05)

    def judge(self, host, expected, **options):
        code, found, _ = host.doctor(**options)
        bad = [line for line in found if line.startswith(("wrong ", "unknown "))]
        for text in expected:
            self.assertTrue(any(re.search(text, line) for line in bad), f"{text!r} is not in {bad}")
        for line in bad:
            self.assertTrue(any(re.search(text, line) for text in expected), f"{line!r} is told, too")
            self.assertNotEqual(line.rpartition("| ")[2], "", line)
        self.assertEqual(code, 1 if bad else 0)
        return found

    def test_hosts_that_are_well(self):
        for name in ("ctl", "n001", "login1"):
            with self.subTest(name):
                host = Host(self.dir)
                host.host = name
                found = self.judge(host, ())
                self.assertTrue(any(line.startswith("fine ") for line in found))

    def test_spoilt_ones(self):
        self.assertGreaterEqual(len(CASES), 25)
        for name, (spoil, expected) in CASES.items():
            with self.subTest(name):
                host = Host(self.dir)
                spoil(host)
                self.judge(host, expected)
                shutil.rmtree(host.dir)

    def test_ten_thousand_nodes(self):
        """Where no server answers for the names of a tenth: it ends in time all the same, and says for whom there was none."""
        host = Host(self.dir)
        host.host = "ctl"
        host.nodes = [{"NodeName": f"n{i:05}", "NodeAddr": f"n{i:05}.invalid" if i % 10 == 0 else "127.0.0.1", "NodeHostName": f"n{i:05}",
                       "RealMemory": "1000", "MemSpecLimit": "300", "State": "IDLE"} for i in range(10000)]
        host.answer("agents", h_agents(host, without=("n00007",)))
        host.before = "echo 'nameserver 127.0.0.1' >/etc/resolv.conf\n"
        found = self.judge(host, (r"wrong agents: the controller hears 9999 of 10000 nodes; it does not hear n00007", r"wrong fabric snapshot: ",
                                  r"unknown port 5710 \(banyan-ckptd\): no time was left for \d{1,3} of 10000 nodes", r"no address for"), seconds=150)
        self.assertTrue(any(line.startswith("note port 5710") for line in found), found)


if __name__ == "__main__":
    unittest.main(verbosity=2)

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A real opensm on a simulated fabric under banyan-faultd's controller: each physical fault is one incident. No Slurm."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

BIN = Path(os.environ["BANYAN_BUILD"]) / "bin"
NET = Path(__file__).resolve().parents[1] / "fixtures" / "ib" / "ibnetdiscover.txt"
DEADLINE = 60


class Faults(unittest.TestCase):
    def setUp(self):
        self.dir = Path(tempfile.mkdtemp(prefix="banyan-fabric-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.preload = str(next(Path("/usr/lib").glob("*/umad2sim/libumad2sim.so")))
        self.env = {**os.environ, "IBSIM_SOCKNAME": f"bf{os.getpid()}", "OSM_TMP_DIR": str(self.dir / "osm"),
                    "OSM_CACHE_DIR": str(self.dir / "osm"), "TZ": "UTC"}
        for folder in ("osm", "cli"):
            (self.dir / folder).mkdir()
        os.mkfifo(self.dir / "console")
        console = os.open(self.dir / "console", os.O_RDWR)
        self.addCleanup(os.close, console)
        self.console = lambda text: os.write(console, (text + "\n").encode())
        self.start(["ibsim", "-s", "-N", "24000", "-S", "2048", "-P", "160000", NET], stdin=console, stdout=self.dir / "ibsim.out")
        self.wait(lambda: b"sim>" in (self.dir / "ibsim.out").read_bytes(), "ibsim reads the fabric")
        self.opensm = self.start_opensm("gpu0001 mlx5_0", "opensm.log")
        for tool in ("ibnetdiscover", "sminfo"):
            wrapper = self.dir / tool
            wrapper.write_text(f'#!/bin/sh\nSIM_HOST="gpu0016 mlx5_7"\nexport SIM_HOST\ncd {self.dir}/cli\n'
                               f'LD_PRELOAD={self.preload} exec {tool} "$@"\n')
            wrapper.chmod(0o755)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.conf = self.dir / "banyan.conf"
        self.conf.write_text(f'[fault]\nport = {port}\nbind = "127.0.0.1"\nsocket = "{self.dir}/sock"\nhistory = "{self.dir}/h.db"\n'
                             f'opensm_log = "{self.dir}/opensm.log"\nfabric_dump_command = ["{self.dir}/ibnetdiscover"]\n'
                             f'sm_probe_command = ["{self.dir}/sminfo"]\nsm_probe_grace = "2s"\n[topo]\nsnapshot = "{self.dir}/none"\n')
        self.start([BIN / "banyan-faultd", "controller", "--config", self.conf, "--log", self.dir / "log"])
        self.wait(lambda: self.incidents() == [], "the controller answers")

    def start(self, words, stdin=subprocess.DEVNULL, stdout=os.devnull, **more):
        with open(stdout, "ab") as out:
            child = subprocess.Popen([str(word) for word in words], stdin=stdin, stdout=out, stderr=out, env={**self.env, **more.pop("env", {})},
                                     cwd=more.pop("cwd", self.dir))
        self.addCleanup(child.wait, DEADLINE)
        self.addCleanup(child.kill)
        return child

    def start_opensm(self, host, log):
        child = self.start(["opensm", "-d2", "-s", "2", "-f", self.dir / log], env={"SIM_HOST": host, "LD_PRELOAD": self.preload},
                           cwd=self.dir / "osm")
        up = (self.dir / log).read_bytes().count(b"SUBNET UP") if (self.dir / log).exists() else 0
        self.wait(lambda: (self.dir / log).exists() and (self.dir / log).read_bytes().count(b"SUBNET UP") > up, "the subnet is up")
        return child

    def wait(self, condition, what):
        end = time.monotonic() + DEADLINE
        while not condition():
            if time.monotonic() > end:
                self.fail(f"{what}: not within {DEADLINE} s\n{(self.dir / 'log').read_text() if (self.dir / 'log').exists() else ''}")
            time.sleep(0.05)

    def incidents(self):
        done = subprocess.run([BIN / "banyan-fault", "--config", self.conf, "incidents", "--json"], capture_output=True, text=True, timeout=DEADLINE,
                              check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def shown(self):
        return [(i["reason"], i["times"]["closed_ms"] == 0) for i in self.incidents()]

    def test_one_incident_for_each_fault(self):
        self.opensm.send_signal(signal.SIGKILL)  # without a last word
        self.wait(lambda: self.shown() == [("subnet-manager", True)], "the dead manager is noticed")
        self.assertEqual(self.incidents()[0]["object"]["kind"], "manager")
        # Nobody tells of changes now, and they are seen all the same.
        self.console('Unlink "H-a088c20300003010"[1]')
        self.wait(lambda: self.shown()[1:] == [("host-link", True)], "a link that breaks meanwhile")
        self.opensm = self.start_opensm("gpu0001 mlx5_0", "opensm.log")
        self.wait(lambda: self.shown()[0] == ("subnet-manager", False), "the manager is back")
        self.console('ReLink "H-a088c20300003010"[1]')
        self.wait(lambda: self.shown() == [("subnet-manager", False), ("host-link", False)], "the link is back")
        # A host that goes, and whose HCAs come back one by one.
        for rail in range(8):
            self.console(f'Unlink "H-a088c203000050{rail}0"[1]')
        self.wait(lambda: ("host-lost", True) in self.shown(), "the host is gone")
        for rail in range(7):
            self.console(f'ReLink "H-a088c203000050{rail}0"[1]')
            left = f"{7 - rail} of 8 HCAs"
            self.wait(lambda left=left: any(i["cause"].startswith(left) for i in self.incidents()), left)
        self.assertEqual(self.shown().count(("host-link", True)), 0)
        self.console('ReLink "H-a088c20300005070"[1]')
        self.wait(lambda: not any(is_open for _, is_open in self.shown()), "all are back")
        self.assertEqual([reason for reason, _ in self.shown() if reason == "host-lost"], ["host-lost"])
        before = len(self.incidents())
        for flap in range(5):
            for command, is_open in (("Unlink", True), ("ReLink", False)):
                self.console(f'{command} "S-fc6a1c0300000200"[33]')
                self.wait(lambda is_open=is_open: self.shown()[before:] == [("fabric-link", is_open)], f"flap {flap}: {command}")
        self.assertEqual(self.incidents()[-1]["flaps"], 4)


if __name__ == "__main__":
    unittest.main(verbosity=2)

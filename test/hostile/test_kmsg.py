#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's own device: a user's processes end by a fault, named like a broken memory module. What the kernel says of them is no event."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from harness import HELPERS, main, program

USER = 61002
TAILS = ("on mc#1csrow#0channel#0 (csrow:0 channel:0 page:0x0 offset:0x0 grain:64)", "QID 4 timeout, aborting", "x.c:12!",
         "XID (PCI:0000:10:00): 79, GPU has fallen off the bus.", "AER: device recovery failed")
NAMES = ("EDAC MC1: 2 UE ", "EDAC MC1: 2 UE", "nvme sda: I/O 1", "kernel BUG at ", "NVRM: Xid (PCI:", "mce: [Hardware ", "INFO: task a:1")


class Device(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="banyan-hostile-")
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)
        self.dir.chmod(0o755)

    def records(self, done):
        """What the kernel says meanwhile, as the agent gets it."""
        try:
            device = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        except OSError as e:
            self.skipTest(f"/dev/kmsg: {e}")
        try:
            os.lseek(device, 0, os.SEEK_END)
            done()
            out = []
            while True:
                try:
                    out.append(os.read(device, 8192).decode(errors="replace").split("\n")[0])
                except BlockingIOError:
                    return out
                except BrokenPipeError:
                    continue
        finally:
            os.close(device)

    def test_processes_that_crash(self):
        def crash():
            for tail in TAILS:
                file = self.dir / tail.replace("/", "")
                shutil.copy(HELPERS / "bin" / "hostile_crash", file)
                for name in NAMES:
                    for how in ("segfault", "trap"):
                        subprocess.run([file, name, how], user=USER, group=USER, extra_groups=[], cwd="/", check=False)
        # The kernel says little of many at once, and goes on after five seconds: what it says is enough.
        said = self.records(crash)
        named = [r for r in said if any(n in r for n in NAMES)]
        if not named:
            self.skipTest("this kernel does not say how processes end (debug.exception-trace, or it has another log)")
        log = "\n".join(said) + "\n"
        parsed = subprocess.run([program("banyan-fault"), "parse", "--format", "kmsg", "-"], input=log, capture_output=True, text=True, timeout=60,
                                check=False)
        self.assertEqual(parsed.returncode, 0, parsed.stderr)
        accused = [line for line in parsed.stdout.splitlines() if any(n in line for n in NAMES)]
        self.assertEqual(accused, [], log)


if __name__ == "__main__":
    main()

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the packages' scripts have systemd do: at an installation, an upgrade and a removal. systemctl is a stub that writes down its words."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "etc" / "packages"
RELOAD = "daemon-reload"
RESTART = "try-restart banyan-faultd-agent.service banyan-faultd-controller.service"
STOPS = {"ckptd": ["stop banyan-ckptd@*.service", "disable banyan-ckptd@.service"],
         "faultd": ["disable --now banyan-faultd-agent.service banyan-faultd-controller.service"],
         "tools": ["disable --now banyan-snapshot.timer banyan-sweep.timer"]}


@unittest.skipUnless(os.geteuid() == 0, "needs root, for a /run of its own")
class Scripts(unittest.TestCase):
    def told(self, script, *words):
        """What systemctl was told, a line a call."""
        with tempfile.TemporaryDirectory() as folder:
            stub, log = Path(folder, "systemctl"), Path(folder, "log")
            stub.write_text(f'#!/bin/sh\necho "$*" >>{log}\n')
            stub.chmod(0o755)
            Path(folder, "systemd-tmpfiles").symlink_to("/bin/true")
            subprocess.run(["unshare", "-m", "sh", "-ec", 'mount -t tmpfs none /run; mkdir -p /run/systemd/system; exec sh "$@"', "sh", script, *words],
                           env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}, check=True)
            return log.read_text().splitlines() if log.exists() else []

    def test_debian(self):
        for package, stops in STOPS.items():
            script = SCRIPTS / "deb" / package
            with self.subTest(package):
                self.assertEqual(self.told(script / "postinst", "configure", ""), [RELOAD])
                self.assertEqual(self.told(script / "postinst", "configure", "0.0.9"), [RELOAD, RESTART] if package == "faultd" else [RELOAD])
                self.assertEqual(self.told(script / "prerm", "upgrade", "0.0.9"), [])
                self.assertEqual(self.told(script / "prerm", "remove"), stops)

    def test_rpm(self):
        """Their number is that of the installed packages afterwards."""
        for package, stops in STOPS.items():
            with self.subTest(package):
                post, preun = (SCRIPTS / "rpm" / f"{package}.{when}" for when in ("post", "preun"))
                self.assertEqual(self.told(post, "1"), [RELOAD])
                self.assertEqual(self.told(post, "2"), [RELOAD, RESTART] if package == "faultd" else [RELOAD])
                self.assertEqual(self.told(preun, "1"), [])
                self.assertEqual(self.told(preun, "0"), stops)


if __name__ == "__main__":
    unittest.main()

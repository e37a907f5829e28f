# SPDX-License-Identifier: BSD-3-Clause
"""SIGHUP, as logrotate sends it: a log file is opened anew, and all that a daemon holds stays. No cluster is needed."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from harness import BUILD, REPOSITORY, main

os.environ.setdefault("BANYAN_BUILD", str(BUILD))
sys.path.insert(0, str(REPOSITORY / "test" / "hostile"))

from lone_ckptd import Daemon, Rank, eventually  # noqa: E402

CKPTD = BUILD / "bin" / "banyan-ckptd"


class Hangup(unittest.TestCase):
    def log_goes_on(self, log, pid):
        """Renames the log, hangs up, and waits for the new one."""
        log.rename(log.with_name("old"))
        os.kill(pid, signal.SIGHUP)
        self.assertTrue(eventually(lambda: log.exists() and "opened anew" in log.read_text()), "no new log")

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_ckptd_keeps_sessions_and_memory(self):
        with Daemon() as daemon:
            self.assertNotIn("error", daemon.open(1, os.geteuid()))
            rank = Rank(daemon.socket, 1)
            rank.seal(0, 7, b"state" * 1000)
            sealed = lambda step: (daemon.session(1)["committed"] or {}).get("step") == step  # noqa: E731
            self.assertTrue(eventually(lambda: sealed(7)), daemon.session(1))
            before = daemon.session(1)
            self.log_goes_on(daemon.log, daemon.process.pid)
            self.assertEqual(daemon.session(1), before)
            rank.seal(1, 8, b"later" * 1000)
            self.assertTrue(eventually(lambda: sealed(8)), daemon.session(1))
            rank.link.close()

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("logrotate"), "needs root and logrotate")
    def test_logrotate_as_it_is_installed(self):
        with Daemon() as daemon:
            conf = daemon.dir / "rotate"
            text = (REPOSITORY / "etc/logrotate.d/banyan-ckptd").read_text()
            conf.write_text(text.replace("/var/log/banyan/ckptd*.log", str(daemon.log)).replace("/run/banyan", str(daemon.dir)))
            for _ in range(2):
                subprocess.run(["logrotate", "--force", "--state", daemon.dir / "state", conf], check=True, capture_output=True, timeout=60)
                self.assertTrue(eventually(lambda: daemon.log.exists() and "opened anew" in daemon.log.read_text()))
            self.assertTrue((daemon.dir / "log.1").exists() and (daemon.dir / "log.2.gz").exists())
            self.assertTrue(daemon.alive())

    def test_faultd(self):
        for role in ("controller", "agent"):
            with self.subTest(role=role), tempfile.TemporaryDirectory() as folder:
                dir, log = Path(folder), Path(folder) / "log"
                (dir / "kmsg").touch()
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", 0))
                    port = probe.getsockname()[1]
                (dir / "conf").write_text(f'[fault]\nbind = "127.0.0.1"\nport = {port}\ncontroller = "127.0.0.1"\nsocket = "{dir}/s"\n'
                                          f'history = "{dir}/db"\nkmsg = "{dir}/kmsg"\n[topo]\nsnapshot = "{dir}/none"\n')
                daemon = subprocess.Popen([BUILD / "bin/banyan-faultd", role, "--config", dir / "conf", "--log", log],
                                          stderr=subprocess.DEVNULL)
                try:
                    self.assertTrue(eventually(lambda: log.exists() and re.search(r"controller|agent of", log.read_text())))
                    if role == "controller":
                        self.assertTrue(eventually(lambda: (dir / "s").exists()))
                    self.log_goes_on(log, daemon.pid)
                    self.assertIsNone(daemon.poll())
                finally:
                    daemon.kill()
                    daemon.wait()

    def test_without_a_log_file_it_is_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            conf = Path(folder) / "conf"
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            conf.write_text(f'[ckptd]\nsocket = "{folder}/s"\nbind = "127.0.0.1"\nport = {port}\n')
            daemon = subprocess.Popen([CKPTD, "--config", conf, "--node", "n01"], stderr=subprocess.PIPE, text=True)
            try:
                self.assertTrue(eventually(lambda: (Path(folder) / "s").exists()))
                os.kill(daemon.pid, signal.SIGHUP)
                os.kill(daemon.pid, signal.SIGTERM)
                self.assertEqual(daemon.wait(60), 0)
            finally:
                daemon.kill()
                daemon.stderr.close()


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""What keeps a checkpoint daemon from starting is in its log and in the user's one line; and the addresses that it answers on."""

import os
import socket
import subprocess
import tempfile
import tomllib
import unittest
from pathlib import Path

from harness import BUILD, ClusterCase, main

CKPTD = BUILD / "bin" / "banyan-ckptd"


class Reasons(ClusterCase):
    """A prolog that cannot start the daemon: the job trains without, and its user knows why."""
    nodes = 2

    def conf(self):
        return self.cluster.dir / "etc" / "banyan.conf"

    def with_conf(self, change):
        before = self.conf().read_text()
        self.addCleanup(self.conf().write_text, before)
        self.conf().write_text(change(before))

    def off_line(self, *options, nodes=1):
        """Runs a job and returns what its user was told about checkpoints."""
        job = self.cluster.sbatch(f"-N{nodes}", "--ntasks-per-node=1", f"--train-parallel=dp={nodes}", "--train-ckpt=every=1", *options,
                                  script="srun true\n")
        self.cluster.wait_for_job(job)
        lines = [line for line in self.cluster.output(job).splitlines() if "checkpoint" in line]
        self.assertEqual(len(lines), 1, self.cluster.output(job))
        return lines[0]

    def log(self, node):
        return (self.cluster.dir / "log" / f"ckptd-{node}.log").read_text()

    def test_the_port_is_taken(self):
        port = tomllib.loads(self.conf().read_text())["ckptd"]["port"]
        address = self.cluster.address("n01")
        with socket.create_server((address, port)):
            line = self.off_line("--nodelist=n01")
        reason = f"cannot listen on {address}:{port}: Address already in use"
        self.assertIn("checkpoints are off on n01: the checkpoint daemon cannot start: " + reason, line)
        self.assertIn(reason, self.log("n01"))
        # The next job has them again.
        job = self.cluster.sbatch("-N1", "--nodelist=n01", "--train-parallel=dp=1", "--train-ckpt=every=1", script="srun true\n")
        self.cluster.wait_for_job(job)
        self.assertNotIn("checkpoint", self.cluster.output(job))
        self.assertEqual(list((self.cluster.dir / "run").glob("*.no-job-*")), [])

    def test_the_daemon_s_configuration_is_wrong(self):
        self.with_conf(lambda text: text.replace("[ckptd]\n", "[ckptd]\nkepe = 3\n"))
        line = self.off_line(nodes=2)  # one line, whatever the number of nodes
        self.assertIn('[ckptd] has no key "kepe"; did you mean "keep"?', line)
        self.assertIn('has no key "kepe"', self.log("n01"))

    def test_the_file_cannot_be_read_at_all(self):
        self.with_conf(lambda text: text + "\n[ckptd\n")
        self.assertRegex(self.off_line("--nodelist=n01"), r"off on n01: .*banyan\.conf:\d+:\d+: ")


@unittest.skipUnless(os.geteuid() == 0, "needs root")
class Addresses(unittest.TestCase):
    """--bind with names, in a mount and UTS namespace with an /etc/hosts of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        (self.dir / "banyan.conf").write_text(f'[ckptd]\nsocket = "{self.dir}/ckptd.sock"\nport = {self.port}\n')

    def start(self, bind, hosts, host="elsewhere"):
        (self.dir / "hosts").write_text(hosts)
        inside = f'mount --make-rprivate / && mount --bind {self.dir}/hosts /etc/hosts && hostname {host} && exec "$@"'
        daemon = subprocess.Popen(["unshare", "--mount", "--uts", "sh", "-c", inside, "sh", CKPTD, "--config", self.dir / "banyan.conf",
                                   "--node", "n01", "--bind", bind, "--log", self.dir / "log", "--detach"],
                                  stderr=subprocess.PIPE, text=True)
        self.addCleanup(daemon.stderr.close)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.kill)
        self.said = daemon.stderr.read()  # to its end: the daemon answers, or has ended
        return daemon

    def reaches(self, address):
        try:
            socket.create_connection((address, self.port), 5).close()
        except OSError:
            return False
        return True

    def test_a_name_with_addresses_of_both_kinds(self):
        self.start("twin.site", "127.0.3.1 twin.site twin\n::1 twin.site\n")
        self.assertEqual(self.said, "")
        self.assertEqual([self.reaches(address) for address in ("127.0.3.1", "::1", "127.0.0.1")], [True, True, False])

    def test_the_host_s_own_name_on_loopback_is_no_address(self):
        self.start("n01.site", "127.0.1.1 n01.site n01\n", host="n01")
        self.assertEqual([self.reaches(address) for address in ("127.0.0.1", "::1")], [True, True])
        self.assertIn("n01.site is known on this node as 127.0.1.1 alone", (self.dir / "log").read_text())

    def test_a_short_name_of_another_host_is_what_it_says(self):
        self.start("n02", "127.0.3.2 n02\n", host="n01")
        self.assertEqual([self.reaches(address) for address in ("127.0.3.2", "127.0.0.1")], [True, False])

    def test_an_ipv6_literal_and_every_address(self):
        for bind, reached in (("::1", [False, True]), ("*", [True, True])):
            with self.subTest(bind=bind):
                daemon = self.start(bind, "127.0.0.1 localhost\n")
                self.assertEqual([self.reaches(address) for address in ("127.0.0.1", "::1")], reached)
                daemon.kill()
                daemon.wait()

    def test_an_address_that_swallows_packets_is_not_all_of_a_name(self):
        """An agent whose controller has two addresses, one of which never answers: a listener with a full queue."""
        for silent, open_ in (("127.0.3.1", "127.0.3.2"), ("127.0.3.2", "127.0.3.1")):
            with self.subTest(silent=silent), socket.socket() as full, socket.create_server((open_, self.port)) as controller:
                full.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                full.bind((silent, self.port))
                full.listen(0)
                waiting = []
                for _ in range(64):
                    waiting.append(socket.socket())
                    waiting[-1].settimeout(0.3)
                    try:
                        waiting[-1].connect((silent, self.port))
                    except TimeoutError:
                        break
                else:
                    self.skipTest("a full queue answers on this kernel")
                (self.dir / "hosts").write_text("127.0.3.1 head\n127.0.3.2 head\n")
                (self.dir / "agent.conf").write_text(f'[fault]\ncontroller = "head"\nport = {self.port}\nkmsg = "{self.dir}/kmsg"\n')
                (self.dir / "kmsg").touch()
                inside = f'mount --make-rprivate / && mount --bind {self.dir}/hosts /etc/hosts && exec "$@"'
                agent = subprocess.Popen(["unshare", "--mount", "sh", "-c", inside, "sh", BUILD / "bin/banyan-faultd", "agent", "--node", "n01",
                                          "--config", self.dir / "agent.conf", "--log", self.dir / "agent.log"])
                try:
                    controller.settimeout(60)
                    controller.accept()[0].close()
                finally:
                    agent.kill()
                    agent.wait()
                    for one in waiting:
                        one.close()

    def test_a_name_that_does_not_resolve(self):
        daemon = self.start("no-such-node", "127.0.0.1 localhost\n")
        self.assertNotEqual(daemon.wait(), 0)
        for text in (self.said, (self.dir / "log").read_text()):
            self.assertIn('cannot listen on "no-such-node": no such address or name', text)

    def test_an_option_that_is_not_known(self):
        done = subprocess.run([CKPTD, "--log", self.dir / "log", "--bnid", "x"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        for text in (done.stderr, (self.dir / "log").read_text()):
            self.assertIn("--bnid", text)


if __name__ == "__main__":
    main()

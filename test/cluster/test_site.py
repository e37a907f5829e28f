# SPDX-License-Identifier: BSD-3-Clause
"""The cluster is laid out as a site is: banyan installed in /usr, its plugins in Slurm's own directory, slurmctld an ordinary user, hosts
with names. What stands here is what the other tests stand on."""

import os
import pwd
import signal
import socket
import unittest
from pathlib import Path

from harness import BUILD, Cluster, ClusterCase, main, mounts_of

PLUGINS = ("select_cons_tres_banyan.so", "job_submit_banyan.so", "spank_banyan.so")
AS_SLURM = ("setpriv", "--reuid=slurm", "--regid=slurm", "--clear-groups")


class Site(ClusterCase):
    nodes = 2

    @classmethod
    def setUpClass(cls):
        cls.mounts = mounts_of("/")
        super().setUpClass()
        cls.parts = cls.cluster.parts()
        lines = cls.cluster.out("scontrol", "show", "config").replace(" ", "").splitlines()
        cls.config = dict(line.split("=", 1) for line in lines if "=" in line)

    def of_process(self, part, file):
        return Path(f"/proc/{self.parts[part]}/{file}").read_text()

    def test_plugins_are_in_slurms_directory(self):
        self.assertNotIn("PluginDir", (self.cluster.dir / "etc" / "slurm.conf").read_text())
        plugins = self.config["PluginDir"]
        self.assertRegex(plugins, "^/usr/lib[^:]*$")
        standing = self.cluster.out("ls", "-U", plugins).split()
        for name in PLUGINS:
            self.assertLess(standing.index(name), standing.index("select_cons_tres.so"), "readdir gives ours first")
        maps = self.of_process("slurmctld", "maps")
        self.assertIn(f"{plugins}/{PLUGINS[0]}", maps)
        self.assertNotIn(str(BUILD / "lib"), maps)
        self.assertNotIn("/", (self.cluster.dir / "etc" / "plugstack.conf").read_text().split()[1])

    def test_programs_are_in_usr(self):
        for part in ("faultd-controller", "faultd-n01"):
            self.assertEqual(os.readlink(f"/proc/{self.parts[part]}/exe"), "/usr/libexec/banyan/banyan-faultd")
        for name in ("banyan-topo", "banyan-run"):
            self.assertEqual(self.cluster.out("bash", "-c", f"type -p {name}"), f"/usr/bin/{name}")
        # Its library is found where the loader looks.
        self.assertEqual(self.cluster.run("env", "-u", "LD_LIBRARY_PATH", "/usr/libexec/banyan/banyan-trainer", "--help").returncode, 0)

    def test_the_host_sees_nothing_of_it(self):
        self.assertEqual(mounts_of("/"), self.mounts)
        self.assertEqual(self.cluster.out("bash", "-c", "hostname; pwd", cwd="/var/tmp").split(), [socket.gethostname(), "/var/tmp"])

    def test_slurmctld_is_an_ordinary_user(self):
        user = pwd.getpwnam("slurm")
        self.assertNotEqual(user.pw_uid, 0)
        self.assertEqual(self.config["SlurmUser"], f"slurm({user.pw_uid})")
        status = self.of_process("slurmctld", "status")
        self.assertRegex(status, rf"Uid:(\s+{user.pw_uid}){{4}}\nGid:(\s+{user.pw_gid}){{4}}\n")
        self.assertRegex(status, r"CapEff:\s+0+\n")
        self.assertEqual(self.cluster.out(*AS_SLURM, "head", "-c4", self.cluster.dir / "fabric.snapshot"), "BNYN")
        writable = self.cluster.out(*AS_SLURM, "find", self.cluster.dir, "-writable", "-not", "-type", "l", check=False).splitlines()
        own = [str(self.cluster.dir / name) for name in ("ctld", "log/slurmctld.", "run/slurmctld.pid", "run/munge.socket",
                                                         "run/faultd.sock", "run/ckptd-")]
        self.assertEqual([file for file in writable if not file.startswith(tuple(own))], [])

    def test_its_log_can_be_rotated(self):
        """As logrotate of Debian's package does it: slurmctld opens the new one as the user that it is."""
        log = self.cluster.dir / "log" / "slurmctld.log"
        old = log.with_suffix(".1")
        log.rename(old)
        log.touch()
        user = pwd.getpwnam("slurm")
        os.chown(log, user.pw_uid, user.pw_gid)
        os.kill(self.parts["slurmctld"], signal.SIGUSR2)
        job = self.cluster.sbatch("-N2", "--ntasks-per-node=1", "--train-parallel=dp=2", script="srun true\n")
        self.cluster.wait_for_job(job)
        self.cluster.wait_for(lambda: f"JobId={job}" in log.read_text(), "slurmctld writes to the new log")

    def test_hosts_have_names(self):
        for file in (self.cluster.dir / "etc").glob("*.conf"):
            self.assertNotRegex(file.read_text(), r"\b127\.", file.name)
        self.assertIn("NodeAddr=n02 NodeHostName=n02 ", self.cluster.node("n02")["text"])
        seen = self.cluster.out("srun", "-N2", "--train-parallel=dp=2", "bash", "-c", "echo $SLURMD_NODENAME $(hostname) $MASTER_ADDR")
        self.assertEqual(sorted(seen.splitlines()), ["n01 n01 n01", "n02 n02 n01"])
        job = self.cluster.sbatch("-N2", "--ntasks-per-node=1", "--train-parallel=dp=2", "--train-ckpt=every=1", script="srun true\n")
        self.cluster.wait_for_job(job)
        # Each on the address of its own name, or the second had found the port taken.
        for node in ("n01", "n02"):
            log = (self.cluster.dir / "log" / f"ckptd-{node}.log").read_text()
            self.assertIn(f" and {node}:", log)
            self.assertIn(f"job {job}: session opened", log)
            self.assertNotIn("listening on all addresses", log)


class NotSwitchedOn(unittest.TestCase):
    def test_slurms_own_plugin_alone(self):
        cluster = Cluster(nodes=2, options=("--select", "cons_tres", "--without", "spank,submit,snapshot,fault"))
        self.addCleanup(cluster.remove)
        cluster.up()
        folder = cluster.out("bash", "-c", "scontrol show config | sed -n 's/^PluginDir *= //p'")
        self.assertEqual(cluster.out("bash", "-c", f"cd {folder} && ls select_cons_tres*.so"), "select_cons_tres.so")
        self.assertEqual(sorted(cluster.out("srun", "-N2", "hostname").split()), ["n01", "n02"])


if __name__ == "__main__":
    main()

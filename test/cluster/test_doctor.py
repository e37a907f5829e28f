# SPDX-License-Identifier: BSD-3-Clause
"""banyan-doctor on a live cluster: nothing wrong while it is well, and each thing that we break is named with its cure."""

import json
import os
import shutil
import signal
import time
from pathlib import Path

from harness import BUILD, ClusterCase, main

DOCTOR = BUILD / "bin" / "banyan-doctor"


class Doctor(ClusterCase):
    nodes = 4

    def ask(self, *roles, node="n01", env=None):
        """(exit code, {subject: finding} of what is not fine)"""
        words = [word for role in roles for word in ("--role", role)]
        # scripts/cluster sets its own variables: ours come after them.
        variables = [f"{key}={value}" for key, value in (env or {}).items()]
        done = self.cluster.run("env", *variables, DOCTOR, "--json", "--node", node, *words, check=False)
        told = json.loads(done.stdout)
        return done.returncode, [finding for finding in told["findings"] if finding["verdict"] != "fine"]

    def wrong(self, *roles, **options):
        """What is wrong or unknown, as text; the exit code has to agree."""
        code, found = self.ask(*roles, **options)
        bad = [finding for finding in found if finding["verdict"] in ("wrong", "unknown")]
        self.assertEqual(code, 1 if bad else 0)
        for finding in bad:
            self.assertTrue(finding["why"] and finding["fix"], finding)
        return [f"{finding['subject']}: {finding['what']}" for finding in bad]

    def assert_wrong(self, text, *roles, **options):
        found = self.wrong(*roles, **options)
        self.assertTrue(any(text in line for line in found), f"{text!r} is not in {found}")

    def assert_well(self):
        for role in ("controller", "compute", "fabric", "login"):
            self.assertEqual(self.wrong(role), [], role)

    def conf(self, change):
        """banyan.conf with a change, as a file of root's; the path."""
        text = (self.cluster.dir / "etc" / "banyan.conf").read_text()
        path = self.cluster.dir / "etc" / "doctor.conf"
        path.write_text(change(text))
        self.addCleanup(path.unlink, missing_ok=True)
        return {"BANYAN_CONF": str(path)}

    def asked_with(self, change, *roles):
        env = self.conf(change)
        return self.wrong(*roles, env=env) if roles else env

    def test_a_cluster_that_is_well(self):
        self.assert_well()
        done = self.cluster.run(DOCTOR, "--quiet", "--role", "login", "--role", "controller")
        self.assertEqual((done.stdout, done.stderr), ("", ""))

    def test_a_look_is_no_attack(self):
        """It calls every daemon's port and hangs up: no log is filled by a cron job."""
        self.assert_well()
        logs = [file for file in (self.cluster.dir / "log").iterdir() if "ckptd" in file.name or "faultd" in file.name]
        self.assertTrue(any("faultd-controller" in file.name for file in logs), logs)
        for file in logs:
            self.assertNotIn("a connection from", file.read_text(errors="replace"), file.name)

    def test_snapshot(self):
        snapshot = self.cluster.dir / "fabric.snapshot"
        kept = snapshot.read_bytes()
        self.addCleanup(snapshot.write_bytes, kept)
        old = time.time() - 9 * 24 * 3600
        os.utime(snapshot, (old, old))
        self.assert_wrong("is 9 days old", "controller")
        snapshot.write_bytes(kept[:len(kept) // 2])
        self.assert_wrong("fabric.snapshot", "controller")
        snapshot.unlink()
        self.assert_wrong("No such file or directory", "fabric")
        dump = (self.cluster.dir / "fabric" / "discovered").read_text().replace("n0", "x0")
        (self.cluster.dir / "tmp" / "other").write_text(dump)
        self.cluster.run(BUILD / "bin" / "banyan-topo", "snapshot", self.cluster.dir / "tmp" / "other", "-o", snapshot)
        self.assert_wrong("0 of the 4 nodes", "controller")

    def test_configuration(self):
        for change, text in ((lambda t: t + "\n[topo2]\nx = 1\n", "topo2"),
                             (lambda t: t.replace("dry_run", "dry_runs"), "dry_runs"),
                             (lambda t: t.replace('memory_limit = "8G"', 'memory_limit = "9000G"'), "memory_limit is")):
            found = self.asked_with(change, "compute")
            self.assertTrue(any(text in line for line in found), f"{text!r} is not in {found}")
        env = self.conf(lambda t: t)
        os.chmod(env["BANYAN_CONF"], 0o666)
        self.assert_wrong("doctor.conf", "compute", env=env)

    def test_ports(self):
        env = self.conf(lambda t: t.replace('controller = "', 'controller = "no-such-host.invalid"\n#"'))
        self.assert_wrong("the name has no address", "compute", env=env)
        env = self.conf(lambda t: t.replace("[fault]\n", "[fault]\n").replace("port = ", "port = 1#", 1))
        code, found = self.ask("compute", env=env)
        self.assertEqual(code, 0, "where no service runs ckptd the prolog starts it")
        self.assertTrue(any("nobody listens" in finding["what"] for finding in found))

    def test_an_agent_that_is_gone(self):
        pid = self.cluster.parts()["faultd-n03"]
        os.kill(pid, signal.SIGKILL)
        self.cluster.wait_for(lambda: any("does not hear n03" in line for line in self.wrong("controller")), "the missing agent is named")
        self.addCleanup(self.start_agent, "n03")

    def start_agent(self, node):
        self.agent = self.cluster.start(BUILD / "bin" / "banyan-faultd", "agent", "--config", self.cluster.dir / "etc" / "banyan.conf", "--node", node,
                           "--log", self.cluster.dir / "log" / f"faultd-{node}.log", stdout=-3)
        self.cluster.wait_for(lambda: self.wrong("controller") == [], "the agent is heard again")

    def test_munge(self):
        env = self.conf(lambda t: t.replace("munge.socket", "no.socket"))
        self.assert_wrong("munge", "login", env=env)

    def test_plugins(self):
        plugstack = self.cluster.dir / "etc" / "plugstack.conf"
        kept = plugstack.read_text()
        self.addCleanup(plugstack.write_text, kept)
        plugstack.write_text("# nothing\n")
        self.assert_wrong("has no line for spank_banyan.so", "login")
        plugstack.unlink()
        self.assert_wrong("plugstack.conf", "compute")

    def test_slurmctld_that_does_not_answer(self):
        folder = Path(self.cluster.dir / "tmp" / "none")
        folder.mkdir()
        self.addCleanup(shutil.rmtree, folder)
        conf = (self.cluster.dir / "etc" / "slurm.conf").read_text()
        (folder / "slurm.conf").write_text("\n".join("SlurmctldPort=1" if line.startswith("SlurmctldPort=") else line
                                                     for line in conf.splitlines()) + "\nMessageTimeout=2\n")
        found = self.wrong("login", env={"SLURM_CONF": str(folder / "slurm.conf")})
        self.assertTrue(any(line.startswith("slurmctld: ") for line in found), found)
        self.assertFalse(any("SelectType" in line for line in found), "what was not seen is not told as wrong")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""banyan-sweep and a real Slurm: it drains what is unfit, returns what it drained and nothing else, and leaves a busy node in peace."""

import json
from pathlib import Path

from harness import BUILD, ClusterCase, main

SWEEP = BUILD / "bin" / "banyan-sweep"
FIT, UNFIT, WRONG_USE, UNKNOWN, NOT_TOLD = range(5)
NODE = "n01"


class Sweep(ClusterCase):
    nodes = 2

    def setUp(self):
        self.addCleanup(self.resume)
        self.resume()
        super().setUp()
        self.gone = self.cluster.dir / "tmp" / "gone"
        self.config = self.cluster.dir / "etc" / "sweep.conf"

    def resume(self):
        if "DRAIN" in self.cluster.node(NODE)["state"]:
            self.cluster.run("scontrol", "update", f"nodename={NODE}", "state=resume")

    def sweep(self, code, *words, well, memory="", node=NODE, before=()):
        """What it says in JSON; the exit code has to be this. The node is well, or it lacks a folder."""
        disk = self.cluster.dir / "tmp" if well else self.gone
        more = f'memory = "{memory}"\n' if memory else ""
        self.config.write_text(f'[sweep]\ndisks = ["{disk}"]\ndisk_fill = 100\ndisk_inodes = 100\nmounts = ["/proc"]\n{more}')
        done = self.cluster.run(*before, SWEEP, "--json", "--config", self.config, "--node", node, *words, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def state(self):
        node = self.cluster.node(NODE)
        return "DRAIN" in node["state"], node["reason"]

    def test_drained_and_returned(self):
        self.sweep(UNFIT, well=False)
        self.assertEqual(self.state()[0], False, "without --drain it only looks")
        told = self.sweep(UNFIT, "--drain", well=False)["slurm"]
        drained, reason = self.state()
        self.assertTrue(drained)
        self.assertEqual(reason, f"banyan-sweep: disks: {self.gone}: cannot make a file: No such file or directory")
        self.assertEqual(told, {"failed": False, "told": "drained: " + reason})
        self.assertIn("already", self.sweep(UNFIT, "--drain", well=False)["slurm"]["told"])
        self.sweep(FIT, "--drain", "--only", "mounts", well=False)
        self.assertEqual(self.state(), (True, reason), "a part of the checks returns nothing")
        self.sweep(FIT, well=True)
        self.assertEqual(self.state(), (True, reason))
        self.sweep(FIT, "--drain", well=True)
        self.cluster.wait_for(lambda: self.state() == (False, ""), "the node is returned")
        self.assertIn("nothing to do", self.sweep(FIT, "--drain", well=True)["slurm"]["told"])

    def test_what_others_drained_stays(self):
        for reason in ("banyan: gpu-xid-79 incident 7", "an admin's", "x banyan-sweep: y"):
            self.cluster.run("scontrol", "update", f"nodename={NODE}", "state=drain", f"reason={reason}")
            for well, code in ((True, FIT), (False, UNFIT)):
                self.sweep(code, "--drain", well=well)
                self.assertEqual(self.state(), (True, reason))
            self.resume()

    def test_a_busy_node(self):
        self.assertEqual(self.sweep(FIT, "--only", "memory", well=True, memory="1M")["verdict"], "fit")
        job = self.cluster.sbatch(f"--nodelist={NODE}", "-N1", script="sleep 600\n")
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        self.cluster.wait_for_job(job, "RUNNING")
        found = self.sweep(FIT, well=True, memory="1000T")
        self.assertEqual([one["verdict"] for one in found["checks"]], ["fit", "fit", "skipped"])
        self.sweep(UNFIT, "--even-if-busy", well=True, memory="1000T")
        self.sweep(UNFIT, "--drain", well=False)
        self.sweep(FIT, "--drain", well=True, memory="1M")
        self.assertTrue(self.state()[0], "memory was not looked at: the node stays out")
        self.assertEqual(self.cluster.job(job)["JobState"], "RUNNING")
        self.cluster.run("scancel", job)
        self.cluster.wait_for(lambda: self.sweep(FIT, "--drain", well=True, memory="1M") and not self.state()[0], "the node is returned")

    def test_as_slurms_health_check(self):
        """On every idle node, drained ones as well, by a script as the page has it."""
        # Files of its own: a check that is still under way when the test ends must find nothing that others change.
        folder, own = self.cluster.dir / "tmp" / "later", self.cluster.dir / "etc" / "health.conf"
        own.write_text(f'[sweep]\ndisks = ["{folder}"]\ndisk_fill = 100\ndisk_inodes = 100\n')
        conf = Path(self.cluster.out("printenv", "SLURM_CONF"))
        script = self.cluster.dir / "tmp" / "health"
        script.write_text(f"#!/bin/sh\nexport SLURM_CONF={conf}\nexec {SWEEP} --config {own} --drain --time-limit 30\n")
        script.chmod(0o755)
        before = conf.read_text()
        conf.write_text(f"{before}\nHealthCheckProgram={script}\nHealthCheckInterval=1\nHealthCheckNodeState=IDLE\n")

        def put_back():
            conf.write_text(before)
            self.cluster.reconfigure()
        self.addCleanup(put_back)
        self.cluster.reconfigure()
        self.cluster.wait_for(lambda: self.state()[1].startswith("banyan-sweep: disks:"), "the node is drained")
        folder.mkdir()
        self.cluster.wait_for(lambda: self.state() == (False, ""), "the node is returned")
        # Slurm holds a node that was set to IDLE for silent until it hears of it, which may be at its next ping, minutes later. Each
        # registers when slurm.conf is read again.
        put_back()
        self.cluster.wait_for_nodes_idle()

    def test_who_may_not(self):
        self.cluster.run("chmod", "o+rx", self.config.parent)
        told = self.sweep(NOT_TOLD, "--drain", well=False, before=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])["slurm"]
        self.assertTrue(told["failed"])
        self.assertEqual(self.state()[0], False)

    def test_a_node_that_slurm_does_not_know(self):
        told = self.sweep(NOT_TOLD, "--drain", well=False, node="nowhere")["slurm"]
        self.assertTrue(told["failed"])
        found = self.sweep(UNKNOWN, well=True, memory="1M", node="nowhere")
        self.assertEqual(found["checks"][-1]["verdict"], "unknown")


if __name__ == "__main__":
    main()

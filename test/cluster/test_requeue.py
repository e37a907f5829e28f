# SPDX-License-Identifier: BSD-3-Clause
"""A node is lost and no spare is left: banyan-run requeues the job at once, whoever took the node and whoever owns the job, once, and
says why where it cannot."""

import re
from datetime import datetime, timedelta

from harness import SELECT, ClusterCase, main, needs_select
from trouble import Trouble

USER = 65534  # nobody
SHAPE = ("-N4", "--ntasks-per-node=2", "--train-parallel=tp=2,dp=4", "--no-kill", "--open-mode=append")
# The first run of the job waits to be disturbed, the second one ends well.
DISTURBED = """#!/bin/bash
echo "start $SLURM_RESTART_COUNT"
banyan-run %s bash -c 'echo rank $RANK on $SLURMD_NODENAME; if [ -z "$SLURM_RESTART_COUNT" ]; then exec sleep 600; fi'
code=$?
echo "banyan-run ended with $code"
exit $code
"""


SOON = 100  # seconds, below the two minutes that Slurm takes by itself


class Requeue(ClusterCase):
    nodes = 8
    options = ("--group-size", 4, "--gpus", 2, "--without", "fault")

    def setUp(self):
        super().setUp()
        self.addCleanup(self.return_nodes)

    def return_nodes(self):
        for name in self.cluster.hosts("n[01-08]"):
            if {"DOWN", "DRAIN"} & set(self.cluster.node(name)["state"]):
                self.cluster.run("scontrol", "update", f"nodename={name}", "state=resume", check=False)

    def lose_a_node(self, job):
        """As an administrator takes one that is not the batch host. Returns its name."""
        self.cluster.wait_for(lambda: self.cluster.output(job).count("rank ") == 8, "every rank runs")
        fields = self.cluster.job(job)
        victim = [node for node in self.cluster.hosts(fields["NodeList"]) if node != fields["BatchHost"]][1]
        # DOWN ends its part of the job. Its slurmd lives, and would have it back in a moment.
        for state in ("down", "drain"):
            self.cluster.run("scontrol", "update", f"nodename={victim}", f"state={state}", "reason=broken")
        return victim

    def runs_again(self, job):
        """Well within the two minutes that Slurm takes when nobody asks for less."""
        victim = self.lose_a_node(job)
        self.cluster.wait_for_job(job, timeout=SOON)
        fields, output = self.cluster.job(job), self.cluster.output(job)
        self.assertEqual(fields["Restarts"], "1", output)
        self.assertNotIn(victim, self.cluster.hosts(fields["NodeList"]))
        self.assertIn(f"({victim} left the allocation); the allocation has 3 nodes left and the job needs 4; the job is requeued",
                      output)
        self.assertEqual(output.count("is requeued"), 1)
        # The select plugin has set when it may begin, and banyan-run leaves that to it; where there is none banyan-run sets it.
        log = (self.cluster.dir / "log" / "slurmctld.log").read_text()
        self.assertEqual(bool(re.search(rf"setting begin to .* for JobId={job}\b", log)), SELECT != "cons_tres_banyan")
        # The first script ended with its run, and not by going on: at most it saw Slurm kill banyan-run before itself.
        ends = [line for line in output.splitlines() if "banyan-run ended with" in line]
        self.assertEqual(ends[-1], "banyan-run ended with 0", output)
        self.assertLessEqual(len(ends), 2, output)
        self.assertEqual(ends[:-1].count("banyan-run ended with 0"), 0, output)
        self.assertEqual(output.count("rank "), 16, output)

    def test_whoever_took_the_node(self):
        self.runs_again(self.cluster.sbatch(*SHAPE, "--requeue", script=DISTURBED % ""))

    def test_the_job_of_a_user(self):
        work = self.cluster.dir / "tmp"
        work.chmod(0o1777)
        job = self.cluster.sbatch(*SHAPE, "--requeue", f"--uid={USER}", "--gid=65534", script=DISTURBED % "")
        self.runs_again(job)
        self.assertIn(f"({USER})", self.cluster.job(job)["UserId"])

    def test_a_second_loss_while_it_is_requeued(self):
        job = self.cluster.sbatch(*SHAPE, "--requeue", script=DISTURBED % "")
        self.cluster.wait_for(lambda: self.cluster.output(job).count("rank ") == 8, "every rank runs")
        fields = self.cluster.job(job)
        others = [node for node in self.cluster.hosts(fields["NodeList"]) if node != fields["BatchHost"]]
        self.cluster.run("scontrol", "update", f"nodename={others[0]}", "state=down", "reason=broken")
        self.cluster.run("scontrol", "update", f"nodename={others[1]}", "state=down", "reason=broken, too")
        self.cluster.wait_for_job(job, timeout=SOON)
        self.assertEqual(self.cluster.job(job)["Restarts"], "1", self.cluster.output(job))

    def test_somebody_else_requeues_too(self):
        """As the fault daemon does. Slurm takes one of the two."""
        job = self.cluster.sbatch(*SHAPE, "--requeue", script=DISTURBED % "")
        self.cluster.wait_for(lambda: self.cluster.output(job).count("rank ") == 8, "every rank runs")
        free = ",".join(set(self.cluster.hosts("n[01-08]")) - set(self.cluster.hosts(self.cluster.job(job)["NodeList"])))
        # The second run has no node until all have asked: a request that met it would be one more restart, and rightly.
        self.cluster.run("scontrol", "update", f"nodename={free}", "state=drain", "reason=kept")
        self.lose_a_node(job)
        self.cluster.run("scontrol", "requeue", job, check=False)
        self.cluster.run("scontrol", "requeue", job, check=False)
        self.cluster.wait_for(lambda: self.cluster.job(job)["Restarts"] == "1", "it is requeued")
        self.cluster.run("scontrol", "update", f"nodename={free}", "state=resume")
        self.cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now", check=False)
        self.cluster.wait_for_job(job, timeout=150)
        self.assertEqual(self.cluster.job(job)["Restarts"], "1", self.cluster.output(job))

    # Its ranks do not end when they are asked to.
    LATE = DISTURBED.replace("exec sleep", 'trap "" TERM; exec sleep') % ""

    def kill_wait(self, seconds):
        file = self.cluster.dir / "etc" / "slurm.conf"
        file.write_text(re.sub(r"(?m)^KillWait=.*$", f"KillWait={seconds}", file.read_text()))
        self.cluster.reconfigure()
        self.cluster.wait_for(lambda: f"KillWait                = {seconds} sec" in self.cluster.out("scontrol", "show", "config"),
                              f"KillWait is {seconds}")

    @needs_select("who requeues by hand waits for as long as Slurm has it")
    def test_a_run_that_ends_late(self):
        """What Slurm would have it wait begins when the run is through."""
        self.kill_wait(20)
        self.addCleanup(self.kill_wait, 5)
        job = self.cluster.sbatch(*SHAPE, "--requeue", script=self.LATE)
        self.cluster.wait_for(lambda: self.cluster.output(job).count("rank ") == 8, "every rank runs")
        self.cluster.run("scontrol", "requeue", job)
        self.cluster.wait_for_job(job, timeout=SOON)
        self.assertEqual(self.cluster.job(job)["Restarts"], "1", self.cluster.output(job))

    def test_a_later_start_that_its_user_wants(self):
        job = self.cluster.sbatch(*SHAPE, "--requeue", script=self.LATE)
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        self.cluster.wait_for(lambda: self.cluster.output(job).count("rank ") == 8, "every rank runs")
        self.cluster.run("scontrol", "requeue", job)
        self.cluster.run("scontrol", "update", f"JobId={job}", "StartTime=2040-01-01")
        other = self.cluster.sbatch("-N8", script="true")  # slurmctld has looked at all that waits
        self.cluster.wait_for_job(other)
        self.assertEqual(self.cluster.job(job)["JobState"], "PENDING")
        self.assertTrue(self.cluster.job(job)["EligibleTime"].startswith("2040-01-01"))

    def test_a_soon_start_that_its_user_wants(self):
        """A moment later than what banyan would have: within the time of which it was once taken for banyan's own."""
        self.kill_wait(20)
        self.addCleanup(self.kill_wait, 5)
        job = self.cluster.sbatch(*SHAPE, "--requeue", script=self.LATE)
        self.cluster.wait_for(lambda: self.cluster.output(job).count("rank ") == 8, "every rank runs")
        self.cluster.run("scontrol", "requeue", job)
        ours = datetime.fromisoformat(self.cluster.job(job)["EligibleTime"])
        wanted = (ours + timedelta(seconds=3)).isoformat()
        self.cluster.run("scontrol", "update", f"JobId={job}", f"StartTime={wanted}")
        self.cluster.wait_for_job(job, timeout=2 * SOON)  # on a machine so slow that the run ends later, two minutes after it
        fields = self.cluster.job(job)
        self.assertEqual(fields["Restarts"], "1", self.cluster.output(job))
        self.assertGreaterEqual(fields["StartTime"], wanted)

    def test_a_node_that_dies(self):
        """Nobody waits for a minute for its word that it is through."""
        trouble = Trouble(self.cluster)
        self.addCleanup(trouble.start_what_ended)
        job = self.cluster.sbatch(*SHAPE, "--requeue", script=DISTURBED % "")
        self.cluster.wait_for(lambda: self.cluster.output(job).count("rank ") == 8, "every rank runs")
        fields = self.cluster.job(job)
        victim = [node for node in self.cluster.hosts(fields["NodeList"]) if node != fields["BatchHost"]][1]
        trouble.power_off(victim)
        # An answer of its slurmd that is still on its way would have a node back that is only DOWN.
        for state in ("down", "drain"):
            self.cluster.run("scontrol", "update", f"nodename={victim}", f"state={state}", "reason=dead")
        self.cluster.wait_for_job(job, timeout=SOON)
        self.assertEqual(self.cluster.job(job)["Restarts"], "1", self.cluster.output(job))
        log = (self.cluster.dir / "log" / "slurmctld.log").read_text()
        self.assertNotIn(f"JobId={job} completion process took", log)  # which it says from a minute on

    def test_a_job_that_may_not_be_requeued(self):
        job = self.cluster.sbatch(*SHAPE, "--no-requeue", script=DISTURBED % "")
        victim = self.lose_a_node(job)
        self.cluster.wait_for_job(job, "FAILED")
        output = self.cluster.output(job)
        why = "the allocation has 3 nodes left and the job needs 4, and it may not be requeued (--no-requeue"
        self.assertIn(f"({victim} left the allocation); it is not started again: {why}", output)
        self.assertNotIn("banyan-run ended with 0", output)
        self.assertEqual(self.cluster.job(job)["Restarts"], "0")

    def test_an_allocation_of_salloc(self):
        shell = self.cluster.start("salloc", *SHAPE[:4], "banyan-run", "bash", "-c", "echo rank; exec sleep 600")
        self.addCleanup(lambda: (shell.terminate(), shell.wait(), shell.stdout.close()))
        queue = self.cluster.wait_for(lambda: self.cluster.out("squeue", "-h", "-t", "R", "-s", "-o", "%i %N"), "the step runs").split()
        victim = self.cluster.hosts(queue[1])[2]
        self.cluster.run("scontrol", "update", f"nodename={victim}", "state=down", "reason=broken")
        output = shell.communicate(timeout=60)[0]
        self.assertIn("the allocation has 3 nodes left and the job needs 4, and a job of salloc cannot be requeued", output)
        self.assertNotEqual(shell.returncode, 0)


if __name__ == "__main__":
    main()

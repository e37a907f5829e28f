# SPDX-License-Identifier: BSD-3-Clause
"""A job that trains with fewer data parallel groups (--train-min-dp) has all of them again as soon as Slurm has the nodes, by a requeue
at the end of a training step; where these do not come, it goes on with what it had."""

from fewer_groups import SHAPE, FewerGroupsCase
from harness import main
from trouble import Trouble

FEWER = "tp=2,dp=3"


class FullSize(FewerGroupsCase):
    nodes = 5

    def shrunk(self):
        """Trains on three of its four nodes. Returns the job, and the lost node, which is no node of the cluster's now."""
        script = self.cluster.dir / "tmp" / "job.sh"
        script.write_text('#!/bin/sh\nexec banyan-run --debug /usr/libexec/banyan/banyan-trainer "$@"\n')
        job = self.start(script=script)
        victim = self.victims(job)[0]
        self.lose(job, victim)
        self.take(victim)
        self.trains_with(job, 6)
        self.assertEqual(self.shapes(job), [SHAPE, FEWER])
        return job, victim

    def take(self, node):
        """A node that is DOWN comes back as soon as its slurmd answers; one that is drained stays away."""
        self.cluster.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=wanted")
        self.addCleanup(self.cluster.run, "scontrol", "update", f"nodename={node}", "state=resume", check=False)

    def spare_node(self, job, victim):
        """The one node that the job never had."""
        spare, = set(self.cluster.hosts("n[01-05]")) - set(self.nodes_of(job)) - {victim}
        return spare

    def restarts(self, job):
        return int(self.cluster.job(job)["Restarts"])

    def test_it_has_all_again_when_nobody_else_waits(self):
        job, victim = self.shrunk()
        spare = self.spare_node(job, victim)
        other = self.cluster.sbatch("-N2", "--exclusive", script="sleep 1000\n")
        self.addCleanup(self.cluster.run, "scancel", other, check=False)
        self.cluster.wait_for(lambda: self.looks(job) > 0, "it looks, and lets the other wait", timeout=120)
        self.assertEqual(self.restarts(job), 0)
        self.cluster.run("scancel", other)
        self.kept = self.counted(job)
        self.cluster.wait_for(lambda: self.restarts(job) == 1, "it is requeued by itself", timeout=120)
        self.trains_with(job, 8)
        self.assertEqual(self.shapes(job), [SHAPE, FEWER, SHAPE])
        self.assertIn(spare, self.nodes_of(job))
        self.assertIn("the job is requeued, to train with all of its 8 ranks again", self.cluster.output(job))
        self.assert_kept(job, self.kept)

    def looks(self, job):
        return self.cluster.output(job).count("are not to be had, or others wait for them")

    def stays(self, job):
        """It has looked once more, and trains on."""
        before = self.looks(job)
        self.cluster.wait_for(lambda: self.looks(job) > before, "it looks", timeout=120)
        self.assertEqual(self.restarts(job), 0)

    def test_it_stays_where_it_could_not_begin_anew(self):
        """The one node that lacks is free all the while."""
        job, _ = self.shrunk()
        self.take(self.victims(job)[0])
        self.stays(job)
        self.give_back(self.victims(job)[0])
        self.cluster.run("scontrol", "update", "partitionname=train", "state=down")
        self.addCleanup(self.cluster.run, "scontrol", "update", "partitionname=train", "state=up")
        self.stays(job)

    def test_slurmctld_dies_while_it_asks_for_fewer(self):
        """What stands for that in slurmctld's state is gone when it is back."""
        job, victim = self.shrunk()
        spare = self.spare_node(job, victim)
        self.take(spare)
        self.cluster.run("scontrol", "update", "partitionname=train", "state=down")
        self.addCleanup(self.cluster.run, "scontrol", "update", "partitionname=train", "state=up")
        self.cluster.run("scontrol", "requeue", job)
        self.cluster.wait_for(lambda: self.cluster.job(job)["Priority"] == "4294967293", "it asks for fewer")
        self.assertEqual(self.cluster.job(job)["NumCPUs"], "6")
        state = self.cluster.dir / "ctld" / "job_state"
        since = state.stat().st_mtime if state.exists() else 0
        self.cluster.run("scontrol", "update", f"jobid={job}", "comment=saved")
        self.cluster.wait_for(lambda: state.exists() and state.stat().st_mtime > since, "its state is saved")
        Trouble(self.cluster).restart_slurmctld()
        self.cluster.wait_for(lambda: self.cluster.job(job)["Priority"] != "4294967293", "slurmctld has looked at its jobs")
        now = self.cluster.job(job)
        self.assertEqual((now["NumTasks"], now["NumCPUs"]), ("8", "8"), now)
        self.cluster.run("scontrol", "update", "partitionname=train", "state=up")
        self.give_back(spare)
        self.trains_with(job, 8)

    def test_it_goes_on_with_what_it_had(self):
        """Its nodes are kept for it meanwhile, however short the job is that wants them."""
        job, victim = self.shrunk()
        self.take(self.spare_node(job, victim))
        before = self.nodes_of(job)
        other = self.cluster.sbatch("-N3", "--exclusive", "-t1", script="true\n")
        self.addCleanup(self.cluster.run, "scancel", other, check=False)
        self.kept = self.counted(job)
        self.cluster.run("scontrol", "requeue", job)
        self.cluster.wait_for(lambda: self.restarts(job) == 1, "it is requeued")
        self.trains_with(job, 6)
        self.assertEqual(self.shapes(job), [SHAPE, FEWER, FEWER])
        self.assertEqual(self.nodes_of(job), before)
        self.assertEqual(self.cluster.job(other)["JobState"], "PENDING")
        self.assertIn("tp=2,dp=3 nodes=3 ranks=6", self.cluster.job(job)["AdminComment"])
        self.assert_kept(job, self.kept)
        # It asks for all of its nodes again, and stands the loss of one more.
        self.lose(job, self.victims(job)[0])
        self.trains_with(job, 4)
        self.assert_kept(job, self.kept)

    def test_a_second_loss_while_it_waits(self):
        job, victim = self.shrunk()
        self.take(self.spare_node(job, victim))
        second = self.victims(job)[0]
        self.kept = self.counted(job)
        self.cluster.run("scontrol", "requeue", job)
        self.cluster.wait_for(lambda: self.restarts(job) == 1, "it is requeued")
        self.break_node(second)
        self.take(second)
        self.trains_with(job, 4)
        self.assertNotIn(second, self.nodes_of(job))
        self.assert_kept(job, self.kept)

    def test_a_held_job_keeps_nothing(self):
        job, victim = self.shrunk()
        self.take(self.spare_node(job, victim))
        other = self.cluster.sbatch("-N3", "--exclusive", "-t1", script="true\n")
        self.addCleanup(self.cluster.run, "scancel", other, check=False)
        self.cluster.run("scontrol", "requeuehold", job)
        self.cluster.wait_for_job(other)
        self.assertEqual(self.cluster.job(job)["JobState"], "PENDING")


if __name__ == "__main__":
    main()

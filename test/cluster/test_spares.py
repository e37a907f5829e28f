# SPDX-License-Identifier: BSD-3-Clause
"""Jobs with several spares: each lost node is replaced by one of them, one after the other, whichever nodes are lost and whether the
spares that are left wait in the allocation or came in before. srun is told of the allocation as it is then, not as it was at first."""

import re

from harness import ClusterCase, main, needs_select

RANKS = 8
# Ranks train until the test is through with the job; a lost node ends the step under them.
SCRIPT = """#!/bin/bash
banyan-run bash -c '
    echo rank $RANK of $SLURM_STEP_ID on $SLURMD_NODENAME
    echo told $SLURM_STEP_ID $SLURM_JOB_NODELIST
    until [ -e end-$SLURM_JOB_ID ]; do sleep 0.1; done'
code=$?
echo "banyan-run ended with $code"
exit $code
"""


# Nobody starts the step of this one again.
WITHOUT_BANYAN_RUN = """#!/bin/bash
srun bash -c '
    echo rank $RANK of run ${SLURM_RESTART_COUNT:-0} on $SLURMD_NODENAME
    until [ -e end-$SLURM_JOB_ID ]; do sleep 0.1; done'
code=$?
echo "srun ended with $code"
exit $code
"""


class Spares(ClusterCase):
    nodes = 8
    options = ("--group-size", 4, "--gpus", 2, "--without", "fault")

    def setUp(self):
        super().setUp()
        self.addCleanup(self.return_nodes)

    def return_nodes(self):
        for name in self.cluster.hosts("n[01-08]"):
            if {"DOWN", "DRAIN"} & set(self.cluster.node(name)["state"]):
                self.cluster.run("scontrol", "update", f"nodename={name}", "state=resume", check=False)

    def submit(self, spares):
        """A job of four nodes and `spares` more, whose ranks run."""
        job = self.cluster.sbatch(f"-N{4 + spares}", "--ntasks-per-node=2", "--gres=gpu:2", "--train-parallel=tp=2,dp=4", f"--train-spares={spares}",
                                  "--requeue", "--open-mode=append", script=SCRIPT)
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        self.ranks_of(job, 0)
        return job

    def ranks_of(self, job, step):
        """The nodes of the ranks of that step, which may not have ended the job instead."""
        def all_run():
            output = self.cluster.output(job)
            self.assertNotIn("banyan-run ended with", output)
            found = re.findall(rf"^rank \d+ of {step} on (\S+)$", output, re.M)
            return set(found) if len(found) == RANKS else None
        return self.cluster.wait_for(all_run, f"the ranks of step {step} of job {job} run")

    def allocation(self, job):
        return set(self.cluster.hosts(self.cluster.job(job)["NodeList"]))

    def take(self, node):
        """As the fault daemon does. The node's slurmd lives, and would have it back in a moment but for the drain."""
        for state in ("down", "drain"):
            self.cluster.run("scontrol", "update", f"nodename={node}", f"state={state}", "reason=broken")

    def without_the_script(self, job, nodes):
        return sorted(nodes - {self.cluster.job(job)["BatchHost"]})

    def finish(self, job):
        (self.cluster.dir / "tmp" / f"end-{job}").touch()
        self.cluster.wait_for_job(job)
        self.assertEqual(self.cluster.job(job)["Restarts"], "0", self.cluster.output(job))

    def lose_one_of(self, job, step):
        """The job loses a node of its ranks. Returns it, and the nodes of the step after."""
        before = self.ranks_of(job, step)
        victim = self.without_the_script(job, before)[1]
        self.take(victim)
        after = self.ranks_of(job, step + 1)
        self.assertEqual(len(after - before), 1, self.cluster.output(job))
        self.assertEqual(before - after, {victim}, "every other rank keeps its node")
        # What programs, and srun itself, are told of the allocation.
        told = set(re.findall(rf"^told {step + 1} (\S+)$", self.cluster.output(job), re.M))
        self.assertEqual([set(self.cluster.hosts(names)) for names in told], [self.allocation(job)])
        return victim, after

    @needs_select("nobody requeues a job whose step banyan-run did not start")
    def test_without_banyan_run_a_lost_node_means_a_requeue(self):
        """And a lost spare means nothing."""
        job = self.cluster.sbatch("-N5", "--ntasks-per-node=2", "--gres=gpu:2", "--train-parallel=tp=2,dp=4", "--train-spares=1", "--requeue",
                                  "--open-mode=append", script=WITHOUT_BANYAN_RUN)
        self.addCleanup(self.cluster.run, "scancel", job, check=False)

        def ranks_of_run(run):
            def all_run():
                output = self.cluster.output(job)
                found = re.findall(rf"^rank \d+ of run {run} on (\S+)$", output, re.M)
                return set(found) if len(found) == RANKS else None
            return self.cluster.wait_for(all_run, f"the ranks of run {run} of job {job} run", timeout=100)
        before = ranks_of_run(0)
        spare, = self.allocation(job) - before
        self.take(spare)
        self.cluster.wait_for(lambda: spare not in self.allocation(job), "Slurm takes the spare out of the job")
        self.return_nodes()
        victim = self.without_the_script(job, before)[0]
        self.take(victim)
        self.assertNotIn(victim, ranks_of_run(1))
        (self.cluster.dir / "tmp" / f"end-{job}").touch()
        self.cluster.wait_for_job(job)
        self.assertEqual(self.cluster.job(job)["Restarts"], "1")

    def test_two_spares_and_the_loss_of_a_node(self):
        job = self.submit(2)
        self.lose_one_of(job, 0)
        self.finish(job)

    def test_three_spares_and_losses_until_none_is_left(self):
        job = self.submit(3)
        for step in range(3):
            self.lose_one_of(job, step)
        self.assertEqual(len(self.allocation(job)), 4)
        self.finish(job)

    def test_the_spare_that_came_in_is_lost_too(self):
        job = self.submit(2)
        before = self.ranks_of(job, 0)
        _, after = self.lose_one_of(job, 0)
        came_in, = after - before
        self.take(came_in)
        last = self.ranks_of(job, 1 + 1)
        self.assertNotIn(came_in, last)
        self.finish(job)

    @needs_select("Slurm counts a job on the node that left it")
    def test_a_lost_node_that_is_back_serves_one_job_after_another(self):
        """Slurm by itself gives it to one more, and then to none, though it looks idle."""
        job = self.submit(1)
        self.lose_one_of(job, 0)
        self.finish(job)
        self.return_nodes()
        for _ in range(3):
            self.cluster.wait_for_nodes_idle()
            self.cluster.run("srun", "-N8", "--exclusive", "--immediate=5", "true")

    def test_a_spare_is_lost_while_it_waits(self):
        job = self.submit(3)
        ranks = self.ranks_of(job, 0)
        waiting = sorted(self.allocation(job) - ranks)
        self.take(waiting[0])
        self.cluster.wait_for(lambda: waiting[0] not in self.allocation(job), "Slurm takes it out of the job")
        _, after = self.lose_one_of(job, 0)
        self.assertNotIn(waiting[0], after)
        self.finish(job)


if __name__ == "__main__":
    main()

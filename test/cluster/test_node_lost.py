# SPDX-License-Identifier: BSD-3-Clause
"""A node whose power is gone: nothing on it answers any more, and Slurm takes it out of the job when it has noticed. With a spare the
training goes on; without one the job is requeued. Whether its ranks ended before Slurm took the node, or because of that."""

import os
import re

from harness import SELECT, ClusterCase, main, needs_select
from trouble import cut_power

from banyan_cluster import layout as layouts, parts

SHAPE = ("--ntasks-per-node=2", "--train-parallel=tp=2,dp=4", "--no-kill", "--requeue", "--open-mode=append")
WITH_SPARE = ("-N5", "--train-spares=1")
# The first ranks of a run train until they are told of the loss of a peer, as a trainer sees it by its connections; later ones end
# well, and so does a run that is the last.
SCRIPT = """#!/bin/bash
export LAST=%d
banyan-run bash -c '
    echo rank $RANK of $SLURM_STEP_ID on $SLURMD_NODENAME
    [ $SLURM_STEP_ID = 0 ] && [ ${SLURM_RESTART_COUNT:-0} -lt $LAST ] || exit 0
    until [ -e lost-$SLURM_JOB_ID ]; do sleep 0.1; done
    exit 1'
code=$?
echo "banyan-run ended with $code"
exit $code
"""


class NodeLost(ClusterCase):
    nodes = 8
    options = ("--group-size", 4, "--gpus", 2, "--without", "fault")

    def setUp(self):
        super().setUp()
        self.layout = layouts.load(self.cluster.dir)

    def ranks(self, job):
        """[(rank, node)] as they were printed, of all steps."""
        return re.findall(r"^rank (\d+) of \d+ on (\S+)$", self.cluster.output(job), re.M)

    def start(self, *options, last=1):
        """Returns a job whose ranks run, and a node of theirs that is not the batch host. `last`: its run that ends by itself."""
        job = self.cluster.sbatch(*SHAPE, *options, script=SCRIPT % last)
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        self.cluster.wait_for(lambda: len(self.ranks(job)) == 8, "every rank runs")
        return job, self.without_the_script(job)

    def without_the_script(self, job):
        return sorted({node for _, node in self.ranks(job)[-8:]} - {self.cluster.job(job)["BatchHost"]})[1]

    def power_off(self, node):
        """Ends whatever runs on the host of that name, which is a namespace of its own."""
        host = os.readlink(f"/proc/{self.cluster.parts()[f'slurmd-{node}']}/ns/uts")
        self.addCleanup(self.power_on, node)
        cut_power(host)

    def power_on(self, node):
        parts.start_slurmd(self.layout, node)

        def back():
            if not {"DOWN", "DRAIN"} & {state.rstrip("*") for state in self.cluster.node(node)["state"]}:
                return True
            self.cluster.run("scontrol", "update", f"nodename={node}", "state=resume", check=False)
            return False
        self.cluster.wait_for(back, f"{node} is back", pause=0.5)

    def take(self, node):
        """As Slurm does when it has not heard the node for SlurmdTimeout. What the node said before would have it back in a moment."""
        for state in ("down", "drain"):
            self.cluster.run("scontrol", "update", f"nodename={node}", f"state={state}", "reason=Not responding")

    def ranks_end_first(self, job, node):
        """Until every other node has told slurmctld that its part of the step is through."""
        (self.cluster.dir / "tmp" / f"lost-{job}").touch()
        others = {host for _, host in self.ranks(job)} - {node}

        def through():
            logs = [(self.cluster.dir / "log" / f"slurmd-{host}.log").read_text(errors="replace") for host in others]
            return all(re.search(rf"\[{job}\.0\] .*done with (job|step)", log) for log in logs)
        self.cluster.wait_for(through, "the step is through on the other nodes")

    def went_on(self, job, node):
        self.cluster.wait_for_job(job)
        output = self.cluster.output(job)
        self.assertIn(f"({node} left the allocation); starting it again with", output)
        self.assertEqual(len(self.ranks(job)), 16, output)
        self.assertNotIn(node, [host for _, host in self.ranks(job)[8:]])
        fields = self.cluster.job(job)
        self.assertEqual(fields["Restarts"], "0")
        if SELECT == "cons_tres_banyan":
            self.assertIn("nodes=4 ranks=8 spares=0", fields["AdminComment"])

    def was_requeued(self, job, node):
        self.cluster.wait_for_job(job, timeout=100)  # below the two minutes that Slurm takes by itself
        output = self.cluster.output(job)
        self.assertEqual(output.count(f"({node} left the allocation); the allocation has 3 nodes left and the job needs 4; "
                                      "the job is requeued"), 1, output)
        self.assertEqual(self.cluster.job(job)["Restarts"], "1", output)
        self.assertNotIn(node, self.cluster.hosts(self.cluster.job(job)["NodeList"]))
        self.assertEqual(len(self.ranks(job)), 16, output)

    def test_the_step_ends_with_the_node(self):
        job, node = self.start(*WITH_SPARE)
        self.power_off(node)
        self.take(node)
        self.went_on(job, node)

    @needs_select("Slurm keeps that step")
    def test_the_ranks_end_before_slurm_takes_the_node(self):
        """Slurm by itself keeps that step until the job ends, and starts none beside it."""
        job, node = self.start(*WITH_SPARE)
        self.power_off(node)
        self.ranks_end_first(job, node)
        self.take(node)
        self.went_on(job, node)

    def test_without_a_spare(self):
        job, node = self.start("-N4")
        self.power_off(node)
        self.take(node)
        self.was_requeued(job, node)

    def test_without_a_spare_the_ranks_end_first(self):
        job, node = self.start("-N4")
        self.power_off(node)
        self.ranks_end_first(job, node)
        self.take(node)
        self.was_requeued(job, node)

    @needs_select("Slurm keeps the job running, with nothing in it")
    def test_the_node_of_the_script(self):
        """Slurm by itself keeps the job running, with nothing in it. Then a lost node is replaced by a spare as ever."""
        job, _ = self.start(*WITH_SPARE, last=2)
        node = self.cluster.job(job)["BatchHost"]
        self.power_off(node)
        self.take(node)
        self.cluster.wait_for(lambda: len(self.ranks(job)) == 16, "every rank runs again", timeout=100)
        self.assertEqual(self.cluster.job(job)["Restarts"], "1")
        self.assertNotIn(node, self.cluster.hosts(self.cluster.job(job)["NodeList"]))
        other = self.without_the_script(job)
        self.power_off(other)
        self.take(other)
        self.cluster.wait_for_job(job)
        self.assertEqual(self.cluster.job(job)["Restarts"], "1")
        self.assertIn(f"({other} left the allocation); starting it again with", self.cluster.output(job))

    @needs_select("Slurm keeps the job running, with nothing in it")
    def test_the_node_of_a_script_that_may_not_be_requeued(self):
        job, _ = self.start(*WITH_SPARE, "--no-requeue")
        node = self.cluster.job(job)["BatchHost"]
        self.power_off(node)
        self.take(node)
        self.cluster.wait_for_job(job, "NODE_FAIL")


if __name__ == "__main__":
    main()

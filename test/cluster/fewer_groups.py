# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of jobs share that go on with fewer data parallel groups (--train-min-dp)."""

import re

from training import TrainingCase

SHAPE = "tp=2,dp=4"


class FewerGroupsCase(TrainingCase):
    options = ("--group-size", 4, "--gpus", 8, "--without", "fault")

    def start(self, nodes=4, min_dp=2, shape=SHAPE, stop_file=None, options=(), **more):
        job = self.submit(nodes, shape=shape, steps=100000, options=(f"--train-min-dp={min_dp}", *options), **more)
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        self.wait_step(job, 10)
        return job

    def lose(self, job, node):
        self.kept = self.counted(job)
        self.break_node(node)

    def break_node(self, node):
        self.cluster.run("scontrol", "update", f"nodename={node}", "state=down", "reason=broken")
        self.addCleanup(self.cluster.run, "scontrol", "update", f"nodename={node}", "state=resume", check=False)

    def give_back(self, node):
        """Unless its slurmd has registered again, which Slurm takes for a return, too."""
        self.cluster.run("scontrol", "update", f"nodename={node}", "state=resume", check=False)

    def nodes_of(self, job):
        return self.cluster.hosts(self.cluster.job(job)["NodeList"])

    def victims(self, job):
        """Nodes that train, without that of the script."""
        return sorted({node for _, node in self.ranks(job).values()} - {self.cluster.job(job)["BatchHost"]})

    def trains_with(self, job, world):
        """The ranks run, and steps go on."""
        self.cluster.wait_for(lambda: len(self.ranks(job)) == world, lambda: f"{world} ranks run; the job printed:\n{self.cluster.output(job)[-3000:]}")
        self.wait_step(job, max(self.log(job).steps, default=0) + 5)

    def shapes(self, job):
        """Of each start, in turn."""
        return re.findall(r"started world=\d+ shape=(\S+)", self.cluster.output(job))

    def assert_nothing_lost(self, job):
        """No step that was complete before the last change of its nodes is done anew."""
        self.assert_kept(job, self.kept)
        self.assertEqual(self.cluster.job(job)["Restarts"], "0")

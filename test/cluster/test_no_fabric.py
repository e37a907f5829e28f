# SPDX-License-Identifier: BSD-3-Clause
"""A site without InfiniBand has no snapshot of a fabric: jobs that train have a plan all the same, in Slurm's own order, and with it
checkpoints, spares, and their nodes again after a requeue."""

from harness import main
from training import TrainingCase

SHAPE = "tp=2,dp=3"


class NoFabric(TrainingCase):
    nodes = 5
    options = ("--group-size", 5, "--gpus", 8, "--without", "snapshot,fault")
    expected_complaints = ("no fabric snapshot at",)

    def setUp(self):
        super().setUp()
        self.addCleanup(self.return_nodes)

    def return_nodes(self):
        for name in self.cluster.hosts("n[01-05]"):
            if {"DOWN", "DRAIN"} & set(self.cluster.node(name)["state"]):
                self.cluster.run("scontrol", "update", f"nodename={name}", "state=resume", check=False)

    def take(self, node):
        for state in ("down", "drain"):
            self.cluster.run("scontrol", "update", f"nodename={node}", f"state={state}", "reason=broken")

    def nodes_by_slot(self, job):
        nodes = {}
        for rank, (_, node) in sorted(self.ranks(job).items()):
            nodes.setdefault(rank // 2, node)
        return [nodes[slot] for slot in sorted(nodes)]

    def test_a_spare_takes_the_place_of_a_lost_node(self):
        job = self.submit(4, spares=1, shape=SHAPE, steps=400)
        self.wait_step(job, 5)
        before = self.nodes_by_slot(job)
        fields = self.cluster.job(job)
        held = self.cluster.hosts(fields["NodeList"])
        self.assertEqual(before, held[:3], "in Slurm's order")
        self.assertIn(f"spares=1({held[3]})", fields["AdminComment"])
        self.assertIn("order=slurm(no-snapshot)", fields["AdminComment"])
        victim = before[1]
        self.take(victim)
        self.wait_finished(job)
        output = self.cluster.output(job)
        self.assertNotIn("checkpoints are off", output)
        self.assertIn(f"({victim} left the allocation); starting it again with {held[3]} instead", output)
        self.assertRegex(output, r"trains again")
        self.assertEqual(self.cluster.job(job)["Restarts"], "0")

    def test_a_requeued_job_gets_its_nodes_again(self):
        job = self.submit(3, shape=SHAPE, steps=600)
        self.wait_step(job, 5)
        before = self.nodes_by_slot(job)
        victim = next(node for node in before if node != self.cluster.job(job)["BatchHost"])
        self.take(victim)
        self.cluster.wait_for(lambda: self.cluster.job(job).get("Restarts") == "1" and self.cluster.job(job)["JobState"] == "RUNNING",
                              "the job runs again", timeout=100)
        self.cluster.wait_for(lambda: len(self.ranks(job)) == 6, "every rank runs again")
        after = self.nodes_by_slot(job)
        self.assertEqual([node for node in after if node in before], [node for node in before if node != victim])
        self.assertEqual([slot for slot in range(3) if after[slot] != before[slot]], [before.index(victim)])
        self.wait_finished(job)


if __name__ == "__main__":
    main()

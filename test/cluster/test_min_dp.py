# SPDX-License-Identifier: BSD-3-Clause
"""A job that goes on with fewer data parallel groups when a node is lost and nothing takes its place (--train-min-dp), and with all of
them when the node is back."""

import re

from harness import main
from training import TrainingCase

from banyan_demo import trainer_log

SHAPE = "tp=2,dp=4"


class MinDp(TrainingCase):
    nodes = 6
    options = ("--group-size", 4, "--gpus", 8, "--without", "fault")

    def start(self, nodes=4, min_dp=2, shape=SHAPE, stop_file=None, options=(), **more):
        job = self.submit(nodes, shape=shape, steps=100000, options=(f"--train-min-dp={min_dp}", *options), **more)
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        self.wait_step(job, 10)
        return job

    def lose(self, node):
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
        """No step that was complete is done anew: each start goes on behind what the one before had printed, or at its last step."""
        log = self.log(job)
        self.assertLessEqual(log.replayed, len(log.starts) - 1, self.cluster.output(job)[-3000:])
        self.assertEqual(self.cluster.job(job)["Restarts"], "0")

    def test_it_goes_on_with_fewer_and_grows_back(self):
        job = self.start()
        victim = self.victims(job)[0]
        self.lose(victim)
        self.trains_with(job, 6)
        self.assertEqual(self.shapes(job), [SHAPE, "tp=2,dp=3"])
        self.assertEqual(len(self.nodes_of(job)), 3)
        self.assertIn("tp=2,dp=3 nodes=3 ranks=6", self.cluster.job(job)["AdminComment"])
        self.assert_nothing_lost(job)
        self.give_back(victim)
        self.join(job, victim)
        self.trains_with(job, 8)
        self.assertEqual(self.shapes(job), [SHAPE, "tp=2,dp=3", SHAPE])
        self.assertIn("tp=2,dp=4 nodes=4 ranks=8", self.cluster.job(job)["AdminComment"])
        self.assert_nothing_lost(job)

    def join(self, job, node):
        """Gives the node to the job."""
        done = self.cluster.run("salloc", "--no-shell", "-N1", "-w", node, "--ntasks-per-node=2", "--gres=gpu:8", f"--dependency=expand:{job}")
        giver = re.search(r"Granted job allocation (\d+)", done.stdout + done.stderr).group(1)
        self.cluster.wait_for_job(giver, "RUNNING")
        self.cluster.run("scontrol", "update", f"JobId={giver}", "NumNodes=0")
        self.cluster.wait_for(lambda: node in self.nodes_of(job), f"{node} is the job's")

    def test_it_grows_by_another_node(self):
        job = self.start()
        had = self.nodes_of(job)
        self.lose(self.victims(job)[0])
        self.trains_with(job, 6)
        self.join(job, next(node for node in self.cluster.hosts("n[01-06]") if node not in had))
        self.trains_with(job, 8)
        self.assertEqual(self.shapes(job), [SHAPE, "tp=2,dp=3", SHAPE])
        self.assert_nothing_lost(job)
        # The node keeps its part of what follows, too.
        self.lose(self.victims(job)[0])
        self.trains_with(job, 6)
        self.assert_nothing_lost(job)

    def test_two_losses_in_a_row_and_then_too_many(self):
        job = self.start()
        first, second, third = self.victims(job)
        self.lose(first)
        self.lose(second)
        self.trains_with(job, 4)
        self.assertEqual(self.shapes(job)[-1], "tp=2,dp=2")
        self.assert_nothing_lost(job)
        self.lose(third)
        self.cluster.wait_for(lambda: self.cluster.job(job)["Restarts"] == "1", "it is requeued")

    def test_a_loss_during_the_shrink(self):
        job = self.start()
        first, second, _ = self.victims(job)
        self.lose(first)
        self.cluster.wait_for(lambda: "with fewer data parallel groups" in self.cluster.output(job), "it goes on")
        self.lose(second)
        self.trains_with(job, 4)
        self.assert_nothing_lost(job)

    def test_groups_of_two_nodes(self):
        """One lost node costs its group; the other node of that waits."""
        job = self.start(nodes=6, shape="tp=2,pp=2,dp=3", min_dp=1)
        victim = self.victims(job)[1]
        self.lose(victim)
        self.trains_with(job, 8)
        self.assertEqual(self.shapes(job), ["tp=2,pp=2,dp=3", "tp=2,pp=2,dp=2"])
        self.assertEqual(len(self.nodes_of(job)), 5)
        self.assert_nothing_lost(job)

    def test_a_spare_comes_first(self):
        job = self.start(nodes=5, spares=1)
        self.lose(self.victims(job)[0])
        self.trains_with(job, 8)
        self.assertEqual(set(self.shapes(job)), {SHAPE})

    def test_the_node_of_the_script(self):
        job = self.start()
        self.lose(self.cluster.job(job)["BatchHost"])
        self.cluster.wait_for(lambda: self.cluster.job(job)["Restarts"] == "1", "it is requeued")

    def test_without_the_option_it_is_requeued(self):
        job = self.submit(4, shape=SHAPE, steps=100000)
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        self.wait_step(job, 10)
        self.lose(self.victims(job)[0])
        self.cluster.wait_for(lambda: self.cluster.job(job)["Restarts"] == "1", "it is requeued")
        self.assertNotIn("fewer data parallel groups", self.cluster.output(job))

    def test_what_is_refused(self):
        for words, reason in (
                (("-N4", "--train-min-dp=2"), "--train-min-dp needs --train-parallel"),
                (("-N4", "--ntasks-per-node=2", f"--train-parallel={SHAPE}", "--train-min-dp=5"), "more than the dp=4"),
                (("-N4", "--ntasks-per-node=2", f"--train-parallel={SHAPE}", "--train-min-dp=0"), "0 groups cannot train"),
                (("-N4", "--ntasks-per-node=2", f"--train-parallel={SHAPE}", "--train-min-dp=two"), "--train-min-dp"),
                (("-N2", "--ntasks-per-node=2", "--train-parallel=tp=4", "--train-min-dp=2"), "more than the dp=1"),
                (("-N4", "--ntasks-per-node=2", "--train-parallel=dp=4,tp=2", "--train-min-dp=2"), "name dp last")):
            with self.subTest(words=words):
                done = self.cluster.run("sbatch", *words, "--wrap=true", check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(reason, done.stdout + done.stderr)


if __name__ == "__main__":
    main()

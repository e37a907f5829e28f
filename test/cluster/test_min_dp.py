# SPDX-License-Identifier: BSD-3-Clause
"""A job that goes on with fewer data parallel groups when a node is lost and nothing takes its place (--train-min-dp), and with all of
them after a requeue."""

import re

from fewer_groups import SHAPE, FewerGroupsCase
from harness import main


class MinDp(FewerGroupsCase):
    nodes = 6

    def test_it_goes_on_with_fewer_and_has_all_again_after_a_requeue(self):
        job = self.start()
        victim = self.victims(job)[0]
        self.lose(job, victim)
        self.trains_with(job, 6)
        self.assertEqual(self.shapes(job), [SHAPE, "tp=2,dp=3"])
        self.assertEqual(len(self.nodes_of(job)), 3)
        self.assertIn("tp=2,dp=3 nodes=3 ranks=6", self.cluster.job(job)["AdminComment"])
        self.assert_nothing_lost(job)
        self.give_back(victim)
        self.kept = self.counted(job)
        self.cluster.run("scontrol", "requeue", job)
        self.cluster.wait_for(lambda: self.cluster.job(job)["Restarts"] == "1", "it is requeued")
        self.trains_with(job, 8)
        self.assertEqual(self.shapes(job), [SHAPE, "tp=2,dp=3", SHAPE])
        self.assertIn("tp=2,dp=4 nodes=4 ranks=8", self.cluster.job(job)["AdminComment"])
        self.assert_kept(job, self.kept)
        # It is whole, and stands a loss as before.
        self.lose(job, self.victims(job)[0])
        self.trains_with(job, 6)
        self.assert_kept(job, self.kept)

    def test_two_losses_in_a_row_and_then_too_many(self):
        job = self.start()
        first, second, third = self.victims(job)
        self.lose(job, first)
        self.lose(job, second)
        self.trains_with(job, 4)
        self.assertEqual(self.shapes(job)[-1], "tp=2,dp=2")
        self.assert_nothing_lost(job)
        self.lose(job, third)
        self.cluster.wait_for(lambda: self.cluster.job(job)["Restarts"] == "1", "it is requeued")

    def test_a_loss_during_the_shrink(self):
        job = self.start()
        first, second, _ = self.victims(job)
        self.lose(job, first)
        self.cluster.wait_for(lambda: "with fewer data parallel groups" in self.cluster.output(job), "it goes on")
        self.lose(job, second)
        self.trains_with(job, 4)
        self.assert_nothing_lost(job)

    def hear_of_kills(self):
        """slurmd tells of a kill for a step that it does not have at this level alone."""
        conf = self.cluster.dir / "etc" / "slurm.conf"
        told = conf.read_text()
        self.assertIn("SlurmdDebug=info", told)

        def take(text):
            conf.write_text(text)
            self.cluster.reconfigure()
        self.addCleanup(take, told)
        take(told.replace("SlurmdDebug=info", "SlurmdDebug=debug"))

    def told_in_vain(self, job):
        """Nodes to which a kill for a step after the first came before that step did."""
        logs = {node: (self.cluster.dir / "log" / f"slurmd-{node}.log").read_text(errors="replace") for node in self.cluster.hosts("n[01-06]")}
        return {node for node, log in logs.items() if re.search(rf"kill for nonexistent StepId={job}\.(?!0\b)", log)}

    def test_a_loss_before_the_launch(self):
        """slurmctld has the step and kills it, and no node has heard of it yet: nothing ends it when it comes."""
        tmp = self.cluster.dir / "tmp"
        armed, held, go, hold = (tmp / f"launch-{word}" for word in ("armed", "held", "go", "hold"))
        # srun runs it between the making of the step and its launch.
        hold.write_text(f"#!/bin/sh\n[ -e {armed} ] || exit 0\ntouch {held}\nuntil [ -e {go} ]; do sleep 0.05; done\n")
        hold.chmod(0o755)
        self.addCleanup(go.touch)
        self.hear_of_kills()
        job = self.start(options=(f"--export=ALL,SLURM_PROLOG={hold}",))
        first, second, _ = self.victims(job)
        self.cluster.wait_for(lambda: all(" debug: " in (self.cluster.dir / "log" / f"slurmd-{node}.log").read_text(errors="replace")
                                          for node in self.nodes_of(job)), "each node logs what it is asked")
        armed.touch()
        self.lose(job, first)
        self.cluster.wait_for(held.exists, "the next step is made")
        others = set(self.nodes_of(job)) - {second}
        self.lose(job, second)
        self.cluster.wait_for(lambda: others <= self.told_in_vain(job), "the kill has come to the nodes")
        go.touch()
        self.cluster.wait_for(lambda: f"runs on {second}, which left the allocation: the step is ended" in self.cluster.output(job),
                              lambda: f"the step is ended; the job printed:\n{self.cluster.output(job)[-3000:]}")
        self.trains_with(job, 4)
        self.assertNotIn(second, {node for _, node in self.ranks(job).values()})
        self.assert_nothing_lost(job)

    def test_groups_of_two_nodes(self):
        """One lost node costs its group; the other node of that waits."""
        job = self.start(nodes=6, shape="tp=2,pp=2,dp=3", min_dp=1)
        victim = self.victims(job)[1]
        self.lose(job, victim)
        self.trains_with(job, 8)
        self.assertEqual(self.shapes(job), ["tp=2,pp=2,dp=3", "tp=2,pp=2,dp=2"])
        self.assertEqual(len(self.nodes_of(job)), 5)
        self.assert_nothing_lost(job)

    def test_a_spare_comes_first(self):
        job = self.start(nodes=5, spares=1)
        self.lose(job, self.victims(job)[0])
        self.trains_with(job, 8)
        self.assertEqual(set(self.shapes(job)), {SHAPE})

    def test_the_node_of_the_script(self):
        job = self.start()
        self.lose(job, self.cluster.job(job)["BatchHost"])
        self.cluster.wait_for(lambda: self.cluster.job(job)["Restarts"] == "1", "it is requeued")

    def test_without_the_option_it_is_requeued(self):
        job = self.submit(4, shape=SHAPE, steps=100000)
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        self.wait_step(job, 10)
        self.lose(job, self.victims(job)[0])
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

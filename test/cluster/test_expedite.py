# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of `sbatch --requeue=expedite`, which Slurm starts again without its two minutes: with the plan, the slots and the state that they
had, once, whichever node is lost and whoever takes it. Nobody of banyan's makes that start later."""

import re
import unittest

import harness
from harness import main
from training import XID_79, TrainingCase
from trouble import Trouble

SHAPE = "tp=2,dp=4"
# Nobody starts the step of this one again.
PLAIN = """#!/bin/bash
echo "run ${SLURM_RESTART_COUNT:-0}"
srun bash -c 'echo rank $RANK; [ ${SLURM_RESTART_COUNT:-0} != 0 ] || exec sleep 600'
"""


class Expedite(TrainingCase):
    nodes = 6
    options = ("--group-size", 3, "--gpus", 8, "--slurm-conf", "SlurmctldParameters=enable_expedited_requeue")

    @classmethod
    def setUpClass(cls):
        if harness.release() < (25, 11):
            raise unittest.SkipTest("Slurm has --requeue=expedite from 25.11 on")
        super().setUpClass()

    def setUp(self):
        self.trouble = Trouble(self.cluster)
        self.addCleanup(self.trouble.return_nodes)
        super().setUp()

    def start(self, nodes=4, **more):
        """A job that trains on four nodes. Its id, and {rank: node}."""
        job = self.submit_unending(nodes, shape=SHAPE, options=("--requeue=expedite",), **more)
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        self.wait_step(job, 15)
        self.kept = self.counted(job)
        return job, {rank: node for rank, (_, node) in self.ranks(job).items()}

    def power_off(self, node):
        self.addCleanup(self.trouble.repair, node)
        self.trouble.power_off(node)

    def take(self, node):
        """What the node says of itself would have it back in a moment."""
        for state in ("down", "drain"):
            self.cluster.run("scontrol", "update", f"nodename={node}", f"state={state}", "reason=broken")

    def another(self, job, ranks):
        """A node of its ranks that is not that of the script."""
        return sorted(set(ranks.values()) - {self.cluster.job(job)["BatchHost"]})[1]

    def runs_again_at_once(self, job, ranks, victim):
        self.end(job)
        fields, output = self.cluster.job(job), self.cluster.output(job)
        self.assertEqual(fields["Restarts"], "1", output)
        log = (self.cluster.dir / "log" / "slurmctld.log").read_text()
        self.assertNotRegex(log, rf"setting begin to .* for JobId={job}\b", "Slurm has it start when its nodes are free")
        self.assert_kept(job, self.kept)
        restored = {entry["rank"]: entry for entry in self.log(job).restored}
        self.assertEqual(sorted(restored), sorted(ranks), output)
        self.assertEqual({rank: restored[rank]["node"] for rank, node in ranks.items() if node != victim},
                         {rank: node for rank, node in ranks.items() if node != victim}, "slots keep their nodes")
        self.assertNotIn(victim, [entry["node"] for entry in restored.values()])
        self.assertNotIn("storage", [entry["source"] for entry in restored.values()])

    def test_a_node_of_its_ranks(self):
        job, ranks = self.start()
        victim = self.another(job, ranks)
        self.take(victim)
        self.runs_again_at_once(job, ranks, victim)
        self.assertEqual(self.cluster.output(job).count("the job is requeued"), 1)

    def test_a_dead_node_of_its_ranks(self):
        job, ranks = self.start()
        victim = self.another(job, ranks)
        self.power_off(victim)
        self.take(victim)
        self.runs_again_at_once(job, ranks, victim)

    def test_the_node_of_its_script(self):
        """Whether it lives, and tells of the end of the script, or is dead."""
        for is_dead in (False, True):
            with self.subTest(is_dead=is_dead):
                job, ranks = self.start()
                victim = self.cluster.job(job)["BatchHost"]
                if is_dead:
                    self.power_off(victim)
                self.take(victim)
                self.runs_again_at_once(job, ranks, victim)
                self.trouble.repair(victim)
                self.cluster.wait_for_nodes_idle()

    def test_the_fault_daemon_takes_the_node(self):
        job, ranks = self.start()
        victim = self.another(job, ranks)
        self.cluster.kmsg(victim, XID_79)
        self.runs_again_at_once(job, ranks, victim)
        actions = [action["what"] for incident in self.trouble.incidents() if incident["object"]["node"] == victim
                   for action in incident["actions"]]
        self.assertIn("node_down", actions)
        self.assertNotIn("start_now", actions)

    def test_a_step_that_nobody_starts_again(self):
        """The end of its script must not be taken for that of the job, which Slurm would hold."""
        job = self.cluster.sbatch("-N4", "--ntasks-per-node=2", "--gres=gpu:8", "--no-kill", f"--train-parallel={SHAPE}", "--requeue=expedite",
                                  "--open-mode=append", script=PLAIN)
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        self.cluster.wait_for(lambda: self.cluster.output(job).count("rank ") == 8, "every rank runs")
        fields = self.cluster.job(job)
        self.take(next(node for node in self.cluster.hosts(fields["NodeList"]) if node != fields["BatchHost"]))
        self.cluster.wait_for_job(job)
        self.assertEqual(re.findall(r"^run (\d)$", self.cluster.output(job), re.M), ["0", "1"])

    def test_its_nodes_are_kept_for_it(self):
        """A job that waits before it in the queue has no use of the nodes that it gives up and takes again."""
        job, ranks = self.start()
        other = self.cluster.sbatch("-N5", "--nice=-100", script="sleep 600\n")
        self.addCleanup(self.cluster.run, "scancel", other)
        victim = self.another(job, ranks)
        self.take(victim)
        self.cluster.wait_for(lambda: self.cluster.job(job)["Restarts"] == "1" and self.cluster.job(job)["JobState"] == "RUNNING"
                              or self.cluster.job(other)["JobState"] == "RUNNING", "one of the two has begun")
        self.assertEqual(self.cluster.job(other)["JobState"], "PENDING")
        self.runs_again_at_once(job, ranks, victim)

    def test_a_spare_is_left(self):
        job, ranks = self.start(nodes=5, spares=1)
        victim = self.another(job, ranks)
        self.take(victim)
        self.end(job)
        self.assertEqual(self.cluster.job(job)["Restarts"], "0")


if __name__ == "__main__":
    main()

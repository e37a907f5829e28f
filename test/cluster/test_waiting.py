# SPDX-License-Identifier: BSD-3-Clause
"""When and where a training job starts that can't start now, or not well: the nodes that slurmctld promises are those that it takes,
--train-wait holds a job for a better place as long as it says, and the line of one that did not wait says what it would have gained.

Pipelines of four nodes on two leaf groups, n[01-08] and n[09-16]; n[07-10] side by side in the node table, but over the spine."""

import re
import unittest

from harness import ClusterCase, main

TRAIN = ("-N4", "--ntasks-per-node=1", "--gres=gpu:8", "--train-parallel=pp=4")
LONG = "n[01-06,11,13,15]"


class Waiting(ClusterCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.clear)

    def clear(self):
        self.cluster.run("scontrol", "update", "PartitionName=train", "State=UP")
        self.cluster.run("scancel", "-u", "root")
        self.cluster.wait_for_nodes_idle()

    def test_the_promised_nodes_are_taken(self):
        self.occupy(LONG, minutes=60)
        ends = [self.occupy(nodes, minutes=5) for nodes in ("n[07-10]", "n[12,14,16]")]
        # cons_tres alone would take the four that lie side by side.
        plain = self.promise("-N4", "--gres=gpu:8")
        self.assertEqual(plain["nodes"], self.cluster.hosts("n[07-10]"))
        promised = self.promise(*TRAIN)
        self.assertLessEqual(promised["start"], plain["start"])
        self.assertEqual(len([node for node in promised["nodes"] if node >= "n09"]), 4, promised)
        job = self.cluster.sbatch(*TRAIN, script="srun sleep 600\n")
        # Backfill plans with them too.
        self.cluster.wait_for(lambda: self.cluster.hosts(self.cluster.job(job).get("SchedNodeList", "")) == promised["nodes"],
                              "backfill's plan")
        self.free_at_once(ends, "n[07-10,12,14,16]")
        self.cluster.wait_for_job(job, "RUNNING")
        self.assertEqual(self.cluster.hosts(self.cluster.job(job)["NodeList"]), promised["nodes"])

    def test_a_job_that_does_not_wait(self):
        self.occupy(LONG, minutes=60)
        self.occupy("n[12,14,16]", minutes=5)
        job = self.cluster.sbatch(*TRAIN, script="srun sleep 600\n")
        self.cluster.wait_for_job(job, "RUNNING")
        self.assertEqual(self.word(job, "straddling-pp"), "1/1")
        self.assertEqual(self.word(job, "waiting"), "10m:-100%")
        told = self.cluster.out("banyan-topo", "explain", job, "--fabric", self.cluster.dir / "fabric.snapshot")
        self.assertRegex(told, r"waiting 10 minutes would have saved 100 %")

    def test_a_job_that_waits(self):
        self.occupy(LONG, minutes=60)
        end = self.occupy("n[12,14,16]", minutes=5)
        job = self.cluster.sbatch(*TRAIN, "--train-wait=10", script="srun sleep 600\n")
        self.cluster.wait_for(lambda: "SchedNodeList" in self.cluster.job(job), "backfill's plan")
        planned = self.cluster.hosts(self.cluster.job(job)["SchedNodeList"])
        self.assertEqual(self.cluster.job(job)["JobState"], "PENDING")
        self.assertTrue(all(node >= "n09" for node in planned), planned)
        self.free_at_once([end], "n[12,14,16]")
        self.cluster.wait_for_job(job, "RUNNING")
        self.assertEqual(self.cluster.hosts(self.cluster.job(job)["NodeList"]), planned)
        self.assertEqual(self.word(job, "straddling-pp"), "0/1")
        self.assertIsNone(self.word(job, "waiting"))

    def test_a_wait_that_brings_nothing(self):
        self.occupy(LONG, minutes=60)
        self.occupy("n[12,14,16]", minutes=30)
        job = self.cluster.sbatch(*TRAIN, "--train-wait=10", script="srun sleep 600\n")
        self.cluster.wait_for_job(job, "RUNNING")
        self.assertEqual(self.word(job, "straddling-pp"), "1/1")
        self.assertEqual(self.word(job, "waiting"), "60m:-100%")

    def test_a_wait_that_is_over(self):
        self.occupy(LONG, minutes=60)
        self.cluster.run("scontrol", "update", "PartitionName=train", "OverTimeLimit=5")  # it will not end when it should
        self.occupy("n[12,14,16]", minutes=1)
        job = self.cluster.sbatch(*TRAIN, "--train-wait=1", script="srun sleep 600\n")
        self.cluster.wait_for(lambda: "SchedNodeList" in self.cluster.job(job), "backfill's plan")
        self.cluster.wait_for_job(job, "RUNNING", timeout=120)
        self.assertEqual(self.word(job, "straddling-pp"), "1/1")

    # -- help --------------------------------------------------------------------------------------------------------------

    def occupy(self, nodes, minutes):
        names = self.cluster.hosts(nodes)
        job = self.cluster.sbatch("-N", len(names), "-w", nodes, "--gres=gpu:8", f"--time={minutes}", script="sleep 6000\n")
        self.cluster.wait_for_job(job, "RUNNING")
        return job

    def free_at_once(self, jobs, nodes):
        """Ends jobs. Their nodes come free one by one, and a job that waits could start on the first: not before all are."""
        self.cluster.run("scontrol", "update", "PartitionName=train", "State=DOWN")
        self.cluster.run("scancel", *jobs)
        self.cluster.wait_for(lambda: set(self.cluster.out("sinfo", "-h", "-N", "-n", nodes, "-o", "%T").split()) == {"idle"},
                              f"{nodes} come free")
        self.cluster.run("scontrol", "update", "PartitionName=train", "State=UP")

    def promise(self, *options):
        said = self.cluster.run("sbatch", "--test-only", *options, "--wrap=true")
        found = re.search(r"to start at (\S+) using .* on nodes (\S+)", said.stderr)
        self.assertTrue(found, said.stderr)
        return {"start": found[1], "nodes": self.cluster.hosts(found[2])}

    def word(self, job, key):
        found = re.search(rf" {key}=(\S+)", self.cluster.job(job)["AdminComment"])
        return found[1] if found else None


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""Ranks on the live cluster: SLURM_PROCID on every node equals what `banyan-topo place` prints for the same fabric, free nodes and
shape, over many shapes and occupancies, for srun alone and for steps of a batch job."""

import json
import random

from harness import ClusterCase, main

# shape, nodes of the job (spares included), ranks a node, spares, busy nodes
CASES = [
    ("tp=8,pp=2,dp=8", 16, 8, 0, ""),
    ("tp=8,dp=16", 16, 8, 0, ""),
    ("pp=16", 16, 1, 0, ""),
    ("dp=16", 16, 1, 0, ""),
    ("pp=4,dp=4", 16, 1, 0, ""),
    ("dp=4,pp=4", 16, 1, 0, ""),
    ("tp=2,pp=2,dp=4", 8, 2, 0, ""),
    ("tp=2,pp=2,dp=4", 9, 2, 1, ""),
    ("tp=2,dp=4,pp=2", 8, 2, 0, ""),
    ("tp=2,pp=2,dp=4", 8, 2, 0, "n[01-03]"),
    ("tp=2,pp=2,dp=4", 9, 2, 1, "n[02,04,06,09]"),
    ("pp=4,dp=2", 8, 1, 0, "n[01-02,15-16]"),
    ("pp=2,dp=3", 6, 1, 0, "n[01-05]"),
    ("pp=3,dp=2", 6, 1, 0, "n[02,10-12]"),
    ("dp=2,pp=4", 8, 1, 0, "n[03,07,11,13]"),
    ("tp=4,pp=2,dp=2", 4, 4, 0, "n[01-06]"),
    ("tp=4,pp=2,dp=2", 6, 4, 2, "n[01-06]"),
    ("tp=2,cp=2,pp=2,dp=2", 8, 2, 0, "n[08-11]"),
    ("tp=1,ep=4,pp=2,dp=1", 8, 1, 0, "n[01,16]"),
    ("ep=2,dp=2,pp=4", 8, 2, 0, "n[05]"),
    ("tp=8,pp=1,dp=1", 1, 8, 0, "n[01-15]"),
    ("tp=16,pp=2,dp=2", 8, 8, 0, "n[12-14]"),
    ("pp=5,dp=2", 11, 1, 1, "n[04-06]"),
    ("dp=5,pp=2", 12, 1, 2, "n[01,09]"),
]


class Placement(ClusterCase):
    def test_ranks_are_where_banyan_topo_says(self):
        for shape, nodes, per_node, spares, busy in CASES:
            with self.subTest(shape=shape, nodes=nodes, spares=spares, busy=busy):
                self.check(shape, nodes, per_node, spares, self.cluster.hosts(busy))

    def test_random_occupancies(self):
        seed = 20260101
        dice = random.Random(seed)
        for _ in range(6):
            busy = sorted(dice.sample([f"n{i:02d}" for i in range(1, 17)], dice.randint(1, 8)))
            dims = dice.sample([("tp", 2), ("pp", 2), ("dp", 2)], 3)
            shape = ",".join(f"{name}={size}" for name, size in dims)
            with self.subTest(seed=seed, shape=shape, busy=busy):
                self.check(shape, 8, 1, 0, busy)

    def test_a_pipeline_stays_in_a_leaf_group(self):
        placed = self.check("tp=2,pp=4,dp=2", 8, 2, 0, ["n01", "n02", "n09", "n10"], model="hidden=512,layers=8,seq=65536,micro=64")
        self.assertEqual(placed["straddling_units"], 0)

    def test_the_bytes_of_a_model_decide(self):
        """Two pipelines of eight stages: cut, since the data parallel rings of usual models send more than they do."""
        shape = "pp=8,dp=2"
        for model in ({}, {"model": "hidden=8192,layers=80"}):
            self.assertEqual(self.check(shape, 16, 1, 0, [], **model)["straddling_units"], 2)
        # Long sequences through a small model: its pipelines send more.
        self.assertEqual(self.check(shape, 16, 1, 0, [], model="hidden=512,layers=8,seq=65536,micro=64")["straddling_units"], 0)

    def test_a_risky_node_comes_last(self):
        """Four of eight in a leaf group; the comment on one of those that would be taken sends the job elsewhere."""
        busy = ["n01", "n02", "n03", "n04"]  # the tightest group that holds the job is the first
        sound = self.check("pp=4", 4, 1, 0, busy)["nodes"]
        self.assertEqual(sound, ["n05", "n06", "n07", "n08"])
        self.cluster.run("scontrol", "update", "NodeName=n06", "Comment=ECC rises, banyan-risk=0.5")
        try:
            blocker = self.occupy(busy)

            def elsewhere():  # comments are read once a second
                job = self.cluster.sbatch("-N4", "--ntasks-per-node=1", "--train-parallel=pp=4", script="true\n")
                self.cluster.wait_for_job(job)
                return all(node >= "n09" for node in self.cluster.hosts(self.cluster.job(job)["NodeList"]))
            self.cluster.wait_for(elsewhere, "the job avoids n06")
            self.release(blocker)
        finally:
            self.cluster.run("scontrol", "update", "NodeName=n06", "Comment=")

    def test_a_step_of_a_batch_job(self):
        job = self.cluster.sbatch("-N6", "--ntasks-per-node=1", "--gres=gpu:8", "--train-parallel=dp=2,pp=3",
                                  script="srun bash -c 'echo rank $SLURM_PROCID $SLURMD_NODENAME'\n")
        self.cluster.wait_for_job(job)
        self.assert_ranks([line[5:] for line in self.cluster.output(job).splitlines() if line.startswith("rank ")],
                          self.place("dp=2,pp=3", 6, 1, 0, [])["ranks"])

    def test_an_allocation_that_srun_makes(self):
        if not self.cluster.asks_about_steps() and self.cluster.release() < (26, 5):
            self.skipTest("this Slurm cannot order it: srun refuses")
        for shape, nodes, per_node in (("tp=2,pp=3,dp=2", 6, 2), ("pp=4,dp=2", 8, 1), ("tp=4,dp=5", 5, 4)):
            expected = self.place(shape, nodes, per_node, 0, [])
            lines = self.cluster.out("srun", "-N", nodes, f"--ntasks-per-node={per_node}", f"--train-parallel={shape}", "bash", "-c",
                                     "echo $SLURM_PROCID $SLURMD_NODENAME").splitlines()
            self.assert_ranks(lines, expected["ranks"])
            self.cluster.wait_for_nodes_idle()

    # -- help --------------------------------------------------------------------------------------------------------------

    def check(self, shape, nodes, per_node, spares, busy, model=None):
        expected = self.place(shape, nodes, per_node, spares, busy, model)
        blocker = self.occupy(busy)
        try:
            active = nodes - spares
            allocation = ["-N", nodes, f"--ntasks-per-node={per_node}", f"--train-parallel={shape}"]
            allocation += [f"--train-model={model}"] if model else []
            if spares:
                # A step on the active nodes alone, which banyan-run names to srun.
                job = self.cluster.sbatch(*allocation, f"--train-spares={spares}", script=
                    f"srun --train -N {active} -n {active * per_node} -w {','.join(expected['nodes'])} "
                    "bash -c 'echo rank $SLURM_PROCID $SLURMD_NODENAME'\n")
                self.cluster.wait_for_job(job)
                lines = [line[5:] for line in self.cluster.output(job).splitlines() if line.startswith("rank ")]
                self.assertEqual(sorted(self.cluster.hosts(self.cluster.job(job)["NodeList"])),
                                 sorted(expected["nodes"] + expected["spares"]))
            else:
                lines = self.cluster.out(*self.cluster.srun(*allocation), "bash", "-c", "echo $SLURM_PROCID $SLURMD_NODENAME").splitlines()
            self.assert_ranks(lines, expected["ranks"])
        finally:
            self.release(blocker)
        return expected

    def assert_ranks(self, lines, expected):
        seen = dict(line.split() for line in lines)
        self.assertEqual([seen.get(str(rank)) for rank in range(len(expected))], expected)

    def place(self, shape, nodes, per_node, spares, busy, model=None):
        free = ",".join(f"n{i:02d}" for i in range(1, 17) if f"n{i:02d}" not in busy)
        return json.loads(self.cluster.out("banyan-topo", "place", self.cluster.dir / "fabric.snapshot", "--shape", shape,
                                           "--nodes", nodes, "--ranks-per-node", per_node, "--spares", spares, "--free", free, "--json",
                                           *(["--model", model] if model else [])))

    def occupy(self, busy):
        if not busy:
            return None
        job = self.cluster.sbatch("-N", len(busy), "-w", ",".join(busy), script="sleep 600\n")
        self.cluster.wait_for_job(job, "RUNNING")
        return job

    def release(self, blocker):
        if blocker:
            self.cluster.run("scancel", blocker)
        self.cluster.wait_for_nodes_idle()


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""The real torchrun, one task a node: its ranks run where banyan places the ranks of the shape. Skipped, with the reason, where torch
cannot be had."""

import unittest
from pathlib import Path

import torch_venv
from harness import main
from on_demand import OnDemandCase

SHAPE = "tp=2,pp=2,dp=2"


class Torchrun(OnDemandCase):
    nodes = 8
    options = ("--group-size", 2, "--gpus", 2, "--without", "fault")

    @classmethod
    def setUpClass(cls):
        cls.torchrun, why = torch_venv.program("torchrun")
        if why:
            raise unittest.SkipTest(why)
        super().setUpClass()

    def gathered(self, job):
        """The node of each rank, one list for each step of the job."""
        return [[word.split(":") for word in line.split()[1:]] for line in self.cluster.output(job).splitlines()
                if line.startswith("gathered ")]

    def test_its_ranks_are_where_they_are_placed(self):
        program = Path(__file__).with_name("gather_ranks.py")
        slots = self.place(SHAPE, 4, 2, [f"n{i:02}" for i in range(1, 9)])["nodes"]
        self.assertNotEqual(slots, sorted(slots), "Slurm's own order would pass, too")
        by_hand = ("--nnodes=$BANYAN_NNODES --nproc-per-node=$BANYAN_NPROC_PER_NODE --node-rank=$BANYAN_NODE_RANK "
                   "--master-addr=$MASTER_ADDR --master-port=$MASTER_PORT")
        script = (f"srun {self.torchrun} {program}\n"                          # from the environment
                  f"srun bash -c '{self.torchrun} {by_hand} {program}'\n"      # said
                  f"banyan-run {self.torchrun} {program}\n")
        job = self.cluster.sbatch("-N4", "--ntasks-per-node=1", f"--train-parallel={SHAPE}", script=script, env={"OMP_NUM_THREADS": "1", "TMPDIR": str(self.tmp)})
        self.cluster.wait_for_job(job, timeout=400)
        expected = [[str(rank), slots[rank // 2], str(job)] for rank in range(8)]
        self.assertEqual(self.gathered(job), [expected] * 3, self.cluster.output(job))


if __name__ == "__main__":
    main()

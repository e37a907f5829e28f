# SPDX-License-Identifier: BSD-3-Clause
"""examples/gpt through a kill -9 of one rank, by DDP, by FSDP2 and started by torchrun: its losses have the bits of the same program's
under torchrun alone. Skipped, with the reason, where torch cannot be had."""

import os
import unittest

import torch_venv
from harness import REPOSITORY, ClusterCase, main

from banyan_demo import gpt_log, pytorch

STEPS = pytorch.FEWEST


class Gpt(ClusterCase):
    nodes = pytorch.NODES
    options = ("--without", "fault")

    @classmethod
    def setUpClass(cls):
        _, why = torch_venv.program("torchrun")
        if why:
            raise unittest.SkipTest(why)
        os.environ.update(pytorch.environment())
        super().setUpClass()

    def goes_on(self, parallel, script="job.sh"):
        story = pytorch.GptStory(self.cluster.dir, REPOSITORY, STEPS, parallel, script)
        reference = story.undisturbed()
        self.assertEqual(sorted(reference.losses()), list(range(STEPS)))
        self.assertLess(reference.losses()[STEPS - 1], reference.losses()[0] - 1, "it has not learned")
        job = story.submit()
        phases, lost, starts = pytorch.rank_killed(story, job)
        story.wait_completed(job)
        done = gpt_log.read(story.log)
        print(parallel, script, {phase: round(took, 2) for phase, took in phases.items()}, f"steps lost: {lost}")
        self.assertEqual(len(done.starts), 2 * pytorch.WORLD, self.cluster.evidence())
        self.assertEqual({(one["begins_at"], one["source"]) for one in starts}, {(starts[0]["begins_at"], "local")})
        self.assertGreaterEqual(starts[0]["begins_at"], STEPS // 3)
        self.assertLessEqual(lost, 1)
        self.assertTrue(done.trained_twice_alike(), done.steps)
        self.assertEqual(done.losses(), reference.losses())

    def test_ddp(self):
        self.goes_on("ddp")

    def test_fsdp2(self):
        self.goes_on("fsdp2")

    def test_torchrun_starts_the_ranks(self):
        self.goes_on("ddp", "torchrun.sh")


if __name__ == "__main__":
    main()

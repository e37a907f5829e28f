# SPDX-License-Identifier: BSD-3-Clause
"""Nobody's job holds up slurmctld: one whose shape cannot be right is refused at submission, and one that got in all the same, since the
submit filter is off or the job is older than it, is placed or left to cons_tres, and does not stop the next slurmctld either.

Nothing here looks at the clock: where slurmctld stops answering, a command runs into its deadline."""

import unittest

import harness
from lone_controller import RUNNING, LoneController, state_of
from banyan_cluster import parts, process

NODES = 12800
MILLION = ("-N8", "--train-parallel=ep=1048576")
LARGE = ("-N2048", "--train-parallel=ep=32768")
MODEL = ("-N8192", "--train-parallel=ep=8192", "--train-model=layers=80")


class WithoutFilter(LoneController):
    """12,800 nodes, and every training job gets as far as job_test."""

    def __init__(self):
        super().__init__("cons_tres_banyan", "backfill", nodes=NODES, group_size=32)
        self.layout.options["submit"] = False
        self.layout.save()

    def _topo(self, *words):
        return super()._topo(*words, *(["--rails", "2"] if words[0] == "gen" else []))

    def restart(self):
        process.end_parts(self.layout, ("slurmctld",), grace=30)
        parts.start_slurmctld(self.layout)


class Bounds(unittest.TestCase):
    def controller(self, controller):
        self.addCleanup(controller.remove)
        controller.up()
        return controller

    def test_refused_at_submission(self):
        controller = self.controller(LoneController("cons_tres_banyan", "main"))
        for options, reason in ((MILLION, "131072 ranks on each, more than 1024"),
                                (("-N32", "--overcommit", "--train-parallel=ep=32768"), "no node of this cluster has more than 16 CPUs"),
                                (("-N8", "--train-parallel=dp=8", "--train-ckpt=every=1,size=100G"), "more than 64000 MiB"),
                                (("-N4", "--ntasks-per-node=17", "--train-parallel=dp=68"), "ask for 5 nodes or more")):
            with self.subTest(options=options):
                job, said = controller.sbatch("--partition=whole", *options)
                self.assertIsNone(job)
                self.assertIn(reason, said)
        self.assertEqual(controller.must("squeue", "-h"), "")
        job, said = controller.sbatch("--partition=whole", "-N8", "--ntasks-per-node=16", "--train-parallel=tp=8,dp=16")
        self.assertTrue(job, said)

    def test_what_got_in_all_the_same(self):
        controller = self.controller(WithoutFilter())
        whole = "--partition=whole"
        jobs = {}
        for options in (MILLION, LARGE, MODEL):
            jobs[options], said = controller.sbatch(whole, *options)
            self.assertTrue(jobs[options], said)
            self.assertIn(str(jobs[options]), controller.must("squeue", "-h", "-o", "%i").split())
        # These have to wait for nodes: backfill looks for their place again and again.
        waiting = [controller.sbatch(whole, "-N12000", "--train-parallel=ep=192000")[0],
                   controller.sbatch(whole, "-N12800", "--train-parallel=ep=1024,dp=1000")[0]]
        seen = controller.settle()
        for options, job in jobs.items():
            self.assertIn(state_of(seen[str(job)]), RUNNING, options)
        for job in waiting:
            self.assertEqual(state_of(seen[str(job)]), "PENDING")
        # Placed by banyan where the numbers can be right, else by cons_tres, which is said once.
        for options in (LARGE, MODEL):
            self.assertIn("AdminComment=banyan: ep=", seen[str(jobs[options])]["line"])
        self.assertNotIn("AdminComment=banyan", seen[str(jobs[MILLION])]["line"])
        told = [line for line in controller.log().splitlines() if f"JobId={jobs[MILLION]}: " in line and "plain cons_tres" in line]
        self.assertEqual(len(told), 1, told)
        controller.must("scontrol", "show", "job", jobs[MILLION])

        controller.restart()
        here = controller.must("squeue", "-h", "-o", "%i").split()
        self.assertLessEqual({str(job) for job in waiting}, set(here))
        seen = controller.settle()  # passes of the scheduler end
        self.assertEqual(state_of(seen[str(waiting[0])]), "PENDING")
        # With so few HCAs a host the subnet manager's looks like one, which is no node.
        self.assertEqual([line for line in controller.complaints() if "lacks: sm01" not in line], [])


if __name__ == "__main__":
    harness.main()

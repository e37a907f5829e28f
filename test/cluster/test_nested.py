# SPDX-License-Identifier: BSD-3-Clause
"""sbatch and salloc in the script of a training job, and in one of its ranks: a job of its own, which has the options that it was given and
no others. A variable that the user has exported holds for it, as Slurm's own do."""

from harness import ClusterCase, main

TRAIN = ("-N3", "--ntasks-per-node=2", "--train-parallel=tp=4", "--train-spares=1", "--train-ckpt=every=3")
SHOW = ("env | grep -E '^(RANK|WORLD_SIZE|MASTER_ADDR|BANYAN_(TRAIN|STEP|SHAPE|TP|CKPT)|PET_|SLURM_SPANK|_SLURM_SPANK)' | sort; "
        # Slurm's own leftover of a heterogeneous job, with which srun starts nothing.
        "echo tasks; unset SLURM_HET_SIZE; srun bash -c 'echo task $SLURM_PROCID ${RANK-none}'")


class Nested(ClusterCase):
    nodes = 8
    options = ("--group-size", 4, "--without", "fault")

    def setUp(self):
        super().setUp()
        self.tmp = self.cluster.dir / "tmp"
        self.show = self.tmp / "show.sh"
        self.show.write_text(f"#!/bin/bash\n{SHOW}\n")
        self.show.chmod(0o755)

    def inner(self, command, outer=TRAIN, where="{}"):
        """What the inner job printed: its variables, and its tasks."""
        out = self.tmp / "inner.out"
        out.unlink(missing_ok=True)
        command = f"sbatch --wait -o {out} {command} {self.show}" if not command.startswith("salloc") else f"{command} {self.show} >{out}"
        script = self.tmp / "inner.sh"
        script.write_text(f"#!/bin/bash\n{command}\n")
        script.chmod(0o755)
        job = self.cluster.sbatch(*outer, script=where.format(script) + "\n")
        self.cluster.wait_for_job(job)
        self.assertTrue(out.exists(), self.cluster.output(job))
        variables, _, tasks = out.read_text().partition("tasks\n")
        return variables.splitlines(), sorted(tasks.splitlines())

    def test_plain_jobs(self):
        het = ("-N1", ":", *TRAIN)
        rank = "srun bash -c '[ $RANK != 0 ] || {}'"
        for outer, where in ((TRAIN, "{}"), (TRAIN, rank), (het, "{}"), (het, rank.replace("srun", "srun --het-group=1")), (het, "srun --het-group=0 {}")):
            for command in ("-N1 -n1", "-N2 -n2", "salloc -N1 -n1"):
                with self.subTest(outer=outer, where=where, command=command):
                    variables, tasks = self.inner(command, outer, where)
                    self.assertEqual(variables, [])
                    self.assertEqual(tasks, [f"task {task} none" for task in range(2 if "-n2" in command else 1)])

    def test_an_inner_job_that_trains(self):
        for command in ("-N2 --train-parallel=dp=2", "salloc -N2 --train-parallel=dp=2"):
            variables, tasks = self.inner(command)
            self.assertEqual(tasks, ["task 0 0", "task 1 1"])
            self.assertIn("BANYAN_TRAIN_PARALLEL=dp=2", variables)
            self.assertFalse([line for line in variables if "SPARES" in line.upper() or "CKPT" in line.upper()], variables)

    def test_a_variable_of_the_user_s(self):
        for outer in (TRAIN, ("-N2",)):
            for where in ("export BANYAN_TRAIN_PARALLEL=dp=2\n{}", "BANYAN_TRAIN_PARALLEL=dp=2 sbatch --wait -o /dev/null -N2 {}"):
                with self.subTest(outer=outer, where=where):
                    variables, tasks = self.inner("-N2", outer, where)
                    self.assertIn("BANYAN_TRAIN_PARALLEL=dp=2", variables)
                    self.assertEqual(tasks, ["task 0 0", "task 1 1"])


if __name__ == "__main__":
    main()

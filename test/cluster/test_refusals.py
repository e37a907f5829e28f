# SPDX-License-Identifier: BSD-3-Clause
"""What a user gets wrong is refused at submission with the reason; what breaks under a job is told once, and the job trains on."""

import os
import signal

from harness import main
from training import SHAPE, TrainingCase


class Refusals(TrainingCase):
    def refused(self, *words, script=None):
        done = self.cluster.run(*words, check=False, input=script)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        return done.stderr

    def test_shapes_that_do_not_fit(self):
        script = "#!/bin/bash\ntrue\n"
        for shape, nodes, reason in ((SHAPE, 7, "is 16 ranks, but 7 nodes with 2 tasks each are 14"),
                                     ("tp=2,xx=4", 8, 'unknown dimension "xx"'),
                                     ("tp=2,tp=4", 8, "dimension tp is given twice"),
                                     ("tp=1000000000000000000", 8, "is not a size"),
                                     ("tp=0", 8, "is not a size"),
                                     ("", 8, "the shape is empty")):
            with self.subTest(shape=shape):
                text = self.refused("sbatch", f"-N{nodes}", "--ntasks-per-node=2", f"--train-parallel={shape}", script=script)
                self.assertIn(reason, text)
        self.assertEqual(self.cluster.out("squeue", "-h"), "")

    def test_a_step_with_other_tasks_than_ranks(self):
        text = self.refused("srun", "-N4", "-n8", "--train-parallel=tp=2,dp=2", "true")
        self.assertIn("4 ranks, but", text)

    def test_a_step_that_says_it_is_the_training_and_cannot_be(self):
        self.assertIn("--train needs --train-parallel=SHAPE", self.refused("srun", "-N2", "--train", "true"))
        self.assertIn("omit --train", self.refused("salloc", "-N1", "srun", "--train", "true"))
        self.assertIn("it says --overlap", self.refused("srun", "-N2", "--ntasks-per-node=2", "--train-parallel=tp=2,dp=2", "--overlap", "true"))

    def test_the_environment_twin_is_checked_too(self):
        text = self.refused("env", "BANYAN_TRAIN_PARALLEL=tp=x", "sbatch", "-N8", script="#!/bin/bash\ntrue\n")
        self.assertIn("BANYAN_TRAIN_PARALLEL", text)

    def test_the_environment_twin_stands_for_the_option(self):
        out = self.cluster.out("env", "BANYAN_TRAIN_PARALLEL=dp=2,tp=2", *self.cluster.srun("-N2", "--ntasks-per-node=2"), "bash", "-c",
                               "echo $RANK $BANYAN_TP_RANK $SLURMD_NODENAME")
        # Data parallel innermost: ranks 0 and 2 are one tensor parallel group, and share a node.
        self.assertEqual(sorted(out.splitlines()), ["0 0 n01", "1 0 n02", "2 1 n01", "3 1 n02"])

    def test_a_step_that_nobody_could_order(self):
        if self.cluster.asks_about_steps():
            self.skipTest("this Slurm asks the select plugin about the step of an allocation that srun makes")
        # 26.05 knows an order of nodes, and no other within them.
        shape = "dp=2,tp=2" if self.cluster.release() >= (26, 5) else "tp=2,dp=2"
        text = self.refused("srun", "-N2", "--ntasks-per-node=2", f"--train-parallel={shape}", "true")
        self.assertIn("put salloc and the same options before it: salloc --train-parallel=... srun ...", text)

    def test_help_names_the_options(self):
        text = self.cluster.out("srun", "--help")
        for option in ("--train-parallel", "--train-spares", "--train-ckpt", "--train-model", "--train-wait", "--train-min-dp", "--train "):
            self.assertIn(option, text)
        self.assertIn("[banyan]", text)

    def test_a_directory_that_cannot_be_written_is_told_once_and_the_job_trains_on(self):
        job = self.submit(8, steps=20, ckpt="dir=/proc/no-such-directory,every=1,flush=5")
        self.wait_finished(job)
        told = [line for line in self.cluster.output(job).splitlines() if "/proc/no-such-directory" in line]
        self.assertEqual([line.split(":")[0] for line in told], ["banyan", "rank 0"], told)
        self.assertIn("step 20 is in memory alone", told[1])  # at the end

    def test_without_its_daemon_the_job_trains_on(self):
        job = self.submit_unending(8)
        self.wait_step(job, 10)
        for pid in self.keepers():  # and their daemons with them
            os.kill(pid, signal.SIGKILL)
        self.cluster.wait_for(lambda: "checkpoints are off" in self.cluster.output(job), "the job says so")
        self.stop.touch()
        self.wait_finished(job)
        told = [line for line in self.cluster.output(job).splitlines() if "checkpoints are off" in line]
        self.assertEqual(len(told), 1, told)

    def test_a_session_that_the_daemon_refuses_is_told_once_with_the_reason(self):
        job = self.submit(8, steps=10, ckpt="every=1,size=900G")
        self.wait_finished(job)
        told = [line for line in self.cluster.output(job).splitlines() if line.startswith("banyan: ")]
        self.assertEqual(len(told), 1, told)
        self.assertIn("memory_limit", told[0])
        self.assertEqual(sorted(self.log(job).steps), list(range(1, 11)))


if __name__ == "__main__":
    main()

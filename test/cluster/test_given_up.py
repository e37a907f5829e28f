# SPDX-License-Identifier: BSD-3-Clause
"""What there is no sense in starting again: a program that is not there, one that brings no training further, and one that ends itself by
an error of its own. A rank that is killed is another matter."""

import re

from harness import ClusterCase, main

SHAPE = ("-N4", "--ntasks-per-node=2", "--train-parallel=tp=2,dp=4", "--no-kill", "--open-mode=append")


def job_script(*lines, options=""):
    """One that runs these lines of Python in each rank."""
    program = "\n".join(["import os, signal, sys, time", *lines])
    return f"cat > program.py <<'END'\n{program}\nEND\nbanyan-run {options} python3 program.py\necho ended with $?\n"


def of_rank_1(statement):
    """Lines that have rank 1 do that, while the others wait."""
    return f'if os.environ["RANK"] == "1": {statement}', "time.sleep(600)"


class GivenUp(ClusterCase):
    nodes = 4
    options = ("--group-size", 4, "--gpus", 2, "--without", "fault")

    def output_of(self, script, *options):
        job = self.cluster.sbatch(*SHAPE, "--requeue", *options, script=script)
        self.cluster.wait_for_job(job)
        return self.cluster.output(job)

    def test_a_typo_ends_the_job_at_once(self):
        """Whatever srun's own code says of it."""
        output = self.output_of(job_script(*of_rank_1("undefined_name")))
        self.assertRegex(output, r"is not started again: the program ended itself: rank 1 on n\d+ was the first, with exit code 1; "
                                 r"the first error was NameError: name 'undefined_name' is not defined\n")
        self.assertNotIn("starting it again", output)
        self.assertRegex(output, r"(?m)^ended with [1-9]")

    def test_another_error_of_the_program_is_tried_once_more(self):
        output = self.output_of(job_script(*of_rank_1('raise RuntimeError("of its own")')))
        self.assertEqual(output.count("starting it again"), 1, output)
        self.assertRegex(output, r"the program ended itself twice in the same way: rank 1 on n\d+ was the first, with exit code 1; "
                                 r"the first error was RuntimeError: of its own\n")

    def test_a_rank_that_is_killed_is_started_again(self):
        """Whatever it has printed before. The second time it is left alone."""
        output = self.output_of(job_script('if os.environ["SLURM_STEP_ID"] != "0": sys.exit()', 'print("NameError: handled", file=sys.stderr)',
                                           *of_rank_1("os.kill(os.getpid(), signal.SIGKILL)")))
        self.assertEqual(output.count("starting it again on the same nodes"), 1, output)
        self.assertIn("ended with 0\n", output)

    def test_where_the_errors_go_elsewhere_nothing_is_known(self):
        """Then its step is started as often as any that brings no training further."""
        output = self.output_of(job_script(*of_rank_1("undefined_name"), options="--error=/dev/null"))
        self.assertEqual(output.count("starting it again"), 3, output)

    def test_a_program_that_fails_each_time_is_given_up(self):
        """With what its runs came to."""
        job = self.cluster.sbatch(*SHAPE, "--requeue", script="banyan-run bash -c '[ $RANK = 1 ] && exit 3; sleep 60'\necho ended with $?\n")
        self.cluster.wait_for_job(job)
        output = self.cluster.output(job)
        self.assertEqual(output.count("starting it again on the same nodes"), 3, output)
        self.assertIn("is not started again: 3 restarts in a row brought no new training step", output)
        ends = re.findall(rf"({job}\.\d) with code \d+ after [\d.]+ s, training step unknown", output.partition("brought no training further: ")[2])
        self.assertEqual(ends, [f"{job}.{step}" for step in range(3)], output)
        self.assertRegex(output, r"(?m)^ended with [1-9]")

    def test_a_missing_program_is_not_repeated(self):
        for program, code in (("./nosuch", 2), ("/dev/null", 13), ("bash -c nosuch", 127)):
            with self.subTest(program=program):
                job = self.cluster.sbatch(*SHAPE, "--requeue", script=f"banyan-run {program}\necho ended with $?\n")
                self.cluster.wait_for_job(job)
                output = self.cluster.output(job)
                self.assertIn(f"is not started again: code {code} at once says that the program is not there", output)
                self.assertNotIn("starting it again", output)
                self.assertIn(f"ended with {code}", output)


if __name__ == "__main__":
    main()

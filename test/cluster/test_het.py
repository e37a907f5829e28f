# SPDX-License-Identifier: BSD-3-Clause
"""Heterogeneous jobs: the component that trains gets its ranks, the others none of its options, however the job is made and whichever
component it is; two that train are refused with the reason."""

import re

from harness import ClusterCase, main

TRAIN = ("-N4", "--ntasks-per-node=2", "--train-parallel=dp=4,tp=2", "--train-ckpt=every=3")
OTHER = ("-N1", "-n1")
# One line a task.
SHOW = ('bash -c \'echo "task $BANYAN_NODE:$SLURMD_NODENAME rank=$RANK/$WORLD_SIZE dp=$BANYAN_DP_RANK every=$BANYAN_CKPT_EVERY '
        'parallel=$BANYAN_TRAIN_PARALLEL spares=$BANYAN_TRAIN_SPARES"\'')


class Het(ClusterCase):
    nodes = 8
    options = ("--group-size", 4, "--gpus", 2, "--without", "fault")

    def lines(self, text):
        return [line.partition("task ")[2] for line in text.splitlines() if "task " in line]

    def check_training(self, text, job=None):
        """Every rank once, on the node that it was told, and with the component's options."""
        lines = self.lines(text)
        self.assertEqual(len(lines), 8, text)
        ranks = {}
        for line in lines:
            where, rank, dp, every, parallel, spares = line.split(" ")
            node, host = where.split(":")
            self.assertEqual(node, host, text)
            number, world = rank.removeprefix("rank=").split("/")
            self.assertEqual((world, every, parallel), ("8", "every=3", "parallel=dp=4,tp=2"), text)
            self.assertEqual(dp, f"dp={int(number) % 4}", text)
            ranks[int(number)] = node
        self.assertEqual(sorted(ranks), list(range(8)), text)
        # tp pairs on a node, as banyan places them and Slurm does not.
        for rank in range(4):
            self.assertEqual(ranks[rank], ranks[rank + 4], text)

    def check_other(self, text):
        self.assertEqual([line.partition(" ")[2] for line in self.lines(text)], ["rank=/ dp= every= parallel= spares="], text)

    def steps(self, training):
        other = 1 - training
        return (f"srun --het-group={training} {SHOW}\necho ==\nsrun --het-group={other} {SHOW}\necho ==\nbanyan-run {SHOW}\necho ==\n")

    def check_parts(self, text):
        training, other, by_run = text.split("==\n")[:3]
        self.check_training(training)
        self.check_other(other)
        self.check_training(by_run)

    def plans(self, job):
        """The AdminComment of each component."""
        lines = self.cluster.out("scontrol", "-o", "show", "job", job).splitlines()
        return ["AdminComment=banyan: dp=4,tp=2 nodes=4 ranks=8 " in line for line in lines]

    def test_sbatch(self):
        for training, words in ((1, (*OTHER, ":", *TRAIN)), (0, (*TRAIN, ":", *OTHER))):
            with self.subTest(training=training):
                job = self.cluster.sbatch(*words, script=self.steps(training))
                self.cluster.wait_for_job(job)
                self.check_parts(self.cluster.output(job))
                self.assertEqual(self.plans(job), [training == 0, training == 1])

    def test_directives(self):
        first, second = (f"#SBATCH {' '.join(words)}\n" for words in (OTHER, TRAIN))
        job = self.cluster.sbatch(script=f"#!/bin/bash\n{first}#SBATCH hetjob\n{second}{self.steps(1)}")
        self.cluster.wait_for_job(job)
        self.check_parts(self.cluster.output(job))

    def test_salloc(self):
        for training, words in ((1, (*OTHER, ":", *TRAIN)), (0, (*TRAIN, ":", *OTHER))):
            with self.subTest(training=training):
                self.cluster.wait_for_nodes_idle()
                self.check_parts(self.cluster.out("salloc", *words, "bash", "-c", self.steps(training)))

    def step(self, *words):
        return f"echo step; srun {' '.join(words)} {SHOW} 2>&1; echo ended $?\n"

    def steps_of(self, options, steps):
        """Runs them in one batch job. [(exit status, output, nodes of its tasks)]"""
        job = self.cluster.sbatch(*options, script="".join(steps) + "scontrol -o show job $SLURM_JOB_ID | sed 's/^/job /'\n")
        self.cluster.wait_for_job(job)
        output, _, told = self.cluster.output(job).partition("job JobId=")
        out = []
        for part in output.split("step\n")[1:]:
            text, _, status = part.rpartition("ended ")
            out.append((int(status), text, [line.split()[0].split(":")[1] for line in self.lines(text)]))
        self.assertEqual(len(out), len(steps), output)
        return told, out

    SPARE = ("-N3", "--ntasks-per-node=2", "--train-parallel=tp=4", "--train-spares=1")

    def test_a_component_with_a_spare(self):
        """Steps of it by srun are what they would be in a job of its own: the training is off the spare, a helper gets no ranks."""
        sizes = ((), ("-n4",), ("-N2",), ("-N2", "-n4"), ("-N3", "-n4"))
        training = [(), ("--train-parallel=tp=4",), *(("--train", *size) for size in sizes)]
        helpers = [("-n1", "-N1"), ("-n4",), ("-N1", "-n4"), ("--overlap",), ("--overlap", "-n4"), ("--overlap", "-N2", "-n4"), ("-n6",)]
        refused = [(("--train-parallel=tp=2",), "--train-parallel=tp=2 is not the shape of job"), (("-n3", "--train-parallel=tp=4"), "ask for -n 4"),
                   (("--overlap", "--train-parallel=tp=4"), "it says --overlap")]
        for first in (True, False):
            with self.subTest(first=first):
                self.cluster.wait_for_nodes_idle()
                group = f"--het-group={0 if first else 1}"
                words = [*training, *helpers, *(words for words, _ in refused)]
                told, done = self.steps_of((*self.SPARE, ":", *OTHER) if first else (*OTHER, ":", *self.SPARE),
                                           [self.step(group, *one) for one in words])
                spare, = re.findall(r"spares=1\((n\d+)\)", told)
                for one, (status, text, nodes) in zip(words, done):
                    with self.subTest(step=one):
                        reason = dict(refused).get(one)
                        if reason:
                            self.assertNotEqual(status, 0, text)
                            self.assertEqual(nodes, [], text)
                            self.assertIn(reason, text)
                            continue
                        self.assertEqual(status, 0, text)
                        ranks = sorted(line.split()[1] for line in self.lines(text))
                        self.assertEqual(ranks, [f"rank={rank}/4" for rank in range(4)] if one in training else ["rank=/"] * len(nodes), text)
                        if one in training:
                            self.assertNotIn(spare, nodes, text)
                            self.assertNotRegex(text, "Warning|banyan: ")

    def test_a_component_that_does_not_train(self):
        _, done = self.steps_of((*OTHER, ":", *self.SPARE), [self.step("--het-group=0", "-n2", "--train-parallel=tp=2"), self.step("-n4")])
        self.assertNotEqual(done[0][0], 0, done)
        self.assertEqual(done[0][2], [], done)
        self.assertIn("--train-parallel=tp=2 is not for component 0 of job", done[0][1])
        self.assertEqual(done[1][0], 0, done)
        self.assertEqual({line.split()[1] for line in self.lines(done[1][1])}, {"rank=/"}, done)

    def test_srun_of_several_components_is_refused(self):
        for words in ((*OTHER, "true", ":", *TRAIN, "true"), (*TRAIN, "true", ":", *OTHER, "true")):
            with self.subTest(words=words):
                self.cluster.wait_for_nodes_idle()
                done = self.cluster.run("srun", *words, check=False)
                self.assertRegex(done.stderr, "banyan: (srun starts all components as one step|this Slurm cannot order)")

    def test_both_in_one_step(self):
        """The ranks cannot be told; that is said, and what is no training goes on."""
        job = self.cluster.sbatch(*OTHER, ":", *TRAIN, script=f"srun --het-group=0,1 {SHOW}\n")
        self.cluster.wait_for_job(job)
        text = self.cluster.output(job)
        self.assertIn("banyan: this step has several components, so its tasks get no rank environment; start the training by itself, "
                      "with banyan-run or srun --het-group=N", text)
        self.assertEqual(len(self.lines(text)), 9)

    def test_two_that_train_are_refused(self):
        # plugstack.conf calls the plugin optional here: what it says is heard, and slurmctld refuses.
        why = "two components of a heterogeneous job have --train-parallel; one may"
        for command in (("sbatch", "--wrap=true"), ("salloc",), ("srun",)):
            tail = ("true",) if command[0] == "srun" else ()
            words = (command[0], *command[1:], *TRAIN, *tail, ":", "-N2", "--train-parallel=dp=2", *(tail or (("true",)
                     if command[0] == "salloc" else ())))
            done = self.cluster.run(*words, check=False)
            self.assertNotEqual(done.returncode, 0, done.stdout)
            self.assertRegex(done.stderr, why + ("|put salloc" if command[0] == "srun" else ""))
        done = self.cluster.run("env", "BANYAN_TRAIN_PARALLEL=dp=2", "sbatch", "--wrap=true", "-N2", ":", "-N2", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("the variable BANYAN_TRAIN_PARALLEL gives it to each component", done.stderr)
        self.assertEqual(self.cluster.out("squeue", "-h"), "")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""Two hundred submissions by the dice, from two users, over sbatch, srun and salloc and their usual options. Each job has the ranks that
`banyan-topo place` says on the nodes that it says, with no task on a spare; or was refused with the reason, and left nothing; or is
plain Slurm. What is written as the manual has it must run. BANYAN_SEED and BANYAN_SUBMISSIONS choose others."""

import collections
import json
import os
import random
import shlex

from harness import BUILD, ClusterCase, main

SEED = int(os.environ.get("BANYAN_SEED", "20261122"))
SUBMISSIONS = int(os.environ.get("BANYAN_SUBMISSIONS", "200"))
USERS = (65534, 1)  # nobody, daemon
NODES, CPUS = 12, 8
TASK = """#!/bin/bash
# One line a task; `own` counts what banyan has put into its environment.
echo "$1 $SLURM_PROCID ${RANK-none} ${WORLD_SIZE-none} $SLURMD_NODENAME $(env | grep -cE '^(RANK|WORLD_SIZE|BANYAN_(TP|DP|PP)_)') $SLURM_JOB_ID"
"""

# words: the whole command. clean: it has to run. asked: what it asks for, or None for a plain job. free: nodes that it can get.
Submission = collections.namedtuple("Submission", "program options steps env clean asked free")
Asked = collections.namedtuple("Asked", "shape ranks nodes per_node spares model")


class Dice:
    def __init__(self, seed, programs):
        self.random = random.Random(seed)
        self.programs = programs

    def submission(self, free):
        """One that can run at once on `free` nodes, unless it is meant to be refused."""
        r = self.random
        program = r.choice(self.programs)
        options, env = [r.choice(("--partition=train", "--partition=shared"))], {}
        if r.random() < 0.2:
            left_out = r.sample(free, r.randint(1, 2))
            free = [node for node in free if node not in left_out]
            options.append("--exclude=" + ",".join(left_out))
        options += self.harmless(program)
        if r.random() < 0.25:
            nodes = r.randint(1, 4)
            options += r.choice(([f"-N{nodes}"], [f"-N{nodes}", f"--ntasks-per-node={r.randint(1, 4)}"], [f"-n{r.randint(1, 9)}"]))
            return Submission(program, options, self.plain_steps(), env, True, None, free)
        asked = self.shape(len(free))._replace(model=r.choice((None,) * 9 + ("hidden=1024,layers=8",)))
        numbers, clean = self.numbers(asked)
        if not any(word.startswith(("-N", "--ntasks-per-node")) for word in numbers) and asked.ranks + asked.spares > len(free):
            options = [word for word in options if word != "--gres=gpu:1"]  # a rank for each GPU: more nodes than are free
        options += numbers
        if asked.spares:
            options.append(f"--train-spares={asked.spares}")
        if r.random() < 0.15:
            env["BANYAN_TRAIN_PARALLEL"] = asked.shape
        else:
            options.append(f"--train-parallel={asked.shape}")
        if r.random() < 0.2:
            options.append(r.choice(("--train-ckpt=every=1", "--train-wait=1")))
        if asked.model:
            options.append(f"--train-model={asked.model}")
        if r.random() < 0.08:
            options.append(r.choice(("--train-ckpt=size=9999T", "--train-spares=2000", "--train-parallel=tp=0", "--train-parallel=tp=1048576")))
            clean = False
        steps, right = self.steps(asked)
        return Submission(program, options, steps, env, clean and right, asked, free)

    def shape(self, most):
        """Dimensions in any order; so many ranks that they fill nodes evenly."""
        r = self.random
        spares = r.choice((0, 0, 0, 1, 1, 2))
        active = r.choice([n for n in (1, 2, 3, 4, 6, 8) if n + spares <= most])
        per_node = r.choice((1, 2, 4, 8))
        left, sizes = active * per_node, []
        for name in r.sample(("tp", "pp", "dp"), 3):
            size = left if len(sizes) == 2 else r.choice([n for n in range(1, left + 1) if left % n == 0])
            sizes.append(f"{name}={size}")
            left //= size
        return Asked(",".join(sizes), active * per_node, active + spares, per_node, spares, None)

    def numbers(self, asked):
        r, kind = self.random, self.random.random()
        if kind < 0.4:
            return [f"-N{asked.nodes}", f"--ntasks-per-node={asked.per_node}"], True
        if kind < 0.55:
            return [f"-N{asked.nodes}"], True
        if kind < 0.7:  # Slurm itself lowers the nodes where there are fewer tasks
            return [f"-N{asked.nodes}", f"-n{asked.ranks}"], asked.ranks > asked.nodes or not asked.spares
        if kind < 0.8:
            return [f"--ntasks-per-node={asked.per_node}"], False
        return r.choice(([f"-n{asked.ranks}"], [f"-N{asked.nodes}", f"-n{asked.ranks + r.randint(1, 3)}"],
                         [f"-N{asked.nodes + r.randint(1, 2)}"], [f"-N{asked.nodes}-{asked.nodes + 2}"], [],
                         [f"-N{asked.nodes}", f"--ntasks-per-node={asked.per_node + 1}"])), False

    def harmless(self, program):
        r = self.random
        known = ("--no-kill", "--job-name=x", "--time=10", "--comment=y", "--nice=5", "--mem=100", "--gres=gpu:1", "--exclusive",
                 "--switches=2", "-c1", "--hint=nomultithread", "--spread-job", "--overcommit")
        known += {"sbatch": ("--requeue", "--export=ALL"), "srun": ("--export=ALL", "--distribution=block"), "salloc": ()}[program]
        return r.sample(known, r.choice((0, 0, 1, 1, 2)))

    def plain_steps(self):
        return [self.random.choice(("srun", "srun -n1", "srun --overlap"))]

    def steps(self, asked):
        """Of a batch job or an allocation: (commands before the task, whether they have to work)."""
        r, active = self.random, asked.nodes - asked.spares
        kind, right = r.choice((("srun", True), ("srun", True), ("banyan-run", True), (f"srun --train -N{active} -n{asked.ranks}", True),
                                (f"srun --train --ntasks-per-node={asked.per_node}", True), ("srun -l", True), ("srun -m cyclic", False),
                                (f"srun -n{asked.ranks + 1} --train-parallel={asked.shape}", False)))
        steps = [kind]
        if asked.ranks > 1 and r.random() < 0.3:
            steps.insert(0, "helper srun -N1 -n1")
        return steps, right


class RandomSubmissions(ClusterCase):
    nodes = NODES
    options = ("--group-size", 4, "--without", "fault")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tmp = cls.cluster.dir / "tmp"
        cls.tmp.chmod(0o777)
        cls.task = cls.tmp / "task.sh"
        cls.task.write_text(TASK)
        cls.task.chmod(0o755)
        cls.cluster.run("scontrol", "create", "PartitionName=shared", "Nodes=ALL", "OverSubscribe=NO", "State=UP", "MaxTime=INFINITE")

    def test_every_job_is_right_or_refused_or_plain(self):
        dice, seen = Dice(SEED, ("srun", "sbatch", "sbatch", "salloc")[0 if self.cluster.asks_about_steps() else 1:]), collections.Counter()
        wrong = []
        for number in range(SUBMISSIONS):
            if number % 25 == 0:
                free = self.occupy(dice.random)
            submission = dice.submission(free)
            user = USERS[number % 2]
            words, done = self.submit(submission, user, number)
            try:
                seen[self.judge(submission, done)] += 1
            except AssertionError as error:
                wrong.append(f"{number}: {words}; {submission.steps}\n{error}\n--- stdout\n{done.stdout}--- stderr\n{done.stderr}")
        print(f"seed {SEED}: {dict(seen)}, {len(wrong)} wrong", flush=True)
        self.assertEqual(wrong, [], "\n\n".join(wrong))
        self.assertGreater(seen["trained"], SUBMISSIONS // 3)
        self.assertGreater(seen["refused"], SUBMISSIONS // 20)

    def occupy(self, dice):
        """Another user's job on a few nodes. The nodes that are left."""
        self.cluster.run("scancel", "--partition=train")
        self.cluster.wait_for_nodes_idle()
        names = [f"n{i:02d}" for i in range(1, NODES + 1)]
        busy = sorted(dice.sample(names, dice.randint(1, 3)))
        job = self.cluster.sbatch("-N", len(busy), "-w", ",".join(busy), script="sleep 3600\n")
        self.cluster.wait_for_job(job, "RUNNING")
        self.blocker = str(job)
        return [name for name in names if name not in busy]

    def submit(self, submission, user, number):
        become = ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "env",
                  *(f"{key}={value}" for key, value in submission.env.items()))
        script = self.tmp / f"script-{number}"
        lines = ["#!/bin/bash"]
        for step in submission.steps:
            kind, step = ("helper", step.removeprefix("helper ")) if step.startswith("helper ") else ("task", step)
            # The last step's end is the job's.
            lines.append(f"{step} {shlex.quote(str(self.task))} {kind}")
        script.write_text("\n".join(lines) + "\n")
        script.chmod(0o755)
        if submission.program == "srun":
            words = ("srun", *submission.options, self.task, "task")
        elif submission.program == "salloc":
            words = ("salloc", *submission.options, script)
        else:
            words = ("sbatch", "--wait", f"--chdir={self.tmp}", f"--output={self.tmp}/out-{number}", *submission.options, script)
        done = self.cluster.run(*become, *words, check=False, cwd=self.tmp, timeout=90)
        out = self.tmp / f"out-{number}"
        if out.exists():
            done.stdout += out.read_text()
        self.cluster.wait_for(lambda: self.cluster.out("squeue", "-h", "-o", "%i").split() == [self.blocker], f"{words} has left the queue")
        return " ".join(map(str, words)), done

    # -- what is right ---------------------------------------------------------------------------------------------------------

    def judge(self, submission, done):
        """What became of it: plain, trained, refused, or told that its step does not fit. Fails when it is none of them."""
        tasks = [line.split() for line in done.stdout.splitlines() if line.split()[:1] == ["task"]
                 or (line.split()[1:2] == ["task"] and line.split()[0].endswith(":"))]  # srun -l numbers the lines
        tasks = [words[1:] if words[0] != "task" else words for words in tasks]
        helpers = [line.split() for line in done.stdout.splitlines() if line.startswith("helper ")]
        for words in helpers:
            self.assertEqual((words[2], words[5]), ("none", "0"), "a helper step got ranks")
        if submission.asked is None:
            self.assertEqual(done.returncode, 0, "a plain job was not run")
            self.assertTrue(tasks)
            self.assertEqual({(words[2], words[5]) for words in tasks}, {("none", "0")}, "a plain job got ranks")
            self.assertNotIn("banyan", done.stderr)
            return "plain"
        if not tasks:
            self.assertNotEqual(done.returncode, 0, "neither ran nor was refused")
            self.assertFalse(submission.clean, "is written as the manual has it, and was refused")
            self.assertRegex(done.stdout + done.stderr, "error: ", "was refused without a reason")
            return "refused"
        self.assertEqual(done.returncode, 0, "ran, and did not succeed")
        if not submission.clean and "this step is not the training" in done.stdout + done.stderr:
            self.assertEqual({(words[2], words[5]) for words in tasks}, {("none", "0")}, "is not the training, and got ranks")
            return "told"
        asked = submission.asked
        shape = next(word.split("=", 1)[1] for word in [*submission.options[::-1], f"x={asked.shape}"]
                     if word.startswith(("--train-parallel=", "x=")))
        self.assertEqual(shape, asked.shape, "a shape that cannot be ran")
        self.assertEqual(sorted(int(words[1]) for words in tasks), list(range(asked.ranks)), "not the ranks of the shape")
        self.assertTrue(all(words[1] == words[2] and int(words[3]) == asked.ranks for words in tasks), "RANK is not the task's number")
        nodes = collections.Counter(words[4] for words in tasks)
        self.assertEqual(len(set(nodes.values())), 1, f"uneven: {dict(nodes)}")
        job = self.cluster.job(tasks[0][6])
        allocated = self.cluster.hosts(job["NodeList"])
        self.assertEqual(len(allocated) - len(nodes), asked.spares, "a task on a spare, or nodes that nobody uses")
        per_node = next(iter(nodes.values()))
        placed = self.place(asked, len(allocated), per_node, submission.free)
        self.assertEqual([words[4] for words in sorted(tasks, key=lambda words: int(words[1]))], placed["ranks"], "not as banyan-topo places it")
        self.assertEqual(sorted(allocated), sorted(placed["nodes"] + placed["spares"]))
        return "trained"

    def place(self, asked, nodes, per_node, free):
        return json.loads(self.cluster.out(BUILD / "bin" / "banyan-topo", "place", self.cluster.dir / "fabric.snapshot", "--shape", asked.shape,
                                           "--nodes", nodes, "--ranks-per-node", per_node, "--spares", asked.spares, "--free", ",".join(free),
                                           *(["--model", asked.model] if asked.model else []), "--json"))


if __name__ == "__main__":
    main()

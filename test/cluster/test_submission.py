# SPDX-License-Identifier: BSD-3-Clause
"""What sbatch, salloc and srun make of a shape and its spares: every rank on the node of the plan and none on a spare, in a partition of
whole nodes and in one that shares them among users; a line to type where the numbers cannot be; steps beside the training left alone.
Where a task runs is read from the task itself, and compared with banyan-topo's placement of the same job.
"""

import json
import re
from collections import Counter

from harness import BUILD, ClusterCase, main

ALICE, BOB = (("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups") for uid in (65534, 1))  # nobody, daemon
SHARED = "--partition=shared"
SPARE = ("--train-parallel=tp=4", "--train-spares=1")  # 2 ranks on each of 2 nodes, and one node that waits

# A job's script: each step of a file, what it printed, and its end.
STEPS = """
while IFS= read -r words; do
    echo "step: $words"
    eval "$words" </dev/null 2>&1
    echo "ended with $?"
done <{file}
"""


class Submission(ClusterCase):
    nodes = 8
    options = ("--group-size", 4, "--without", "fault")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tmp = cls.cluster.dir / "tmp"
        cls.tmp.chmod(0o777)
        cls.task = cls.tmp / "task.sh"
        cls.task.write_text("#!/bin/bash\necho task $SLURM_PROCID ${RANK-none} ${LOCAL_WORLD_SIZE-none} $SLURMD_NODENAME\n")
        cls.task.chmod(0o755)
        cls.cluster.run("scontrol", "create", "PartitionName=shared", "Nodes=ALL", "OverSubscribe=NO", "State=UP", "MaxTime=INFINITE")

    def setUp(self):
        super().setUp()
        self.addCleanup(lambda: self.assertEqual(self.queue(), ""))

    def queue(self):
        """What is left once jobs that end have ended."""
        self.cluster.wait_for(lambda: "CG" not in self.cluster.out("squeue", "-h", "-o", "%t").split(), "no job is completing")
        return self.cluster.out("squeue", "-h")

    # -- what tasks say --------------------------------------------------------------------------------------------------------

    def tasks(self, text):
        """{task id: (its RANK or none, node)}"""
        return {int(words[1]): (words[2], words[4]) for words in (line.split() for line in text.splitlines()) if words[:1] == ["task"]}

    def planned(self, shape, nodes, per_node, spares=0, free=None):
        """Nodes by rank, as banyan-topo places the job, and its spares."""
        free = free or [f"n{number:02}" for number in range(1, self.nodes + 1)]
        placed = json.loads(self.cluster.out(BUILD / "bin" / "banyan-topo", "place", self.cluster.dir / "fabric.snapshot", "--shape", shape,
                                             "--nodes", nodes, "--ranks-per-node", per_node, "--spares", spares, "--free", ",".join(free),
                                             "--json"))
        return placed["ranks"]

    def assert_trained(self, text, nodes_by_rank):
        self.assertEqual(self.tasks(text), {rank: (str(rank), node) for rank, node in enumerate(nodes_by_rank)}, text)

    def assert_even(self, text, ranks, per_node):
        """Each rank is its task, and every node has as many."""
        tasks = self.tasks(text)
        self.assertEqual({rank: task[0] for rank, task in tasks.items()}, {rank: str(rank) for rank in range(ranks)}, text)
        self.assertEqual(set(Counter(task[1] for task in tasks.values()).values()), {per_node}, text)

    def assert_helpers(self, text, count=None):
        tasks = self.tasks(text)
        self.assertEqual({task[0] for task in tasks.values()}, {"none"}, text)
        if count:
            self.assertEqual(len(tasks), count, text)

    def refused(self, *words, **options):
        done = self.cluster.run(*words, check=False, **options)
        self.assertNotEqual(done.returncode, 0, f"{words} was not refused:\n{done.stdout}{done.stderr}")
        self.assertEqual(self.tasks(done.stdout), {}, words)
        return done.stderr

    def run_steps(self, options, steps):
        """Runs the steps in one batch job. Returns (job, [(exit status, output) of each])."""
        file = self.tmp / "steps"
        file.write_text("".join(f"{words}\n" for words in steps))
        job = self.cluster.sbatch(*options, script=STEPS.format(file=file))
        self.cluster.wait_for_job(job)
        parts = re.findall(r"^step: [^\n]*\n(.*?)^ended with (\d+)$", self.cluster.output(job), re.M | re.S)
        self.assertEqual(len(parts), len(steps), self.cluster.output(job))
        return job, [(int(status), text) for text, status in parts]

    # -- an allocation of srun's own -------------------------------------------------------------------------------------------

    def test_srun_with_spares_of_its_own(self):
        if not self.cluster.asks_about_steps():
            self.skipTest("this Slurm orders no step of an allocation that srun makes")
        for partition in ("--partition=train", SHARED):
            for numbers in (("-N3", "-n4"), ("-N3",), ("--ntasks-per-node=2",), ("-N3", "--ntasks-per-node=2"), ("-N3", "-n4", "-c2"),
                            ("--gpus-per-node=2",), ("--gres=gpu:2",), ("-N3", "-G6"), ("-N3", "--gpus-per-task=2"), ("-N3", "--mem=100"), ("-N3", "--mem-per-cpu=10"),
                            ("-N3", "--immediate"), ("-N3", "--exclusive"), ("-N3", "--overcommit"), ("-N3", "-m", "cyclic")):
                with self.subTest(partition=partition, numbers=numbers):
                    done = self.cluster.run("srun", partition, *numbers, *SPARE, self.task)
                    self.assert_trained(done.stdout, self.planned("tp=4", 3, 2, 1))
                    self.assertNotIn("banyan", done.stderr)

    def test_one_rank_a_node_and_a_spare(self):
        words = ("--train-parallel=dp=5", "--train-spares=1")
        done = self.cluster.run(*self.cluster.srun("-N6", "--ntasks-per-node=1", *words), self.task)
        self.assert_trained(done.stdout, self.planned("dp=5", 6, 1, 1))
        for program in (("srun", "-N6", "-n5", *words, self.task), ("salloc", "-N6", "-n5", *words, "true"),
                        ("sbatch", "-N6", "-n5", *words, "--wrap=true"), ("sbatch", "-N6", "-n5", "--ntasks-per-node=1", *words, "--wrap=true")):
            with self.subTest(program=program):
                self.assertIn("write -N 6 --ntasks-per-node=1, and no -n", self.refused(*program))
        self.assertIn("write -N 5 --ntasks-per-node=1, and no -n",
                      self.refused("sbatch", "-N5", "-n3", "--train-parallel=dp=3", "--train-spares=2", "--wrap=true"))

    def test_a_node_of_the_plan_that_is_down_gives_way_to_the_spare(self):
        planned = self.planned("tp=4", 3, 2, 1)
        self.cluster.run("scontrol", "update", f"NodeName={planned[0]}", "State=DRAIN", "Reason=test")
        self.addCleanup(self.cluster.run, "scontrol", "update", f"NodeName={planned[0]}", "State=RESUME")
        done = self.cluster.run(*self.cluster.srun("-N3", *SPARE), self.task)
        self.assert_even(done.stdout, 4, 2)
        self.assertNotIn(planned[0], done.stdout)

    def test_a_spare_has_processors_for_the_ranks_that_may_come_to_it(self):
        for options in ((SHARED,), (SHARED, "-c2")):
            with self.subTest(options=options):
                job = self.cluster.sbatch("-N3", *options, *SPARE, script="true\n")
                fields = self.cluster.job(job)
                self.assertEqual((fields["NumTasks"], fields["NumCPUs"]), ("6", str(6 * len(options))))
                self.cluster.wait_for_job(job)

    # -- nodes that jobs share -------------------------------------------------------------------------------------------------

    def test_users_who_share_nodes_have_their_ranks_where_the_plan_says(self):
        """Bob has 6 and 3 CPUs of two nodes: Slurm alone would lay out Alice's ranks as CPUs are left."""
        bobs = [int(self.cluster.out(*BOB, "sbatch", "--parsable", SHARED, f"--chdir={self.tmp}", "--output=/dev/null", f"-n{cpus}", "-w", node,
                                     "--wrap=sleep 600")) for node, cpus in (("n01", 6), ("n05", 3))]
        for job in bobs:
            self.addCleanup(self.cluster.run, "scancel", job)
            self.cluster.wait_for_job(job, "RUNNING")
        for program in (self.cluster.srun()[:1], ("salloc", "-Q")):
            with self.subTest(program=program):
                start = ("srun",) if program != ("srun",) else ()
                done = self.cluster.run(*ALICE, *program, SHARED, "-N5", "--train-parallel=tp=4,dp=4", "--train-spares=1", *start, self.task,
                                        cwd=self.tmp)
                self.assert_even(done.stdout, 16, 4)
        script = self.tmp / "alice.sh"
        script.write_text(f"#!/bin/bash\nsrun {self.task}\nscontrol -o -d show job $SLURM_JOB_ID\n")
        script.chmod(0o755)
        out = self.tmp / "alice.out"
        out.touch()
        out.chmod(0o666)
        self.cluster.run(*ALICE, "sbatch", "-W", SHARED, "-N5", "--train-parallel=tp=4,dp=4", "--train-spares=1", f"--chdir={self.tmp}",
                         f"--output={out}", script)
        text = out.read_text()
        self.assert_even(text, 16, 4)
        self.assertIn("tp=4,dp=4 nodes=4 ranks=16 spares=1", text)
        spare = re.search(r"spares=1\((n\d+)\)", text).group(1)
        self.assertNotIn(spare, {node for _, node in self.tasks(text).values()})
        # The spare has the CPUs of a node's ranks, too.
        self.assertIn("NumNodes=5 NumCPUs=20 NumTasks=20", text)

    def test_ranks_that_do_not_fit_beside_others_wait_or_are_refused(self):
        self.assertIn("no node of this cluster has more than 8 CPUs",
                      self.refused("salloc", SHARED, "-N2", "--train-parallel=tp=32", "true"))
        self.assertIn("does not divide over 5", self.refused("sbatch", SHARED, "-N5", "--train-parallel=tp=8,dp=4", "--wrap=true"))

    # -- refusals --------------------------------------------------------------------------------------------------------------

    def test_what_would_fail_later_is_refused_by_every_program(self):
        table = (
            (("-N4", "--train-parallel=tp=1048576"), "more than 1024"),
            (("-N2", "--train-ckpt=every=1"), "--train-ckpt needs --train-parallel"),
            (("-N2", "--train-wait=10"), "--train-wait needs --train-parallel"),
            (("-N2", "--train-model=layers=80"), "--train-model needs --train-parallel"),
            (("-N2", "--train-spares=1"), "--train-spares needs --train-parallel"),
            (("-N2", "--train-parallel=tp=2", "--train-ckpt=size=9999T"), "more than 16T"),
            (("--train-parallel=tp=4",), "add -N NODES, or --ntasks-per-node=RANKS"),
            (("--gpus-per-node=3", "--train-parallel=tp=4"), "3 on each node do not divide"),
            (("-N2-4", "--train-parallel=tp=4"), "not a range"),
            (("-N2", "-n3", "--train-parallel=tp=4"), "ask for -n 4"),
            (("-N2", "--ntasks-per-node=4", "--train-parallel=tp=4"), "ask for -N 1"),
            (("-N3", "--ntasks-per-node=2", "--train-parallel=tp=4"), "ask for -N 2"),
            (("-N3", "-G7", "--train-parallel=tp=4", "--train-spares=1"), "-G 7 does not divide over 3 nodes"),
            (("-N3", "--ntasks-per-gpu=1", "--train-parallel=tp=4", "--train-spares=1"),
             "write --ntasks-per-node=2 --gpus-per-node=2, and no --ntasks-per-gpu"),
            (("-N1", "--train-spares=1", "--train-parallel=tp=4"), "leave none to run on"),
            (("-N2", "--train-parallel=tp=x"), "tp=x is not a size"),
            (("-N2", "--train-parallel=tp=4", "--train-spares=99999"), "--train-spares"),
        )
        for words, reason in table:
            for program in (("srun", *words, self.task), ("salloc", *words, "srun", self.task), ("sbatch", *words, f"--wrap=srun {self.task}")):
                with self.subTest(program=program):
                    # Where srun's own allocation is refused nothing else is looked at.
                    self.assertRegex(self.refused(*program), re.escape(reason) + ("|put salloc" if program[0] == "srun" else ""))
                    self.assertEqual(self.queue(), "")

    def test_twins_are_refused_alike(self):
        for variable, reason in (("BANYAN_TRAIN_PARALLEL=tp=x", "BANYAN_TRAIN_PARALLEL"), ("BANYAN_TRAIN_PARALLEL=tp=4", "does not divide over 3"),
                             ("BANYAN_TRAIN_CKPT=every=1", "--train-ckpt needs --train-parallel")):
            for program in (("srun", "-N3", self.task), ("salloc", "-N3", "true"), ("sbatch", "-N3", "--wrap=true")):
                with self.subTest(variable=variable, program=program):
                    self.assertIn(reason, self.refused("env", variable, *program))

    # -- steps of a job --------------------------------------------------------------------------------------------------------

    def test_a_training_step_takes_from_the_plan_what_it_does_not_say(self):
        sizes = ("-n4", "-N2", "-N2 -n4", "-N3 -n4", "-N1-3", "--ntasks-per-node=2", "--exclusive -n4", "-n4 --unbuffered", "")
        words = ("", "--train-parallel=tp=4", "-N3 --train-parallel=tp=4", "-m cyclic", "-m block", "-m plane=1", "--exact",
                 "--kill-on-bad-exit=1", "--label", "--export=NONE", "--export=HOME", "--export=ALL,A=1", *(f"--train {size}" for size in sizes))
        expected = self.planned("tp=4", 3, 2, 1)
        for options in (("-N3", "-n4"), ("-N3", "--ntasks-per-node=2"), ("-N3", "-n4", SHARED), ("--ntasks-per-node=2",), ("-N3", "--export=NONE")):
            with self.subTest(options=options):
                _, steps = self.run_steps((*options, *SPARE), [f"srun {one} {self.task}" for one in words])
                for one, (status, text) in zip(words, steps):
                    with self.subTest(step=one):
                        self.assertEqual(status, 0, text)
                        self.assert_trained(re.sub(r"^\d+: ", "", text, flags=re.M), expected)
                        self.assertNotIn("banyan", text)

    def test_banyan_run_starts_the_same_step(self):
        run = BUILD / "bin" / "banyan-run"
        for options in (("-N3",), ("-N3", SHARED)):
            _, steps = self.run_steps((*options, "--no-kill", *SPARE), [f"{run} {self.task}", f"{run} -n4 {self.task}"])
            for status, text in steps:
                self.assertEqual(status, 0, text)
                self.assert_trained(text, self.planned("tp=4", 3, 2, 1))
        _, steps = self.run_steps(("-N3", "--no-kill", *SPARE), [f"{run} --no-such-option {self.task}"])
        status, text = steps[0]
        self.assertNotEqual(status, 0)
        self.assertIn("no step was seen to begin", text)
        self.assertNotIn("starting it again", text)

    def test_nodes_that_the_user_chooses(self):
        plan = self.planned("tp=4", 3, 2, 1)
        job, steps = self.run_steps(("-N3", *SPARE), [f"srun -x {plan[0]} {self.task}", f"srun --train -w {plan[0]},{plan[2]} {self.task}"])
        spare, = set(self.cluster.hosts(self.cluster.job(job)["NodeList"])) - set(plan)
        self.assertEqual([status for status, _ in steps], [0, 0], steps)
        self.assert_even(steps[0][1], 4, 2)
        # The other slot stays where it was.
        self.assert_trained(steps[0][1], [spare, spare, plan[2], plan[2]])
        self.assert_trained(steps[1][1], plan)

    def test_helper_steps_get_no_ranks_and_hear_nothing(self):
        words = ("-n1", "-N1 -n1", "-N3 -n3", "--overlap", "--overlap -N2 -n4", "--overlap -n1 -N1", "-w n01 -n1", "-N2 -n2", "--pty")
        inner = f"srun --overlap -N2 -n4 {self.task}"
        for options in (("-N3", "-n4"), ("-N3", "--ntasks-per-node=2", SHARED)):
            lines = [f"srun {one} {self.task}" for one in words]
            lines.append(f"srun --overlap -n1 {self.task} : -n1 {self.task}")
            lines.append(f"srun bash -c '[ $RANK != 0 ] || {inner}'")
            job, steps = self.run_steps((*options, *SPARE), lines)
            for one, (status, text) in zip(lines, steps):
                with self.subTest(options=options, step=one):
                    self.assertEqual(status, 0, text)
                    self.assert_helpers(text)
                    self.assertNotIn("banyan", text)
            # None of them was taken for the training with another set of nodes.
            plan = self.planned("tp=4", 3, 2, 1)
            spare, = set(self.cluster.hosts(self.cluster.job(job)["NodeList"])) - set(plan)
            self.assertIn(f"spares=1({spare})", self.cluster.job(job)["AdminComment"])

    def test_a_helper_beside_the_training_leaves_the_plan_alone(self):
        plan = self.planned("tp=4", 3, 2, 1)
        spare = next(node for node in ("n01", "n02", "n03", "n04") if node not in plan)
        job, steps = self.run_steps(("-N3", *SPARE), [f"srun --overlap -N2 -n4 -w {plan[0]},{spare} {self.task}", f"srun {self.task}"])
        if spare in self.cluster.hosts(self.cluster.job(job)["NodeList"]):
            self.assert_helpers(steps[0][1], 4)
        self.assert_trained(steps[1][1], plan)

    def test_a_step_that_says_its_size_is_a_helper_and_says_so_where_it_is_as_large(self):
        plan = self.planned("tp=4", 3, 2, 1)
        words = ("-N1 -n4", "-n4", "-N2 -n4", "-n6", "--ntasks-per-node=2", "-N3", f"-w {plan[0]},{plan[2]}")
        _, steps = self.run_steps(("-N3", *SPARE), [f"srun {one} {self.task}" for one in words])
        for one, (status, text) in zip(words, steps):
            with self.subTest(step=one):
                self.assertEqual(status, 0, text)
                self.assert_helpers(text)
                self.assertIn("this step is not the training", text)
                self.assertIn("add --train", text)

    def test_a_step_that_a_rank_starts_is_not_the_training_for_that(self):
        _, steps = self.run_steps(("-N3", *SPARE), [f"srun --train bash -c '[ $RANK != 0 ] || srun --overlap -n1 {self.task}'"])
        self.assertEqual(steps[0][0], 0, steps[0])
        self.assert_helpers(steps[0][1], 1)

    def test_srun_says_with_v_why_a_step_is_not_the_training(self):
        words = ("-N1", "--overlap", "-w n01 -n1")
        _, steps = self.run_steps(("-N3", "-n4", *SPARE), [f"srun -v {one} {self.task}" for one in words])
        for one, (status, text) in zip(words, steps):
            with self.subTest(step=one):
                self.assertEqual(status, 0, text)
                self.assertIn("this step is not the training", text)

    def test_refused_steps_do_not_run(self):
        table = (("-n6 --train-parallel=tp=4", "ask for -n 4"), ("-N1 --train-parallel=tp=4", "write srun --train -n 4"),
                 ("--train-parallel=dp=4", "not the shape of job"),
                 ("--train-parallel=tp=8", "not the shape of job"), ("--train-parallel=tp=x", "tp=x is not a size"),
                 ("--overlap --train-parallel=tp=4", "it says --overlap"), ("--overlap --train", "it says --overlap"),
                 ("--train -n3", "ask for -n 4"), ("--train -w n01,n01", "its training is"),
                 ("-n1 --train-spares=2", "the job was submitted with 1"), ("--train -N1", "write srun --train -n 4"),
                 ("-x n01,n02 --train-parallel=tp=4", "needs 2 nodes"), ("-x n01,n02", "needs 2 nodes"),
                 ("--train-spares=2", "the job was submitted with 1"), ("--train-min-dp=1", "the job was submitted without it"),
                 ("--train-model=layers=2", "the job was submitted without it"))
        _, steps = self.run_steps(("-N3", "-w", "n[01-03]", *SPARE), [f"srun {words} {self.task}" for words, _ in table] + [f"srun {self.task}"])
        for (words, reason), (status, text) in zip(table, steps):
            with self.subTest(step=words):
                self.assertNotEqual(status, 0, text)
                self.assertEqual(self.tasks(text), {}, text)
                self.assertIn(reason, text)
        hosts = self.tmp / "hosts"
        hosts.write_text("n01\nn02\n")
        # A layout by hand is none: the order of the ranks is the plan's.
        _, by_hand = self.run_steps(("-N3", "-w", "n[01-03]", *SPARE), [f"SLURM_HOSTFILE={hosts} srun --train -m arbitrary {self.task}"])
        self.assertEqual(by_hand[0][0], 0, by_hand)
        self.assert_even(by_hand[0][1], 4, 2)
        # And nothing of them is left in the way.
        self.assert_even(steps[-1][1], 4, 2)

    def test_a_shape_of_the_step_in_an_allocation_without_one(self):
        _, steps = self.run_steps(("-N3",), [
            f"srun -N2 --train-parallel=tp=4 {self.task}", f"srun --train-parallel=tp=4 --train-spares=1 {self.task}",
            f"BANYAN_TRAIN_PARALLEL=tp=4 srun -N2 -n4 {self.task}", f"srun --train-parallel=tp=4 {self.task}",
            f"srun -N2 -n6 --train-parallel=tp=4 {self.task}", f"BANYAN_TRAIN_PARALLEL=tp=4 srun -N2 -n3 {self.task}",
            # Slurm makes that step, of three tasks and one: it may not stay, or no other would begin.
            f"srun -N2 -n4 -m plane=3 --train-parallel=tp=4 {self.task}", f"srun {self.task}",
            f"srun -N2 --train-parallel=tp=4 bash -c '[ $RANK != 0 ] || srun --overlap -N1 -n1 {self.task}'"])
        for status, text in steps[:3]:
            self.assertEqual(status, 0, text)
            self.assert_even(text, 4, 2)
        for status, text in steps[3:7]:
            self.assertNotEqual(status, 0, text)
            self.assertEqual(self.tasks(text), {}, text)
        self.assert_helpers(steps[7][1], 3)
        self.assertEqual(steps[8][0], 0, steps[8])
        self.assert_helpers(steps[8][1], 1)

    def test_a_step_from_outside_of_the_job(self):
        job = self.cluster.sbatch("-N3", *SPARE, script="sleep 600\n")
        self.addCleanup(self.cluster.run, "scancel", job)
        self.cluster.wait_for_job(job, "RUNNING")
        done = self.cluster.run("srun", f"--jobid={job}", "--overlap", "-n1", self.task)
        self.assert_helpers(done.stdout, 1)
        done = self.cluster.run("srun", f"--jobid={job}", "--train-parallel=tp=4", self.task)
        self.assert_trained(done.stdout, self.planned("tp=4", 3, 2, 1))
        self.assertIn("not the shape of job", self.refused("srun", f"--jobid={job}", "--train-parallel=dp=4", self.task))

    def test_a_program_that_loads_no_spank_plugin(self):
        """As slurmrestd: the options stand in the job's environment."""
        etc, portal = self.cluster.dir / "etc", self.tmp / "portal"
        portal.mkdir()
        conf = (etc / "slurm.conf").read_text()
        (portal / "plugstack.conf").touch()
        (portal / "slurm.conf").write_text(conf.replace(f"PlugStackConfig={etc}/plugstack.conf", f"PlugStackConfig={portal}/plugstack.conf"))
        script = self.tmp / "portal.sh"
        script.write_text(f"#!/bin/bash\nexport SLURM_CONF={etc}/slurm.conf\nsrun {self.task}\n")

        def submit(shape):
            return self.cluster.run("env", f"SLURM_CONF={portal}/slurm.conf", f"BANYAN_TRAIN_PARALLEL={shape}", "BANYAN_TRAIN_SPARES=1",
                                    "sbatch", "--parsable", "-N3", f"--chdir={self.tmp}", f"--output={self.tmp}/slurm-%j.out", script, check=False)
        job = int(submit("tp=4").stdout)
        self.cluster.wait_for_job(job)
        self.assert_trained(self.cluster.output(job), self.planned("tp=4", 3, 2, 1))
        self.assertIn("the value stands in the job's environment variable BANYAN_TRAIN_PARALLEL", submit("tp=four").stderr)

    # -- what a user may put there himself -------------------------------------------------------------------------------------

    def test_the_mark_of_srun_moves_nobody_elses_step(self):
        if not self.cluster.asks_about_steps():
            self.skipTest("this Slurm orders no step of an allocation that srun makes")
        mark = "SLURM_SPANK_BANYAN_STEP=srun"
        done = self.cluster.run("env", mark, "srun", "-N3", self.task)
        self.assert_helpers(done.stdout, 3)
        for value in ("SLURM_SPANK_BANYAN_STEP=", "SLURM_SPANK_BANYAN_STEP=" + "x" * 4000):
            done = self.cluster.run("env", value, "srun", "-N3", *SPARE, self.task)
            self.assert_trained(done.stdout, self.planned("tp=4", 3, 2, 1))
        # Of sbatch, the first step may be anything.
        job = self.cluster.sbatch("-N3", *SPARE, script=f"srun -N3 -n3 {self.task}\n", env={"SLURM_SPANK_BANYAN_STEP": "srun"})
        self.cluster.wait_for_job(job)
        self.assert_helpers(self.cluster.output(job), 3)


if __name__ == "__main__":
    main()

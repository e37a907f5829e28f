# SPDX-License-Identifier: BSD-3-Clause
"""A site that keeps Slurm's own select plugin: slurmctld has nothing of banyan's, and Slurm chooses the nodes. Rank order, spares and
checkpoints are there all the same, by a plan that follows from those nodes; what a user says of it moves nobody but his own ranks."""

import json
import re

from harness import main
from training import TrainingCase

NODES = 6


class WithoutSelect(TrainingCase):
    nodes = NODES
    options = ("--group-size", 3, "--gpus", 8, "--select", "cons_tres", "--without", "submit,snapshot,fault")

    def setUp(self):
        super().setUp()
        self.addCleanup(self.return_nodes)

    def return_nodes(self):
        for name in self.cluster.hosts(f"n[01-0{NODES}]"):
            if {"DOWN", "DRAIN"} & set(self.cluster.node(name)["state"]):
                self.cluster.run("scontrol", "update", f"nodename={name}", "state=resume", check=False)

    def take(self, node):
        for state in ("down", "drain"):
            self.cluster.run("scontrol", "update", f"nodename={node}", f"state={state}", "reason=broken")

    def nodes_of_ranks(self, job, ranks):
        """[node of rank 0, ...], once all of them run."""
        self.cluster.wait_for(lambda: len(self.ranks(job)) == ranks, f"{ranks} ranks of job {job} run")
        return [node for _, (_, node) in sorted(self.ranks(job).items())]

    def held(self, job):
        return self.cluster.hosts(self.cluster.job(job)["NodeList"])

    def plain(self, *options, script, env=None):
        job = self.cluster.sbatch(*options, script=script, env=env)
        self.cluster.wait_for_job(job)
        return job, self.cluster.output(job)

    def test_the_numbers_follow_from_the_shape_and_the_ranks_from_slurm_s_order(self):
        # The two ranks of a tensor group are four apart, and on one node: no distribution of Slurm's own does that.
        told = self.cluster.run("sbatch", "--test-only", "-N2", "--train-parallel=dp=2", "--train-wait=5", "--wrap=true").stderr
        self.assertIn("--train-wait has no effect here", told)
        job, output = self.plain("--ntasks-per-node=2", "--gpus=10", "--train-parallel=dp=4,tp=2", "--train-spares=1",
                                 script="banyan-run sh -c 'echo rank $RANK on $SLURMD_NODENAME of ${SLURM_DISTRIBUTION:-none}'\n")
        fields = self.cluster.job(job)
        self.assertEqual((fields["NumNodes"], fields["NumTasks"]), ("5", "10"))
        self.assertIn("gpu:2", fields["TresPerNode"])
        nodes = self.held(job)
        self.assertEqual(sorted(line for line in output.splitlines() if line.startswith("rank")),
                         [f"rank {rank} on {nodes[rank % 4]} of none" for rank in range(8)])
        said = re.search(r"Slurm chose the nodes, and the ranks follow their order: (\S+); to spare: (\S+); no fabric", output)
        self.assertEqual([*self.cluster.hosts(said[1]), said[2]], nodes)

    def test_it_says_what_a_placement_would_save(self):
        job = self.cluster.sbatch("-N5", "--ntasks-per-node=2", "--train-parallel=dp=2,pp=2,tp=2", "--train-spares=1",
                                  script="banyan-run sleep 1000\n")
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        self.cluster.wait_for(lambda: "would save" in self.cluster.output(job), "banyan-run says the command")
        command = re.search(r": (banyan-topo explain .*) says what", self.cluster.output(job))[1].split()
        told = json.loads(self.cluster.out(*command, "--json", "--fabric", self.cluster.dir / "fabric" / "net"))
        nodes = self.held(job)
        self.assertEqual((told["nodes"], told["spares"]), (nodes[:4], nodes[4:]))
        # Its tensor groups lie across nodes of two leaf groups, since Slurm knows no shape.
        self.assertLessEqual(told["arranged"]["above_leaf_bytes"], told["placed"]["above_leaf_bytes"])
        self.assertEqual(told["placed"]["above_leaf_bytes"], told["in_name_order"]["above_leaf_bytes"])

    def test_numbers_that_do_not_fit_are_refused_by_sbatch(self):
        for options, words in ((("-N2", "--train-parallel=tp=2,dp=3", "--ntasks-per-node=2"), "6 ranks"),
                               (("-n4", "-N4", "--train-parallel=dp=4", "--train-spares=1"), "no node is left for the spares"),
                               (("--train-spares=1", "-N2"), "--train-spares needs --train-parallel"),
                               (("-N2", "--train-parallel=dp=2", "--train-min-dp=3"), "more than the dp=2")):
            with self.subTest(options=options):
                done = self.cluster.run("sbatch", *options, "--wrap=true", check=False)
                self.assertNotEqual(done.returncode, 0, done.stdout)
                self.assertIn(words, done.stderr)
        self.assertEqual(self.cluster.out("squeue", "-h"), "")

    def test_srun_by_itself(self):
        def ordered(*words):
            ran = dict(line.split() for line in self.cluster.out(*words, "sh", "-c", "echo $RANK $SLURMD_NODENAME").splitlines())
            self.assertEqual(sorted(ran), ["0", "1", "2", "3"])
            self.assertTrue(ran["0"] == ran["1"] < ran["2"] == ran["3"], ran)
        ordered("srun", "-N2", "--ntasks-per-node=2", "--train-parallel=tp=2,dp=2")
        refused = self.cluster.run("srun", "-N3", "--ntasks-per-node=2", "--train-parallel=tp=2,dp=2", "--train-spares=1", "true", check=False)
        self.assertIn("put salloc and the same options before it", refused.stderr)
        ordered("salloc", "-N3", "--ntasks-per-node=2", "--train-parallel=tp=2,dp=2", "--train-spares=1", "srun")

    def test_a_second_loss_leaves_the_spare_that_came_in_where_it_is(self):
        job = self.submit_unending(6, spares=2, shape="tp=2,dp=4")
        self.wait_step(job, 3)
        before, nodes = self.nodes_of_ranks(job, 8), self.held(job)
        self.assertEqual(before, [node for node in nodes[:4] for _ in range(2)])
        for victim, spare in ((nodes[2], nodes[4]), (nodes[1], nodes[5])):
            counted = self.counted(job)
            self.take(victim)
            self.cluster.wait_for(lambda lost=victim: f"({lost} left the allocation); starting it again with" in self.cluster.output(job),
                                  "the step begins again")
            expected = [spare if node == victim else node for node in before]
            self.cluster.wait_for(lambda now=expected: self.nodes_of_ranks(job, 8) == now, f"{spare} has the ranks of {victim}")
            def since(at=counted[1]):
                return [entry for entry in self.log(job).restored if entry["at"] > at]
            self.cluster.wait_for(lambda: len(since()) == 8, "every rank has begun from a checkpoint")
            self.assert_kept(job, counted)
            newest = max(entry["step"] for entry in since())
            self.cluster.wait_for(lambda: max(self.committed(node, job) for node in self.held(job)) > newest, "it trains on")
            moved = {entry["rank"] for entry in since() if entry["source"] == "peer"}
            self.assertEqual(moved, {rank for rank, node in enumerate(before) if node == victim}, "the others begin from their own memory")
            before = expected
        self.stop.touch()
        self.wait_finished(job)
        self.assertEqual(self.cluster.job(job)["Restarts"], "0")

    def test_a_requeued_job_goes_on_from_memory(self):
        """Whichever nodes Slurm gives it: where a job flushes, its directory names those where it ran."""
        folder = self.cluster.dir / "tmp" / "requeued"
        folder.mkdir()
        job = self.submit_unending(3, shape="tp=2,dp=3", ckpt=f"dir={folder},every=1,flush=1000")
        self.wait_step(job, 5)
        before, counted = set(self.held(job)), self.counted(job)
        self.cluster.run("scontrol", "update", f"nodename={','.join(sorted(before))}", "state=drain", "reason=service")
        self.requeue_now(job)
        log = self.end(job)
        self.assert_kept(job, counted)
        self.assertEqual({entry["source"] for entry in log.restored}, {"peer"})
        self.assertFalse(before & {entry["node"] for entry in log.restored})

    def test_what_a_user_says_is_no_plan(self):
        """In the environment of his job, of its prolog and of his script: ckptd has the nodes of the job, and no other."""
        every = f"n[01-0{NODES}]"
        plan = json.dumps({"version": 3, "job": 1, "generation": 9, "restart": 0, "shape": "dp=6", "ranks_per_node": 1, "nodes": every,
                           "buddies": [1, NODES], "former": every, "former_addrs": "127.0.9.9"})
        forged = {"SLURM_SPANK_BANYAN_PLAN": plan, "SLURM_SPANK_SLURM_NODELIST": every, "SLURM_SPANK_SLURM_JOB_RESTART_COUNT": "7",
                  "BANYAN_PLAN": plan, "BANYAN_PLAN_SUMMARY": plan, "BANYAN_SLOT_NODES": every, "BANYAN_STEP_NODES": "n06,n05"}
        script = ("export SLURM_JOB_NODELIST=n[05-06] BANYAN_SLOT_NODES=n[05-06]\nsrun sh -c 'echo rank $RANK on $SLURMD_NODENAME'\n"
                  "export BANYAN_SLOT_NODES=n02,n01\nsrun sh -c 'echo swapped $RANK on $SLURMD_NODENAME'\n"
                  "until [ -e seen-$SLURM_JOB_ID ]; do sleep 0.1; done\n")
        job = self.cluster.sbatch("-N2", "--nodelist=n[01-02]", "--ntasks-per-node=1", "--train-parallel=dp=2", "--train-ckpt=every=1", script=script, env=forged)
        self.cluster.wait_for(lambda: self.cluster.output(job).count("swapped") == 2, "both steps have run")
        lines = sorted(self.cluster.output(job).splitlines())
        self.assertEqual(lines, ["rank 0 on n01", "rank 1 on n02", "swapped 0 on n02", "swapped 1 on n01"])
        for node in ("n01", "n02"):
            session = self.status(node)[job]
            self.assertEqual(sorted(session["nodes"]), ["n01", "n02"])
            self.assertEqual((session["restart"], session.get("former", [])), (0, []))
        for node in ("n05", "n06"):
            self.assertNotIn(job, self.status(node))
        (self.cluster.dir / "tmp" / f"seen-{job}").touch()
        self.cluster.wait_for_job(job)

    def test_a_job_without_options_is_slurm_s_alone(self):
        ask = "srun -n3 env | grep -E '^(BANYAN_(TRAIN|ST|SHAPE|SLOT|JOB|RANK)|MASTER_|RANK=|WORLD_SIZE)' | sort -u; echo end\n"
        job, output = self.plain("-N2", "-n3", script=ask)
        fields = self.cluster.job(job)
        self.assertEqual((fields["NumNodes"], fields["NumTasks"]), ("2", "3"))
        self.assertEqual(output, "end\n")
        self.assertEqual(self.status("n01"), {})


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""What a user puts into a job's SPANK environment does not become the plan that root acts on, and does not drain a node: with
job_submit/banyan, with the select plugin alone, where that has no snapshot of the fabric and does as cons_tres, and without it. The user
is nobody, and submits through Slurm's library."""

import json

from harness import HELPERS, ClusterCase, main

USER = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
SLURM_USER = ("setpriv", "--reuid=slurm", "--regid=slurm", "--clear-groups")
CKPT = "_SLURM_SPANK_OPTION_banyan_train_ckpt=every=1"
SHAPE = "_SLURM_SPANK_OPTION_banyan_train_parallel="
NODES = 3
# As slurmctld's plans were before they were sealed, and as the sealed text is: every node of the cluster, whoever has it.
OLD = json.dumps({"generation": 1, "restart": 0, "shape": f"dp={NODES}", "ranks_per_node": 1, "nodes": f"n[01-0{NODES}]",
                  "buddies": [*range(1, NODES), 0]})
NEW = json.dumps({"version": 2, "job": 1, "generation": 1, "restart": 0, "shape": f"dp={NODES}", "ranks_per_node": 1,
                  "nodes": f"n[01-0{NODES}]", "buddies": [1, NODES]})


class Attacks:
    """The tests of every configuration."""
    nodes = NODES

    def submit(self, mode, *entries, nodes=1, seconds=0):
        script = self.cluster.dir / "tmp" / f"hostile-{seconds}.sh"
        script.write_text(f"#!/bin/bash\nsleep {seconds}\n")
        script.chmod(0o644)
        return self.cluster.run(*USER, HELPERS / "bin" / "hostile_submit", script, nodes, "/dev/null", mode, *entries, check=False)

    def run_job(self, *entries, nodes=1):
        done = self.submit("given", *entries, nodes=nodes)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        job = int(done.stdout)
        self.cluster.wait_for_job(job)
        return job

    def sessions(self, job):
        """{node: the session of the job in its daemon}; a session outlives its job by its lease."""
        found = {}
        for socket in (self.cluster.dir / "run").glob("ckptd-*.sock"):
            status = self.cluster.run("banyan-ckpt", f"--socket={socket}", "status", "--json", check=False).stdout
            for session in json.loads(status or "{}").get("sessions", []):
                if session["job"] == job:
                    found[socket.stem.removeprefix("ckptd-")] = session
        return found

    def sealed(self, text, *as_user):
        """The plan as a credential of root, or of another."""
        file = self.cluster.dir / "tmp" / "payload"
        file.write_text("banyan plan\n" + text)
        file.chmod(0o644)
        return self.cluster.out(*as_user, "munge", "-S", self.cluster.dir / "run" / "munge.socket", "-i", file).strip()

    def forms(self, text):
        plain, prefixed, twice = f"BANYAN_PLAN={text}", f"SPANK_BANYAN_PLAN={text}", f"SPANK_SPANK_BANYAN_PLAN={text}"
        half = len(text) // 2
        return {"plain": [plain], "prefixed": [prefixed], "prefixed twice": [twice], "all": [plain, prefixed, twice],
                "twice": [plain, plain], "prefixed, last": [plain, prefixed],
                "lower case": [f"banyan_plan={text}", f"SPANK_banyan_plan={text}"],
                "pieces": [f"BANYAN_PLAN={text[:half]}", f"BANYAN_PLAN_2={text[half:]}"],
                "prefixed pieces": [f"SPANK_BANYAN_PLAN={text[:half]}", f"SPANK_BANYAN_PLAN_2={text[half:]}"],
                "a piece more": [f"BANYAN_PLAN_2={text}", f"SPANK_BANYAN_PLAN_2={text}"]}

    def assert_none_drained(self):
        self.cluster.wait_for_nodes_idle()

    def test_an_honest_job_has_a_session(self):
        """Or the others would show nothing."""
        job = self.run_job(CKPT, SHAPE + "dp=2", nodes=2)
        sessions = self.sessions(job)
        self.assertEqual(len(sessions), 2, sessions)
        for session in sessions.values():
            self.assertEqual(session["uid"], 65534)

    def test_each_task_of_an_array_has_a_session(self):
        """Slurm gives a task its own job id after its nodes are chosen: the plan is made out to that."""
        array = self.cluster.sbatch("-N1", "-n1", "--array=1-3", "--train-parallel=dp=1", "--train-ckpt=every=1", script="true\n")
        self.cluster.wait_for_nodes_idle()

        def tasks():
            lines = self.cluster.out("scontrol", "-o", "show", "job", array).splitlines()
            return [int(line.split()[0].partition("=")[2]) for line in lines if "JobState=COMPLETED" in line]
        self.cluster.wait_for(lambda: len(tasks()) == 3, "the array has ended")
        self.assertEqual([len(self.sessions(job)) for job in tasks()], [1] * 3)

    def test_a_forged_plan_opens_no_session(self):
        texts = {"old": OLD, "new": NEW, "sealed by the user": self.sealed(NEW, *USER), "sealed by root": self.sealed(NEW),
                 "sealed for another job": self.sealed(NEW, *SLURM_USER)}
        for kind, text in texts.items():
            for form, entries in self.forms(text).items():
                if kind != "old" and form not in ("plain", "prefixed", "pieces"):
                    continue
                with self.subTest(kind=kind, form=form):
                    if self.says_why:
                        done = self.submit("given", CKPT, *entries)
                        self.assertIn("--train-ckpt needs --train-parallel", done.stdout + done.stderr)
                    else:
                        self.assertEqual(self.sessions(self.run_job(CKPT, *entries)), {})
        self.assert_none_drained()

    def test_a_train_job_with_a_forged_plan_has_its_own(self):
        for text in (OLD, self.sealed(NEW, *SLURM_USER)):
            for form in ("plain", "prefixed", "all", "a piece more"):
                with self.subTest(form=form):
                    job = self.run_job(CKPT, SHAPE + "dp=1", *self.forms(text)[form])
                    sessions = self.sessions(job)
                    self.assertEqual(len(sessions), 1, sessions)
                    for node, session in sessions.items():
                        self.assertEqual(session["nodes"], [node])

    def test_slurmds_own_variables_are_not_the_users(self):
        """Whatever stands before them: the session is this job's and this user's."""
        job = self.run_job(CKPT, SHAPE + "dp=1", "SLURM_JOB_UID=0", "SPANK_SLURM_JOB_UID=0", "SLURM_JOB_ID=1", "SLURMD_NODENAME=n99",
                           "BANYAN_CONF=/dev/null", "LD_PRELOAD=/nowhere.so", "PATH=/nowhere", "SLURM_CONF=/dev/null",
                           "SLURM_NODELIST=n[01-99]", "SLURM_JOB_RESTART_COUNT=7")
        sessions = self.sessions(job)
        self.assertEqual(len(sessions), 1, sessions)
        for session in sessions.values():
            self.assertEqual(session["uid"], 65534)
        self.assert_none_drained()

    def test_an_environment_too_large_is_refused_and_drains_nothing(self):
        for mode, size, words in (("large", 135000, "an entry of 135000 bytes"), ("large", 40000, "an entry of 40000 bytes"),
                                  ("many", 100000, "has 100000 entries")):
            with self.subTest(mode=mode, size=size):
                done = self.submit(mode, size)
                self.assertEqual(done.returncode, 1, done.stdout)
                if self.says_why:
                    self.assertIn(words, done.stdout + done.stderr)
        self.assert_none_drained()
        self.run_job(CKPT, SHAPE + f"dp={NODES}", nodes=NODES)

    def test_what_is_within_the_limits_runs(self):
        self.run_job(*[f"A{i}=" + "x" * 30000 for i in range(8)])
        self.assert_none_drained()


class WithSubmitFilter(Attacks, ClusterCase):
    options = ("--without", "fault")
    says_why = True


class SelectPluginAlone(Attacks, ClusterCase):
    options = ("--without", "fault,submit")
    says_why = False


class WithoutSnapshot(Attacks, ClusterCase):
    options = ("--without", "fault,submit,snapshot")
    says_why = False


class WithoutSelectPlugin(Attacks, ClusterCase):
    """The plan follows from what slurmd says."""
    options = ("--select", "cons_tres", "--without", "fault,submit,snapshot")
    says_why = False

    def test_an_environment_too_large_is_refused_and_drains_nothing(self):
        self.skipTest("Slurm by itself drains the nodes: docs/without-select.md")


class LongHostLists(ClusterCase):
    nodes = 1
    options = ("--without", "fault")

    def test_a_step_with_a_bomb_for_its_nodes_runs_and_takes_no_memory(self):
        """slurmstepd reads the variable as root before the tasks start. Its peak is that of a step without."""
        def peak(*variables):
            export = ",".join(("--export=ALL", "BANYAN_TRAIN_CKPT=every=1", *variables))
            out = self.cluster.out("srun", "-N1", "-n1", export, "bash", "-c",
                                   "grep -E 'Name|VmHWM' /proc/$PPID/status; echo ${#BANYAN_STEP_NODES}").split()
            self.assertEqual(out[:3], ["Name:", "slurmstepd", "VmHWM:"])
            self.assertEqual(int(out[5]), sum(len(variable.partition("=")[2]) for variable in variables))
            return int(out[3])
        usual = peak()
        bomb = peak("BANYAN_STEP_NODES=" + "x" * 300 + "[0-999998]")
        self.assertLess(bomb, usual + 50_000, "KiB")


if __name__ == "__main__":
    main()

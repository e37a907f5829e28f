# SPDX-License-Identifier: BSD-3-Clause
"""Training that is interrupted on purpose: by a site's rules while the node stays, by a job that Slurm prefers, and at the time limit. Its
newest step is kept, and it goes on from there with the loss of an undisturbed run."""

import json
import os
import signal

from harness import main
from training import TrainingCase
from trouble import Trouble

from banyan_cluster import layout as layouts, parts, process
from banyan_demo import trainer_log

RULES = """[[rule]]
name = "again"
xid = 94
action = "restart-step"
why = "the error is contained"

[[rule]]
name = "elsewhere"
xid = 92
action = "requeue"
why = "many errors"

[[rule]]
name = "unfit"
xid = 64
swept = "unfit"
action = "drain"
why = "a sweep found it unfit"

[[rule]]
name = "look"
xid = [64, 62]
action = "sweep"
why = "is the node fit?"
"""
STEPS = 1200  # more than fit into a grace time
XID = "NVRM: Xid (PCI:0000:13:00): {}, pid='<unknown>', name=<unknown>, an error"
PARTITIONS = """PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=low Nodes=ALL MaxTime=INFINITE State=UP OverSubscribe=EXCLUSIVE PriorityTier=1 PreemptMode=REQUEUE GraceTime=4
PartitionName=lowest Nodes=ALL MaxTime=INFINITE State=UP OverSubscribe=EXCLUSIVE PriorityTier=1 PreemptMode=CANCEL GraceTime=4
PartitionName=high Nodes=ALL MaxTime=INFINITE State=UP OverSubscribe=EXCLUSIVE PriorityTier=9 PreemptMode=OFF
"""


class Interruption(TrainingCase):
    nodes = 8

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        etc = cls.cluster.dir / "etc"
        (etc / "policy.toml").write_text(RULES)
        settings = (etc / "banyan.conf").read_text()
        cls.disk = cls.cluster.dir / "tmp" / "swept"
        (etc / "banyan.conf").write_text(settings + f'policy = "{etc}/policy.toml"\n'
                                         f'[sweep]\ndisks = ["{cls.disk}"]\ndisk_fill = 100\ndisk_inodes = 100\nmounts = ["/proc"]\n')
        (etc / "slurm.conf").write_text((etc / "slurm.conf").read_text() + PARTITIONS)
        trouble = Trouble(cls.cluster)
        trouble.end("faultd-controller")
        trouble.start_faultd()
        layout = layouts.load(cls.cluster.dir)
        slurmctld = cls.cluster.parts()["slurmctld"]
        os.kill(slurmctld, signal.SIGTERM)
        cls.cluster.wait_for(lambda: process.start_time(slurmctld) is None, "slurmctld has ended")
        parts.start_slurmctld(layout)
        cls.cluster.reconfigure()

    def tearDown(self):
        Trouble(self.cluster).return_nodes()

    def checkpoints(self):
        folder = self.cluster.dir / "tmp" / self.id().rpartition(".")[2]
        folder.mkdir()
        return folder

    def incident(self, job):
        def found():
            for incident in Trouble(self.cluster).incidents():
                if job in incident["jobs"] and any("trains again" in result for result in self.results(incident, "verify")):
                    return incident
            return None
        return self.cluster.wait_for(found, f"an incident says that job {job} trains again")

    def results(self, incident, what):
        return [a["result"] for a in incident["actions"] if a["what"] == what]

    def assert_same_loss(self, log):
        reference, losses = self.undisturbed(steps=STEPS, step_ms=1), trainer_log.losses(log)
        self.assertEqual(losses, {step: reference[step] for step in losses})

    # -- by a rule -----------------------------------------------------------------------------------------------------------

    def test_a_rule_starts_the_training_step_again_on_the_same_nodes(self):
        job = self.submit(8, steps=400)
        self.wait_step(job, 15)
        before = {rank: node for rank, (_, node) in self.ranks(job).items()}
        helper = self.cluster.start("srun", f"--jobid={job}", "--overlap", "-N1", "-n1", "sleep", "3600")
        self.addCleanup(helper.wait)
        self.addCleanup(helper.terminate)
        self.cluster.wait_for(lambda: len(self.steps(job)) == 2, "a helper's step runs beside")
        victim = sorted(set(before.values()))[3]
        counted = self.counted(job)
        self.cluster.kmsg(victim, XID.format(94))
        self.cluster.wait_for(lambda: len(self.log(job).starts) == 2, "it is started again")
        incident = self.incident(job)
        self.assertEqual(self.results(incident, "restart-step"), [f"ends step {job}.0 of run 0: banyan-run starts it again"])
        self.assertIn(f"{job}.1", self.steps(job), "the helper's step is left alone")
        helper.terminate()
        log = self.wait_finished(job)
        self.assert_same_loss(log)
        self.assertEqual({r["rank"]: r["node"] for r in log.restored}, before)
        self.assertEqual({r["source"] for r in log.restored}, {"local"})
        self.assertEqual((len(log.starts), self.cluster.job(job)["Restarts"]), (2, "0"))
        self.assert_kept(job, counted)
        self.assertEqual(self.cluster.node(victim)["reason"], "")

    def test_a_rule_requeues_the_job(self):
        job = self.submit(8, steps=400)
        self.wait_step(job, 15)
        victim = sorted({node for _, node in self.ranks(job).values()})[3]
        counted = self.counted(job)
        self.cluster.kmsg(victim, XID.format(92))
        incident = self.incident(job)
        self.assertEqual(self.results(incident, "requeue"), ["run 0 goes back into the queue"])
        log = self.wait_finished(job)
        self.assert_same_loss(log)
        self.assertEqual(self.cluster.job(job)["Restarts"], "1")
        self.assert_kept(job, counted)
        self.assertEqual(self.cluster.node(victim)["reason"], "")

    def swept(self, node, xid, verdict):
        """The incident of a node whose kernel tells of that, once it was swept and is done."""
        self.cluster.kmsg(node, XID.format(xid))

        def found():
            return next((i for i in Trouble(self.cluster).incidents()
                         if i["object"]["node"] == node and i.get("swept") and i["state"] == "done"), None)
        incident = self.cluster.wait_for(found, f"{node} was swept")
        self.assertEqual(incident["swept"], verdict, incident["actions"])
        return incident

    def test_a_rule_sweeps_a_node_and_only_another_takes_it_out(self):
        self.disk.mkdir()
        fit = self.swept("n05", 64, "fit")
        self.assertEqual(fit["rule"], "look")
        self.disk.rmdir()
        nobodys, unfit = self.swept("n06", 62, "unfit"), self.swept("n07", 64, "unfit")
        found = f"the node is unfit: disks: {self.disk}: cannot make a file: No such file or directory"
        for incident in (nobodys, unfit):
            self.assertEqual(self.results(incident, "sweep"), [found])
            self.assertIn(f"banyan-sweep: {found}", [line["text"] for line in incident["evidence"]])
        self.assertEqual((nobodys["rule"], unfit["rule"]), ("look", "unfit"))
        states = {node: self.cluster.node(node) for node in ("n05", "n06", "n07")}
        self.assertTrue(states["n07"]["reason"].startswith("banyan: "), states["n07"])
        self.assertEqual({node for node, is_now in states.items() if "DRAIN" in is_now["state"] or is_now["reason"]}, {"n07"})

    def steps(self, job):
        """Those of srun: the script is one for squeue, too."""
        listed = self.cluster.out("squeue", "--steps", "-h", "-j", job, "-o", "%i").split()
        return [step for step in listed if not step.endswith(".batch")]

    # -- by Slurm ------------------------------------------------------------------------------------------------------------

    def preempted(self, partition, **options):
        """A job that trains, and one that Slurm prefers, which takes all of its nodes; and the newest step of the first that was whole before
        that."""
        job = self.submit(8, steps=STEPS, options=(f"--partition={partition}",), **options)
        self.wait_step(job, 15)
        kept = max(self.kept_steps(job))
        other = self.cluster.sbatch("-N8", "--partition=high", script="sleep 1\n")
        self.cluster.wait_for_job(other, timeout=90)
        return job, kept

    def kept_steps(self, job):
        """The newest that each node's daemon calls whole: on a busy machine older than what was trained last."""
        for socket in sorted((self.cluster.dir / "run").glob("ckptd-*.sock")):
            answer = self.cluster.run("banyan-ckpt", "--socket", socket, "status", "--json", check=False)
            if answer.returncode == 0:  # a daemon without a session ends
                yield from (s["committed"]["step"] for s in json.loads(answer.stdout)["sessions"] if str(s["job"]) == str(job) and s["committed"])

    def test_a_preempted_job_is_requeued_and_goes_on_from_its_newest_step(self):
        job, kept = self.preempted("low")
        self.cluster.wait_for(lambda: self.cluster.job(job)["JobState"] in ("PENDING", "RUNNING"), "it is in the queue")

        def runs():
            if self.cluster.job(job)["JobState"] == "RUNNING":
                return True
            self.cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now", check=False)
            return False
        self.cluster.wait_for(runs, "it runs again")
        log = self.wait_finished(job)
        self.assert_same_loss(log)
        self.assertIn(STEPS, log.steps)
        self.assertEqual(self.cluster.job(job)["Restarts"], "1")
        again = log.restored[-16:]
        self.assertEqual({r["rank"] for r in again}, set(range(16)))
        self.assertGreaterEqual(min(r["step"] for r in again), kept)

    def test_a_job_that_is_preempted_for_good_leaves_its_newest_step_in_storage(self):
        ckpt = f"dir={self.checkpoints()},every=1,flush=1000"
        job, kept = self.preempted("lowest", ckpt=ckpt)
        self.assertEqual(self.cluster.job(job)["JobState"], "PREEMPTED")
        self.goes_on(ckpt, kept)

    def test_a_job_at_its_time_limit_leaves_its_newest_step_in_storage(self):
        ckpt = f"dir={self.checkpoints()},every=1,flush=1000"
        job = self.submit(8, steps=STEPS, step_ms=400, ckpt=ckpt, options=("--time=1",))
        self.cluster.wait_for_job(job, "TIMEOUT", timeout=150)
        self.goes_on(ckpt, max(self.log(job).steps) - 1)

    def goes_on(self, ckpt, kept):
        """Another job, from storage: no step that was complete is lost."""
        log = self.wait_finished(self.submit(8, steps=STEPS, step_ms=1, ckpt=ckpt))
        self.assertEqual({r["source"] for r in log.restored}, {"storage"})
        begun = {r["step"] for r in log.restored}
        self.assertEqual(len(begun), 1)
        self.assertGreaterEqual(begun.pop(), kept)
        self.assert_same_loss(log)
        self.assertIn(STEPS, log.steps)


if __name__ == "__main__":
    main()

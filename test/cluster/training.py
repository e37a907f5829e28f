# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of whole training jobs share: submitting the example trainer, and reading what it printed."""

import json
import os
import sys
import time
from pathlib import Path

from harness import REPOSITORY, ClusterCase

sys.path.insert(0, str(REPOSITORY / "scripts" / "lib"))

from banyan_demo import trainer_log, trainer_processes  # noqa: E402

SHAPE = "tp=2,pp=2,dp=4"
XID_79 = "NVRM: Xid (PCI:0000:13:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


class TrainingCase(ClusterCase):
    """A cluster on which jobs train."""

    def submit(self, nodes, spares=0, steps=60, step_ms=40, ckpt="every=1", shape=SHAPE, per_node=2, options=(), trainer=(),
               script=REPOSITORY / "examples/trainer/job.sh"):
        """Submits a batch script, by default the example's own. Returns the job id."""
        cluster = self.cluster
        words = [f"-N{nodes}", f"--ntasks-per-node={per_node}", "--gres=gpu:8", "--no-kill", "--requeue", "--open-mode=append",
                 f"--train-parallel={shape}", f"--chdir={cluster.dir}/tmp", f"--output={cluster.dir}/tmp/slurm-%j.out", *options]
        if spares:
            words.append(f"--train-spares={spares}")
        if ckpt:
            words.append(f"--train-ckpt={ckpt}")
        return int(cluster.out("sbatch", "--parsable", *words, script, "--steps", steps, "--step-ms", step_ms, *trainer))

    def submit_unending(self, nodes, **more):
        """A job that something is to happen to: it trains until end() has seen that it has."""
        self.stop = self.cluster.dir / "tmp" / f"stop-{time.monotonic_ns()}"
        return self.submit(nodes, trainer=("--stop-file", self.stop), **more)

    def end(self, job):
        """Has the job's processes started a second time, and then come to their end."""
        self.cluster.wait_for(lambda: len(self.log(job).starts) >= 2, "the ranks have begun again", timeout=90)
        self.stop.touch()
        return self.wait_finished(job)

    def requeue_now(self, job):
        """Requeues the job, and has it start at once: Slurm waits for two minutes once the nodes have ended the last run."""
        self.cluster.run("scontrol", "requeue", job)

        def starts():
            now = self.cluster.job(job)
            if now["JobState"] == "RUNNING" and now["Restarts"] == "1":
                return True
            self.cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now", check=False)
            return False
        self.cluster.wait_for(starts, "it is started again")

    def assert_losses(self, log, reference):
        """Those of the undisturbed run, as far as that went."""
        losses = trainer_log.losses(log)
        self.assertEqual({step: losses.get(step) for step in reference}, reference)

    def log(self, job):
        return trainer_log.read(self.cluster.dir / "tmp" / f"slurm-{job}.out")

    def wait_step(self, job, step):
        def reached():
            # A job that ended early tells why in its output.
            if self.cluster.job(job).get("JobState") in ("FAILED", "CANCELLED", "NODE_FAIL"):
                self.fail(f"job {job} ended:\n{self.cluster.output(job)}\n{self.cluster.evidence()}")
            return max(self.log(job).steps, default=0) >= step
        self.cluster.wait_for(reached, lambda: f"training step {step} of job {job}; it printed:\n{self.cluster.output(job)[-2000:]}")

    def wait_finished(self, job, timeout=90):
        self.cluster.wait_for_job(job, timeout=timeout)
        return self.log(job)

    def ranks(self, job):
        """{rank: (pid, node)} of the job's trainers."""
        return trainer_processes.of_job(self.cluster.dir, job)

    def status(self, node):
        """The sessions of the node's checkpoint daemon, by job; none where no daemon answers."""
        answer = self.cluster.run("banyan-ckpt", "--socket", self.cluster.dir / "run" / f"ckptd-{node}.sock", "status", "--json", check=False)
        return {session["job"]: session for session in json.loads(answer.stdout)["sessions"]} if answer.returncode == 0 else {}

    def sessions(self):
        """Jobs whose state the checkpoint daemons of the cluster hold."""
        nodes = (socket.stem.removeprefix("ckptd-") for socket in (self.cluster.dir / "run").glob("ckptd-*.sock"))
        return {job for node in nodes for job in self.status(node)}

    def committed(self, node, job):
        """The newest step that is complete, as one node's daemon has it; -1 where it has none, or does not answer."""
        return (self.status(node).get(job, {}).get("committed") or {}).get("step", -1)

    def counted(self, job):
        """(a step that is complete, epoch ms): asked before a fault, for assert_kept. How many steps a job trains beyond its newest
        complete one is a matter of how busy the machine is."""
        for node in self.cluster.hosts(self.cluster.job(job)["NodeList"]):
            if (step := self.committed(node, job)) > 0:
                return step, time.time() * 1000
        return self.fail(f"no daemon of job {job} has a complete step")

    def assert_kept(self, job, counted):
        """Every rank that began since went on at a step that is no older."""
        step, at = counted
        restored = [entry for entry in self.log(job).restored if entry["at"] > at]
        self.assertTrue(restored, self.cluster.output(job)[-3000:])
        self.assertEqual([entry for entry in restored if entry["step"] < step], [], f"step {step} was complete")

    def keepers(self):
        """Process ids of their keepers."""
        return self.daemons("banyan-ckpt-keeper")

    def daemons(self, program="banyan-ckptd"):
        """Process ids of this cluster's checkpoint daemons."""
        out = []
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                if os.path.basename(os.readlink(f"/proc/{name}/exe")) == program:
                    with open(f"/proc/{name}/cmdline", "rb") as file:
                        if os.fsencode(str(self.cluster.dir)) in file.read():
                            out.append(int(name))
            except OSError:
                continue
        return out

    def undisturbed(self, steps=60, step_ms=40):
        """Loss bits by step of a run that nothing happens to; once per class."""
        cls = type(self)
        if not hasattr(cls, "reference"):
            job = self.submit(8, steps=steps, step_ms=step_ms)
            cls.reference = trainer_log.losses(self.wait_finished(job))
            self.assertEqual(sorted(cls.reference), list(range(1, steps + 1)))
        return cls.reference

# SPDX-License-Identifier: BSD-3-Clause
"""slurmctld under valgrind's memcheck for a short run of train and plain jobs: no error and no leak whose stack has our code."""

import collections
import os
import re
import shutil
import signal
import unittest
import xml.etree.ElementTree

import harness
from banyan_cluster import layout as layouts, parts, process

# Slurm itself leaks here and there; only stacks with our code count. "Possibly lost" says nothing about Slurm's memory: xmalloc puts a
# header before each block, so every pointer to a block is one into its middle, and slurmctld does not free its jobs at its end.
OURS = ("select_cons_tres_banyan.so", "job_submit_banyan.so")


@unittest.skipUnless(shutil.which("valgrind"), "valgrind is not installed: apt-get install valgrind")
class Valgrind(unittest.TestCase):
    def test_train_and_plain_jobs(self):
        cluster = harness.Cluster(nodes=4, options=("--group-size", 2, "--gpus", 2, "--without", "fault"))
        self.addCleanup(cluster.remove)
        cluster.up()
        layout = layouts.load(cluster.dir)
        report = cluster.dir / "log" / "valgrind.xml"
        self.end(cluster)
        child = process.spawn(layout, "slurmctld", parts.controller_command(layout, under=[
            "valgrind", "--tool=memcheck", "--leak-check=full", "--show-leak-kinds=definite",
            "--errors-for-leak-kinds=definite", "--keep-debuginfo=yes",
            "--num-callers=40", "--xml=yes", f"--xml-file={report}", "--child-silent-after-fork=yes"]))
        process.wait_until(lambda: parts.answers_slurmctld(layout), 120, "slurmctld answers under valgrind", pause=0.5)
        cluster.wait_for(lambda: "idle" in cluster.out("sinfo", "-h", "-o", "%T"), "the nodes are idle", timeout=120)

        jobs = [
            cluster.sbatch("-N4", "--ntasks-per-node=1", "--train-parallel=dp=2,pp=2", script="srun hostname\nsrun -N2 -n2 hostname\n"),
            cluster.sbatch("-N3", "--ntasks-per-node=2", "--train-parallel=tp=2,pp=2", "--train-spares=1", "--gres=gpu:2",
                           script="srun -N2 -n4 hostname\n"),
            cluster.sbatch("-N2", "--ntasks-per-node=1", "--train-parallel=pp=2", "--array=1-2", script="srun hostname\n"),
            cluster.sbatch("-N2", "--exclusive", script="srun hostname\n"),
            cluster.sbatch("-N1", "--gres=gpu:1", script="true\n"),
        ]
        refused = cluster.run("sbatch", "-N3", "--ntasks-per-node=2", "--train-parallel=tp=2,pp=2", "--wrap=true", check=False)
        self.assertNotEqual(refused.returncode, 0)
        cluster.run("sbatch", "--test-only", "-N4", "--ntasks-per-node=1", "--train-parallel=dp=4", "--wrap=true", check=False)
        self.wait_for_no_jobs(cluster)
        # Another configuration and a new snapshot while a job waits.
        jobs.append(cluster.sbatch("--hold", "-N2", "--ntasks-per-node=1", "--train-parallel=dp=2", script="srun hostname\n"))
        self.reconfigure(cluster)
        os.utime(cluster.dir / "fabric.snapshot")
        cluster.run("scontrol", "release", jobs[-1])
        self.wait_for_no_jobs(cluster)
        # A requeued job keeps its nodes.
        again = jobs[-1]
        cluster.run("scontrol", "requeue", again)
        self.wait_for_no_jobs(cluster)
        for job in jobs:
            self.assertEqual(cluster.job(job).get("JobState"), "COMPLETED")
        self.shrink(cluster)

        pid = child.pid
        os.kill(pid, signal.SIGTERM)
        cluster.wait_for(lambda: process.start_time(pid) is None, "slurmctld has ended", timeout=120)
        ours, kinds = [], collections.Counter()
        for error in xml.etree.ElementTree.parse(report).getroot().iter("error"):
            frames = [(frame.findtext("obj") or "", frame.findtext("fn") or "?") for frame in error.iter("frame")]
            kinds[error.findtext("kind")] += 1
            if any(os.path.basename(obj) in OURS or "banyan" in fn for obj, fn in frames):
                text = error.findtext("what") or error.findtext("xwhat/text")
                ours.append(f"{error.findtext('kind')}: {text}: " + " < ".join(f"{fn} ({os.path.basename(obj)})" for obj, fn in frames[:14]))
        print(f"{sum(kinds.values())} errors of slurmctld, {len(ours)} with our code: {dict(kinds)}", flush=True)
        self.assertEqual(ours, [], "\n".join(ours))

    def shrink(self, cluster):
        """A job with a running step loses a node that stands before the step's."""
        text = cluster.run("salloc", "--no-shell", "--no-kill", "-N3", "-w", "n[01-03]", "--gres=gpu:2", timeout=120).stderr
        job = re.search(r"Granted job allocation (\d+)", text).group(1)
        step = cluster.start("srun", f"--jobid={job}", "-N1", "-w", "n03", "--gres=gpu:2", "sleep", "3")
        cluster.wait_for(lambda: f"{job}.0" in cluster.out("squeue", "-h", "-s", "-o", "%i"), "the step runs")
        cluster.run("scontrol", "update", "NodeName=n02", "State=DOWN", "Reason=test")
        self.assertEqual(cluster.hosts(cluster.job(job)["NodeList"]), ["n01", "n03"])
        step.communicate(timeout=120)
        self.assertEqual(step.returncode, 0)
        cluster.run("srun", f"--jobid={job}", "-N2", "-n2", "--gres=gpu:2", "true", timeout=120)
        cluster.run("scancel", job)
        self.wait_for_no_jobs(cluster)

    def reconfigure(self, cluster):
        """Until every slurmd is through with it: one that gets a job meanwhile may lose it, which takes Slurm minutes to see."""
        def rounds():
            return [log.read_text(errors="replace").count("CPU frequency setting not configured")
                    for log in sorted((cluster.dir / "log").glob("slurmd-*.log"))]
        before = rounds()
        self.assertEqual(len(before), 4)
        cluster.run("scontrol", "reconfigure", timeout=120)
        cluster.wait_for(lambda: all(now > was for was, now in zip(before, rounds())), "every slurmd has read the configuration")

    def wait_for_no_jobs(self, cluster):
        """Without the two minutes that Slurm waits with a requeued job."""
        def ended():
            lines = cluster.out("squeue", "-h", "-r", "-o", "%A %r").splitlines()
            for job, reason in (line.split(None, 1) for line in lines):
                if reason == "BeginTime":
                    cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now", check=False)
            return not lines
        cluster.wait_for(ended, "every job ends", timeout=180, pause=0.5)

    def end(self, cluster):
        pid = cluster.parts()["slurmctld"]
        os.kill(pid, signal.SIGTERM)
        cluster.wait_for(lambda: process.start_time(pid) is None, "slurmctld has ended")


if __name__ == "__main__":
    harness.main()

# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that lose the node of their script, or a node of ranks that nobody starts again: each is requeued once and soon, on nodes that
live and on dead ones, whatever slurmctld itself goes through at that moment."""

import re
import signal
from datetime import datetime

from harness import ClusterCase, main
from trouble import Trouble

from banyan_cluster import parts

SHAPE = ("--ntasks-per-node=1", "--no-kill", "--requeue", "--open-mode=append", "--mem-per-cpu=10")
WITH_SPARE = (*SHAPE, "-N3", "--train-spares=1", "--train-parallel=dp=2")
# The ranks of the first run wait, later ones end well. No rank sees the loss of a peer, and no script is asked to end.
RANKS = "bash -c 'echo rank $RANK of run ${SLURM_RESTART_COUNT:-0} on $SLURMD_NODENAME; [ ${SLURM_RESTART_COUNT:-0} = 0 ] || exit 0; exec sleep 600'"
SUPERVISED = f"banyan-run {RANKS}\n"
PLAIN = f"srun {RANKS}\n"
SOON = 60  # seconds: half of what Slurm takes by itself to start a requeued job


class LostJobs(ClusterCase):
    nodes = 8
    options = ("--group-size", 4, "--gpus", 2, "--without", "fault")

    def setUp(self):
        self.trouble = Trouble(self.cluster)
        self.lost = set()
        self.addCleanup(self.return_nodes)
        super().setUp()

    def return_nodes(self):
        self.trouble.start_what_ended()
        for node in self.lost:
            def back(name=node):
                if not {"DOWN", "DRAIN"} & {state.rstrip("*") for state in self.cluster.node(name)["state"]}:
                    return True
                self.cluster.run("scontrol", "update", f"nodename={name}", "state=resume", check=False)
                return False
            self.cluster.wait_for(back, f"{node} is back", pause=0.5)

    def ranks(self, job, run=0):
        return re.findall(rf"^rank \d+ of run {run} on (\S+)$", self.cluster.output(job), re.M)

    def start(self, *options, script=SUPERVISED):
        job = self.cluster.sbatch(*WITH_SPARE, *options, script=script)
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        self.cluster.wait_for(lambda: len(self.ranks(job)) == 2, "every rank runs")
        return job

    def take(self, node):
        """What the node says of itself would have it back in a moment."""
        self.lost.update(node.split(","))
        for state in ("down", "drain"):
            words = ("scontrol", "update", f"nodename={node}", f"state={state}", "reason=Not responding")
            # A slurmctld that is being reconfigured drops requests.
            self.cluster.wait_for(lambda asked=words: self.cluster.run(*asked, check=False).returncode == 0, f"{node} is {state}")

    def host_of(self, job):
        return self.cluster.job(job)["BatchHost"]

    def was_requeued_once(self, job, node):
        self.cluster.wait_for_job(job, timeout=SOON)
        fields = self.cluster.job(job)
        self.assertEqual(fields["Restarts"], "1", self.cluster.output(job))
        self.assertNotIn(node, self.cluster.hosts(fields["NodeList"]))
        self.assertEqual((len(self.ranks(job, 0)), len(self.ranks(job, 1)), len(self.ranks(job, 2))), (2, 2, 0), self.cluster.output(job))

    def test_a_dead_node_of_the_script(self):
        job = self.start()
        node = self.host_of(job)
        self.trouble.power_off(node)
        self.take(node)
        self.was_requeued_once(job, node)

    def test_a_living_node_of_the_script(self):
        """Slurm kills the script, whose end must not be taken for that of the job."""
        job = self.start()
        node = self.host_of(job)
        self.take(node)
        self.was_requeued_once(job, node)

    def test_a_living_node_of_ranks_that_nobody_starts_again(self):
        """The script lives, sees its step fail and ends with its code."""
        job = self.start(script=PLAIN)
        node = next(node for node in self.ranks(job) if node != self.host_of(job))
        self.take(node)
        self.was_requeued_once(job, node)

    def test_two_jobs_at_once(self):
        jobs = [self.start(), self.start(script=PLAIN)]
        nodes = [self.host_of(job) for job in jobs]
        for node in nodes:
            self.trouble.power_off(node)
        self.take(",".join(nodes))
        for job, node in zip(jobs, nodes, strict=True):
            self.was_requeued_once(job, node)

    def needs_the_batch_step(self):
        if self.cluster.release() >= (23, 11):
            self.skipTest("this slurmctld forgets the node of a script with the node, and one that starts anew cannot know it")

    def test_slurmctld_is_reconfigured_meanwhile(self):
        self.needs_the_batch_step()
        job = self.start()
        node = self.host_of(job)
        self.trouble.power_off(node)
        reconfigurations = self.cluster.start("bash", "-c", "for i in {1..20}; do scontrol reconfigure; done")
        self.take(node)
        reconfigurations.communicate(timeout=60)
        self.was_requeued_once(job, node)

    def test_slurmctld_dies_meanwhile(self):
        job = self.start()
        self.wait_for_saved(job)
        node = self.host_of(job)
        self.trouble.power_off(node)
        self.take(node)
        self.trouble.restart_slurmctld()
        self.take(node)  # what it had not saved
        self.was_requeued_once(job, node)

    def test_slurmctld_died_before_it_told_the_job(self):
        """As a slurmctld that knows of no training left it: the node is gone from a job that goes on with nothing in it."""
        self.needs_the_batch_step()
        job = self.start()
        node = self.host_of(job)
        self.select_type("select/cons_tres")
        self.addCleanup(self.select_type, "select/cons_tres_banyan")
        self.trouble.power_off(node)
        self.take(node)
        self.cluster.wait_for(lambda: node not in self.cluster.hosts(self.cluster.job(job)["NodeList"]), f"{node} left the job")
        self.assertEqual(self.cluster.job(job)["JobState"], "RUNNING")
        self.select_type("select/cons_tres_banyan")
        self.was_requeued_once(job, node)

    def wait_for_saved(self, job):
        """That it runs: what Slurm had not saved is lost with it, whatever plugin it has."""
        file = self.cluster.dir / "ctld" / "job_state"
        started = datetime.fromisoformat(self.cluster.job(job)["StartTime"]).timestamp()
        # Slurm's times are whole seconds: saved in a later one than that of the start is saved after it.
        self.cluster.wait_for(lambda: file.exists() and file.stat().st_mtime >= started + 1, f"job {job} is saved")

    def select_type(self, name):
        file = self.cluster.dir / "etc" / "slurm.conf"
        before = file.read_text()
        after = re.sub(r"(?m)^SelectType=.*$", f"SelectType={name}", before)
        if after != before:
            file.write_text(after)
            self.trouble.restart_slurmctld(signal.SIGTERM)


if __name__ == "__main__":
    main()

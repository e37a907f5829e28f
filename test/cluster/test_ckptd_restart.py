# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoint daemons that end under a job. One that is killed or replaced is started again by its keeper, and the job trains on as if
nothing had been. With one that is stopped, as docs/upgrade.md says, no further step of the job counts, and once the job is requeued it
goes on at the last one that did, the ranks of that node from their copies on another one."""

import os
import signal

from harness import main
from training import TrainingCase
from trouble import Trouble


class Restart(TrainingCase):
    nodes = 4

    def slurmd_log(self, node):
        return (self.cluster.dir / "log" / f"slurmd-{node}.log").read_text()

    def daemon_of(self, node):
        for pid in self.daemons():
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if os.fsencode(node) in file.read():
                    return pid
        return None

    def trains_on_without(self, end):
        """A job whose daemons `end` ends, on one node and then on all: no process is started again, and new steps count on all nodes."""
        job = self.submit(4, steps=100000, step_ms=50, shape="tp=2,dp=4")
        self.wait_step(job, 10)
        nodes = sorted({node for _, node in self.ranks(job).values()})
        ranks = self.ranks(job)
        for victims in (nodes[1:2], nodes):
            before = {node: self.daemon_of(node) for node in victims}
            for pid in before.values():
                end(pid)
            for node, pid in before.items():
                self.cluster.wait_for(lambda node=node, pid=pid: self.status(node) and self.daemon_of(node) not in (None, pid),
                                      f"another daemon of {node}")
            reached = max(self.log(job).steps)
            for node in nodes:
                self.cluster.wait_for(lambda node=node, reached=reached: self.committed(node, job) > reached,
                                      f"a step after {reached} counts on {node}")
        self.assertEqual(self.ranks(job), ranks)
        self.assertEqual(len(self.log(job).starts), 1)
        self.assertNotIn("checkpoints are off", self.cluster.output(job))
        self.cluster.run("scancel", job)

    def test_killed_under_a_job(self):
        self.trains_on_without(lambda pid: os.kill(pid, signal.SIGKILL))

    def test_replaced_under_a_job(self):
        def replace(pid):
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                keeper = int(file.read().rpartition(")")[2].split()[1])
            self.assertEqual(os.path.basename(os.readlink(f"/proc/{keeper}/exe")), "banyan-ckpt-keeper")
            os.kill(keeper, signal.SIGUSR1)
        self.trains_on_without(replace)

    def requeue_behind_another_job(self, job, nodes):
        """The job starts again in the moment in which another one has left these of its nodes."""
        self.cluster.run("scontrol", "requeuehold", job)
        self.cluster.wait_for_nodes_idle()
        other = self.cluster.sbatch("-N2", "-w", ",".join(nodes), script="srun -n2 sleep 600\n")
        self.cluster.wait_for(lambda: self.cluster.out("squeue", "-h", "-s", "-j", other, "-o", "%i"), "the other job's step runs")
        self.cluster.run("scancel", other)
        self.cluster.run("scontrol", "release", job)

        def runs():
            # Each time Slurm looks for jobs to start, at once.
            self.cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now", check=False)
            return self.cluster.job(job)["JobState"] == "RUNNING"
        self.cluster.wait_for(runs, "the job runs again")

    def test_requeued_so_soon_that_slurm_leaves_the_prolog_out(self):
        """slurmd of 22.05 does on nodes that something else left within two seconds: here on two of the job's four. All the same every
        rank goes on at the newest step that counted."""
        job = self.submit(4, steps=100000, step_ms=50, shape="tp=2,dp=4")
        self.wait_step(job, 10)
        nodes = sorted({node for _, node in self.ranks(job).values()})
        skips = "22.05" in self.cluster.out("sinfo", "--version")
        for restart in range(1, 6):
            counted = self.committed(nodes[0], job)
            self.requeue_behind_another_job(job, nodes[:2])
            self.cluster.wait_for(lambda restart=restart: len(self.log(job).starts) == restart + 1, "the ranks begin")
            self.wait_step(job, max(self.log(job).steps) + 3)
            restored = self.log(job).restored[-8:]
            self.assertEqual({entry["rank"] for entry in restored}, set(range(8)))
            self.assertEqual(len({entry["step"] for entry in restored}), 1, restored)
            self.assertGreaterEqual(restored[0]["step"], counted)
            seen = [node for node in nodes if "no prolog opened its checkpoint session" in self.slurmd_log(node)]
            if seen or not skips:
                break
        self.cluster.run("scancel", job)
        self.assertEqual(bool(seen), skips)

    def test_a_node_that_lost_power_has_its_daemon_again(self):
        """slurmd of 22.05 comes back with its knowledge of the job, and leaves the prolog of the next run out."""
        trouble = Trouble(self.cluster)
        self.addCleanup(trouble.return_nodes)
        job = self.submit(4, steps=100000, step_ms=50, shape="tp=2,dp=4")
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        self.wait_step(job, 10)
        victim = sorted({node for _, node in self.ranks(job).values()} - {self.cluster.job(job)["BatchHost"]})[1]
        counted = self.counted(job)
        trouble.power_off(victim)
        self.cluster.wait_for(lambda: self.cluster.job(job)["JobState"] == "PENDING", "the job waits for a fourth node")
        trouble.repair(victim)
        self.cluster.wait_for(lambda: len(self.log(job).starts) == 2, "the ranks begin", timeout=100)
        self.wait_step(job, max(self.log(job).steps) + 3)
        last = {entry["rank"]: entry for entry in self.log(job).restored[-8:]}
        self.assertEqual(len(last), 8)
        self.assertIn(victim, {entry["node"] for entry in last.values()})
        self.assert_kept(job, counted)
        skips = "22.05" in self.cluster.out("sinfo", "--version")
        self.assertEqual("no prolog opened its checkpoint session" in self.slurmd_log(victim), skips)
        self.cluster.run("scancel", job)

    def test_a_session_that_a_step_opened_ends_with_its_job(self):
        """Of a job that was submitted without checkpoints, where a daemon runs for another one."""
        job = self.submit(4, steps=100000, step_ms=50, shape="tp=2,dp=4")
        self.wait_step(job, 5)
        nodes = sorted({node for _, node in self.ranks(job).values()})
        self.cluster.run("scancel", job)
        self.cluster.wait_for_nodes_idle()
        other = self.cluster.sbatch("-N4", "--ntasks-per-node=2", "--train-parallel=tp=2,dp=4", script="srun --train-ckpt=every=1 sleep 600\n")
        for node in nodes:
            self.cluster.wait_for(lambda node=node: other in self.status(node), f"{node} has a session of the job")
        self.cluster.run("scancel", other)
        for node in nodes:
            # Nothing was saved, or it waits out its lease.
            self.cluster.wait_for(lambda node=node: self.status(node).get(other, {"state": "detached"})["state"] == "detached",
                                  f"the session on {node} has ended with the job")

    def test_stopped_under_a_job(self):
        job = self.submit_unending(4, step_ms=50, shape="tp=2,dp=4")
        self.wait_step(job, 20)
        first, second = (node for node in sorted({node for _, node in self.ranks(job).values()})[1:3])
        os.kill(self.daemon_of(first), signal.SIGTERM)
        self.cluster.wait_for(lambda: not self.status(first), "the daemon has ended")
        # A step that was on its way may still count.
        self.wait_step(job, max(self.log(job).steps) + 3)
        counted = self.status(second)[job]["committed"]
        self.wait_step(job, max(self.log(job).steps) + 3)
        self.assertEqual(self.status(second)[job]["committed"], counted, "a step counts without the shards of a node")
        # The session is opened by the prolog, of the same job, too; the ended daemon's ranks have copies on another node.
        self.cluster.run("scontrol", "requeue", job)
        self.cluster.wait_for(lambda: self.cluster.job(job)["JobState"] == "PENDING", "the job is requeued")
        self.cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now", check=False)  # it may have begun
        log = self.end(job)
        # All the same; a step that was whole when the daemon ended, but not counted yet, may be it.
        restored = {r["step"] for r in log.restored}
        self.assertEqual(len(restored), 1, restored)
        self.assertIn(restored.pop() - counted["step"], (0, 1))
        self.assertIn("peer", {r["source"] for r in log.restored})
        self.assertGreaterEqual(max(log.steps), 60)

    def test_a_rank_that_hangs_is_named(self):
        job = self.submit_unending(4, step_ms=50, shape="tp=2,dp=4")
        self.wait_step(job, 20)
        pid, node = self.ranks(job)[5]
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        said = f"banyan-run: rank 5 on {node} hangs: stopped by a signal, at its save of step "
        self.cluster.wait_for(lambda: said in self.cluster.output(job), "banyan-run names it")
        os.kill(pid, signal.SIGCONT)
        self.wait_step(job, max(self.log(job).steps) + 3)
        self.stop.touch()
        self.wait_finished(job)
        self.assertEqual(len(self.log(job).starts), 1)
        self.assertEqual(self.cluster.output(job).count(" hangs: "), 1, self.cluster.output(job))


if __name__ == "__main__":
    main()

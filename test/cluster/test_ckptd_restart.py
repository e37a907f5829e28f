# SPDX-License-Identifier: BSD-3-Clause
"""What docs/upgrade.md says of a checkpoint daemon that is started again under a job: no further step of the job counts, and once the
job is requeued it goes on at the last one that did, the ranks of that node from their copies on another one."""

import json
import os
import signal

from harness import main
from training import TrainingCase


class Restart(TrainingCase):
    nodes = 4

    def status(self, node):
        """The daemon's sessions by job; none where no daemon answers."""
        answer = self.cluster.run("banyan-ckpt", "--socket", self.cluster.dir / "run" / f"ckptd-{node}.sock", "status", "--json", check=False)
        return {session["job"]: session for session in json.loads(answer.stdout)["sessions"]} if answer.returncode == 0 else {}

    def daemon_of(self, node):
        for pid in self.daemons():
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if os.fsencode(node) in file.read():
                    return pid
        return self.fail(f"no checkpoint daemon of {node} runs")

    def test_under_a_job(self):
        job = self.submit(4, steps=60, step_ms=50, shape="tp=2,dp=4")
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
        self.cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now")
        log = self.wait_finished(job)
        self.assertEqual({r["step"] for r in log.restored}, {counted["step"]})
        self.assertIn("peer", {r["source"] for r in log.restored})
        self.assertEqual(max(log.steps), 60)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""A script that calls srun itself, with a spare in the job, and a GPU that falls off the bus: nobody starts the step again, so the job is
requeued, and where it may not be the incident ends with how the job ended."""

import json
import re

from harness import ClusterCase, main
from training import XID_79

SCRIPT = """#!/bin/bash
srun bash -c 'echo rank $RANK of run ${SLURM_RESTART_COUNT:-0} on $SLURMD_NODENAME; [ ${SLURM_RESTART_COUNT:-0} = 0 ] || exit 0; exec sleep 600'
"""


class PlainSrun(ClusterCase):
    nodes = 6
    options = ("--group-size", 6, "--gpus", 4)

    def ranks(self, job, run):
        return re.findall(rf"^rank \d+ of run {run} on (\S+)$", self.cluster.output(job), re.M)

    def break_a_node(self, *options):
        """Of a job's ranks, and not that of its script. Returns the job and the node."""
        job = self.cluster.sbatch("-N3", "--ntasks-per-node=2", "--no-kill", "--train-parallel=tp=2,dp=2", "--train-spares=1", "--open-mode=append", *options,
                                  script=SCRIPT)
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        self.cluster.wait_for(lambda: len(self.ranks(job, 0)) == 4, "every rank runs")
        node = sorted(set(self.ranks(job, 0)) - {self.cluster.job(job)["BatchHost"]})[0]
        self.addCleanup(self.cluster.run, "scontrol", "update", f"nodename={node}", "state=resume", check=False)
        self.cluster.kmsg(node, XID_79)
        return job, node

    def said_of(self, job, node, words):
        """What the node's incident has of the job, once it has these words."""
        def said():
            found = json.loads(self.cluster.out("banyan-fault", "incidents", "--json", "--node", node))
            told = "; ".join(a["result"] for i in found for a in i["actions"] if a["target"] == str(job))
            return told if re.search(words, told) else None
        return self.cluster.wait_for(said, lambda: f"{words!r} of job {job} is said of {node}", timeout=100)

    def test_it_is_requeued(self):
        job, node = self.break_a_node("--requeue")
        self.cluster.wait_for_job(job, timeout=100)
        self.assertEqual(self.cluster.job(job)["Restarts"], "1")
        self.assertNotIn(node, self.ranks(job, 1))
        self.assertNotIn("banyan-run puts", self.said_of(job, node, "back in the queue|runs again"))

    def test_where_it_may_not_be_the_incident_says_how_it_ended(self):
        job, node = self.break_a_node("--no-requeue", "--exclude=n[01-03]")
        self.assertNotIn("banyan-run puts", self.said_of(job, node, "ended: FAILED"))


if __name__ == "__main__":
    main()

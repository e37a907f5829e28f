# SPDX-License-Identifier: BSD-3-Clause
"""A job that gives nodes away: its AdminComment, and the plan that its next step has, name the nodes that it has."""

import re

from harness import main
from on_demand import OnDemandCase


class Shrinking(OnDemandCase):
    nodes = 8
    options = ("--group-size", 4, "--gpus", 2, "--without", "fault")

    def spares(self, job):
        word = re.search(r" spares=(\S+)", self.cluster.job(job)["AdminComment"]).group(1)
        return self.cluster.hosts(word.partition("(")[2].rstrip(")"))

    def start(self):
        job = self.start_on_demand("-N6", "--ntasks-per-node=1", "--train-parallel=dp=4", "--train-spares=2")
        self.cluster.run("scontrol", "update", f"JobId={job}", "AdminComment=" + self.cluster.job(job)["AdminComment"] + " | theirs")
        nodes, spares = self.cluster.hosts(self.cluster.job(job)["NodeList"]), self.spares(job)
        self.assertEqual((len(nodes), len(spares)), (6, 2))
        return job, nodes, spares

    def test_a_spare_that_is_given_away(self):
        job, nodes, spares = self.start()
        gone, left = spares
        self.cluster.run("scontrol", "update", f"JobId={job}", "NodeList=" + ",".join(node for node in nodes if node != gone))
        self.assertEqual(self.spares(job), [left])
        self.assertTrue(self.cluster.job(job)["AdminComment"].endswith(" | theirs"), self.cluster.job(job))
        status, ranks = self.step(job, f"-N4 -n4 --exclude={left}")
        self.assertEqual((status, len(ranks)), (0, 4))
        self.assertEqual(self.spares(job), [left])
        self.end_on_demand(job)

    def test_a_spare_that_is_lost(self):
        job = self.submit("-N6", "--ntasks-per-node=1", "--no-kill", "--train-parallel=dp=4", "--train-spares=2")
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        self.cluster.wait_for_job(job, "RUNNING")
        first, second = self.spares(job)
        self.cluster.run("scontrol", "update", f"nodename={second}", "state=down", "reason=broken")
        self.cluster.wait_for(lambda: self.spares(job) == [first], "the spare is not named any more")
        # A node that has registered meanwhile is back already.
        self.cluster.run("scontrol", "update", f"nodename={second}", "state=resume", check=False)
        self.end_on_demand(job)

    def test_fewer_nodes_by_number(self):
        job, _, _ = self.start()
        done = self.cluster.run("scontrol", "update", f"JobId={job}", "NumNodes=4", check=False)
        if "no longer pending" in done.stderr:
            self.skipTest("this Slurm changes the number of nodes of no job that runs and has GRES")
        self.assertEqual(done.returncode, 0, done.stderr)
        left = self.cluster.hosts(self.cluster.job(job)["NodeList"])
        self.assertEqual([node for node in self.spares(job) if node not in left], [])
        self.assertEqual(self.step(job)[0], 0)
        self.assertEqual([node for node in self.spares(job) if node not in left], [])
        self.end_on_demand(job)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""A cable that flaps: new jobs are kept off its host while others are free, nothing is drained, and a word by hand ends it."""

import json
import os
import shutil

from harness import ClusterCase, main

SHAPE, NODES = "pp=2", 2


class Avoid(ClusterCase):
    nodes = 8
    options = ("--group-size", 4, "--gpus", 2)

    def place(self, *options):
        return json.loads(self.cluster.out("banyan-topo", "place", self.cluster.dir / "fabric.snapshot", "--shape", SHAPE, "--nodes", NODES,
                                           "--ranks-per-node", 1, "--json", *options))["nodes"]

    def start(self, *options):
        """A job that runs, and the nodes it has."""
        job = self.cluster.sbatch(f"-N{NODES}", "--ntasks-per-node=1", f"--train-parallel={SHAPE}", *options, script="sleep 600\n")
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        self.cluster.wait_for_job(job, "RUNNING")
        return job, self.cluster.hosts(self.cluster.job(job)["NodeList"])

    def placed(self):
        job, nodes = self.start()
        self.cluster.run("scancel", job)
        self.cluster.wait_for_nodes_idle()
        return nodes

    def incidents(self):
        return json.loads(self.cluster.out("banyan-fault", "incidents", "--json"))

    def flap(self, host):
        """Down, until the controller has seen it, and up again."""
        for action, closed in (("down", False), ("up", True)):
            self.cluster.link(action, f"{host} mlx5_1", 1)

            def seen(closed=closed):
                found = self.incidents()
                return found and (found[-1]["times"]["closed_ms"] != 0) == closed
            self.cluster.wait_for(seen, f"the controller sees the link of {host} {action}")

    def test_a_cable_that_flaps(self):
        avoided = self.cluster.dir / "avoid.links"
        before = self.place()
        self.assertEqual(sorted(self.placed()), sorted(before))
        victim = before[0]
        for _ in range(2):
            self.flap(victim)
        self.assertFalse(avoided.exists(), "twice is not enough")
        self.flap(victim)
        self.cluster.wait_for(lambda: avoided.exists() and len(avoided.read_text().splitlines()) == 2, "the cable is in the list")
        incident, = self.incidents()
        self.assertEqual((incident["reason"], incident["rule"]), ("host-link", "bad-cable"))
        self.assertEqual(avoided.read_text().split()[-1], incident["id"])
        self.assertIn("avoided", self.cluster.out("banyan-fault", "incidents"))
        self.assertIn("new jobs are kept off this cable since", self.cluster.out("banyan-fault", "explain", incident["id"]))
        self.assertEqual(self.cluster.node(victim)["reason"], "", "nothing is drained")
        now = self.place("--avoid", avoided)
        self.assertNotIn(victim, now)

        def elsewhere():  # the list is read once a second
            return sorted(self.placed()) == sorted(now)
        self.cluster.wait_for(elsewhere, "the next job goes elsewhere")
        # A list that is damaged does not say that all is well, also not to a snapshot that comes after it.
        whole, log = avoided.read_text(), self.cluster.dir / "log" / "slurmctld.log"
        avoided.write_text(whole[:-1])
        self.cluster.wait_for(lambda: self.placed() and "it is cut" in log.read_text(), "slurmctld has seen the damage")
        snapshot, known = self.cluster.dir / "fabric.snapshot", log.read_text().count("fabric snapshot /")
        shutil.copy(snapshot, snapshot.with_suffix(".new"))
        os.replace(snapshot.with_suffix(".new"), snapshot)
        self.cluster.wait_for(lambda: self.placed() and log.read_text().count("fabric snapshot /") > known, "slurmctld has read the snapshot again")
        self.assertEqual(sorted(self.placed()), sorted(now))
        avoided.write_text(whole)
        # Where there is no other node the job has it all the same, and explain says so.
        others = [f"n{i:02d}" for i in range(1, 9) if f"n{i:02d}" not in (victim, now[0])]
        job, nodes = self.start(f"--exclude={','.join(others)}")
        self.assertIn(victim, nodes)
        self.assertRegex(self.cluster.out("banyan-topo", "explain", job), rf"a link that new jobs are kept off for 1 node: .*{victim} mlx5_1 port 1")
        self.cluster.run("scancel", job)
        self.cluster.wait_for_nodes_idle()
        self.cluster.run("banyan-fault", "cancel", incident["id"])
        self.cluster.wait_for(lambda: len(avoided.read_text().splitlines()) == 1, "the list is empty")
        self.cluster.wait_for(lambda: sorted(self.placed()) == sorted(before), "jobs are placed as before")


if __name__ == "__main__":
    main()

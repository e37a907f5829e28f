# SPDX-License-Identifier: BSD-3-Clause
"""What outlives the primary slurmctld where a second one stands by: after kill -9, after the primary's return and after `scontrol
takeover` the ranks of what runs are the same, and what waited is placed as banyan-topo says. The backup is a process of its own, which
knows of plans and jobs what StateSaveLocation has; the second time it takes over with what the first time left in its memory."""

import time

from harness import main
from on_demand import OnDemandCase

from banyan_cluster import parts

PRIMARY, BACKUP = "slurmctld", "slurmctld-backup"
STANDBY = "slurmctld running in background mode"


class Takeover(OnDemandCase):
    nodes = 16
    options = ("--group-size", 4, "--gpus", 2, "--without", "fault", "--backup")

    def test_ranks_and_placement(self):
        # Of every leaf group but the last a part is free.
        busy = ["n01", "n06", "n09"]
        self.occupy(busy)
        free = [name for name in self.layout.node_names if name not in busy]
        ranks = self.expected("dp=2,pp=3", 6, free)
        runs = self.start_on_demand("-N6", "--ntasks-per-node=1", "--train-parallel=dp=2,pp=3")
        comment = self.cluster.job(runs)["AdminComment"]
        self.assertRegex(comment, "^banyan: dp=2,pp=3 nodes=6 ")
        free = [name for name in free if name not in ranks]
        first, second = (self.submit("--hold", f"-N{nodes}", "--ntasks-per-node=1", f"--train-parallel={shape}")
                         for nodes, shape in ((4, "dp=2,pp=2"), (6, "dp=2,pp=3")))
        for job in (first, second):
            self.addCleanup(self.cluster.run, "scancel", job, check=False)

        def same_ranks(after):
            self.assertEqual(self.step(runs), (0, ranks), after)
            self.assertEqual(self.cluster.job(runs)["AdminComment"], comment, after)
        same_ranks("before all")
        self.wait_for_saved(runs)
        self.assertEqual(self.acting(), 0)
        self.assertEqual(self.in_standby(), [])

        killed = time.monotonic()
        self.end_controller(part=PRIMARY)
        self.wait_for_controller(1)
        print(f"the backup acts {time.monotonic() - killed:.1f} s after kill -9", flush=True)
        self.assertIn("(primary) at ctl1 is DOWN", self.cluster.run("scontrol", "ping", check=False).stdout)
        same_ranks("after kill -9")
        order = self.placed_as_told(first, "dp=2,pp=2", 4, free)
        self.wait_for_saved(first)

        heard = self.registrations()
        parts.start_controller(self.layout, PRIMARY)
        self.wait_for_controller(0)
        same_ranks("after the primary's return")
        self.assertEqual(self.step(first), (0, order), "placed by the backup")
        self.end_on_demand(first)
        self.cluster.wait_for(lambda: all(self.cluster.node(name)["state"] == ["IDLE"] for name in free), "its nodes are idle")
        self.wait_for_saved(runs)
        self.assertEqual(self.in_standby(), [])

        self.cluster.run("scontrol", "takeover")
        self.wait_for_controller(1, heard)
        same_ranks("after scontrol takeover")
        self.placed_as_told(second, "dp=2,pp=3", 6, free)
        for job in (runs, second):
            self.end_on_demand(job)
        for log in (f"{PRIMARY}.log", f"{BACKUP}.log"):
            self.assertEqual(self.complaints(log), [], log)

    # -- help ----------------------------------------------------------------------------------------------------------------

    def acting(self):
        """Which controller says in StateSaveLocation that it is in charge: 0 is the primary. None while the file is being replaced."""
        try:
            return int.from_bytes((self.cluster.dir / "ctld" / "heartbeat").read_bytes()[8:16], "big")
        except FileNotFoundError:
            return None

    def wait_for_controller(self, index, heard=0):
        """Until it is in charge, and has heard every node since. `heard` is how many it had before."""
        self.cluster.wait_for(lambda: self.acting() == index, f"controller {index} is in charge")
        self.cluster.wait_for(lambda: self.registrations() >= heard + self.nodes, "every node has registered")

    def in_standby(self):
        """What the backup has said of jobs and of the fabric since it last went to standby."""
        log = (self.cluster.dir / "log" / f"{BACKUP}.log").read_text(errors="replace")
        self.assertIn(STANDBY, log)
        return [line for line in log.rpartition(STANDBY)[2].splitlines() if "JobId=" in line or "banyan" in line]

    def expected(self, shape, nodes, free):
        """Nodes by rank, which plain Slurm would not choose."""
        ranks = self.place(shape, nodes, 1, free)["ranks"]
        self.assertNotEqual(ranks, free[:nodes], "Slurm's own choice and order would pass, too")
        return ranks

    def placed_as_told(self, job, shape, nodes, free):
        """Releases a job that was submitted to the primary, and returns its nodes by rank."""
        ranks = self.expected(shape, nodes, free)
        self.assertEqual(self.state(job), "PENDING")
        self.cluster.run("scontrol", "release", job)
        self.cluster.wait_for_job(job, "RUNNING")
        self.assertEqual(self.cluster.hosts(self.cluster.job(job)["NodeList"]), sorted(ranks))
        self.assertEqual(self.step(job), (0, ranks))
        return ranks


if __name__ == "__main__":
    main()

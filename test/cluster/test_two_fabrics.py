# SPDX-License-Identifier: BSD-3-Clause
"""Two fabrics in one cluster, n[01-03] and n[04-08]: a training job runs in one of them, whatever is free, until the site file tells of a
line between them."""

from harness import ClusterCase, main

TREE = "SwitchName=east Nodes=n[01-03]\nSwitchName=west Nodes=n[04-08]\n"
EAST = {f"n{i:02}" for i in range(1, 4)}


class TwoFabrics(ClusterCase):
    nodes = 8
    options = ("--without", "fault")

    def setUp(self):
        super().setUp()
        self.file = self.cluster.dir / "fabric.snapshot"
        self.addCleanup(self.file.write_bytes, self.file.read_bytes())
        self.addCleanup(self.cluster.wait_for_nodes_idle)
        self.addCleanup(self.cluster.run, "scancel", "-u", "root")
        self.take_snapshot()

    def take_snapshot(self, site=None):
        tree = self.cluster.dir / "tmp" / "topology.conf"
        tree.write_text(TREE)
        self.cluster.out("banyan-topo", "snapshot", tree, "-o", self.file, *(("--site", site) if site else ()))

    def submit(self, nodes):
        return self.cluster.sbatch("-N", nodes, "--ntasks-per-node=1", "--gres=gpu:8", f"--train-parallel=dp={nodes}", script="srun sleep 600\n")

    def occupy(self, nodes):
        names = self.cluster.hosts(nodes)
        self.cluster.wait_for_job(self.cluster.sbatch("-N", len(names), "-w", nodes, "--gres=gpu:8", script="sleep 600\n"), "RUNNING")

    def hosts_of(self, job):
        self.cluster.wait_for_job(job, "RUNNING")
        return set(self.cluster.hosts(self.cluster.job(job)["NodeList"]))

    def test_a_job_stays_in_one(self):
        self.occupy("n[01,04]")
        held = self.hosts_of(self.submit(4))
        self.assertFalse(held & EAST, held)
        # Two are free in the one and none in the other.
        self.assertEqual(self.hosts_of(self.submit(2)), {"n02", "n03"})

    def test_a_job_waits_until_one_of_them_holds_it(self):
        self.occupy("n[01,04-06]")  # two are free in each
        waiting = self.submit(3)
        told = self.cluster.run("sbatch", "--test-only", "-N3", "--ntasks-per-node=1", "--train-parallel=dp=3", "--wrap=true").stderr
        self.assertIn("to start at", told)
        # Whoever can start does, behind it.
        self.hosts_of(self.submit(2))
        self.assertEqual(self.cluster.job(waiting)["JobState"], "PENDING")

    def test_a_job_larger_than_each_needs_a_line(self):
        job = self.submit(6)
        log = self.cluster.dir / "log" / "slurmctld.log"
        self.cluster.wait_for(lambda: "6 nodes are needed, and of the 2 parts of the fabric that nothing joins the largest has 5 free" in log.read_text(), "the log says why it waits")
        self.assertEqual(self.cluster.job(job)["JobState"], "PENDING")
        site = self.cluster.dir / "tmp" / "site.toml"
        site.write_text('[[wan]]\nsites = ["n[01-03]", "n[04-08]"]\ngbps = 800.0\n')
        self.take_snapshot(site)
        self.assertEqual(len(self.hosts_of(job)), 6)


if __name__ == "__main__":
    main()

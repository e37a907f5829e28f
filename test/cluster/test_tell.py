# SPDX-License-Identifier: BSD-3-Clause
"""A site's rule that has the user of a job told: the line stands in the job's own output, once, and nothing else happens to job or node."""

import json
import re

from harness import ClusterCase, main
from trouble import Trouble

from banyan_cluster import parts

RULES = """[[rule]]
name = "users"
xid = 31
action = "notify-user"
why = "look for a wild pointer"
"""
XID_31 = "NVRM: Xid (PCI:0000:13:00): 31, pid=77, name=python3, Ch 00000008, MMU Fault: ENGINE GRAPHICS"


class Tell(ClusterCase):
    nodes = 3
    options = ("--group-size", 4, "--gpus", 4)

    def setUp(self):
        super().setUp()
        self.trouble = Trouble(self.cluster)
        (self.cluster.dir / "etc" / "policy.toml").write_text(RULES)
        settings = self.cluster.dir / "etc" / "banyan.conf"
        line = f'policy = "{self.cluster.dir}/etc/policy.toml"\n'
        if line not in settings.read_text():
            settings.write_text(settings.read_text() + line)
        self.trouble.end("faultd-controller")
        self.trouble.start_faultd()

    def done_incident(self, node):
        """The only one there."""
        def done():
            found = json.loads(self.cluster.out("banyan-fault", "incidents", "--json", "--node", node))
            return found if found and found[0]["state"] == "done" else None
        incident, = self.cluster.wait_for(done, f"the incident of {node} is done with")
        return incident

    def test_the_ranks_on_the_node_are_those_of_the_step(self):
        job = self.cluster.sbatch("-wn02,n03", "-N2", "--ntasks-per-node=2", "--train-parallel=tp=2,dp=2",
                                  script="srun bash -c 'echo rank $RANK on $SLURMD_NODENAME; sleep 600'\n")
        self.addCleanup(self.cluster.run, "scancel", job, check=False)

        def ranks():
            return re.findall(r"^rank (\d+) on (\S+)$", self.cluster.output(job), re.M)
        self.cluster.wait_for(lambda: len(ranks()) == 4, "every rank runs")
        for node in sorted({node for _, node in ranks()}):
            self.cluster.kmsg(node, XID_31)
            incident = self.done_incident(node)
            first, last = sorted(int(rank) for rank, where in ranks() if where == node)
            self.assertEqual(last, first + 1)
            self.assertEqual([(r["job"], r.get("ranks"), r.get("of")) for r in incident["ranks"]], [(job, f"{first}-{last}", 4)])
            self.assertEqual(incident["confidence"]["level"], "suspected")

    def test_the_user_of_the_job_is_told(self):
        job, other = (self.cluster.sbatch(f"-w{node}", "-N1", script="srun sleep 600\n") for node in ("n01", "n02"))
        for each in (job, other):
            self.addCleanup(self.cluster.run, "scancel", each, check=False)
            self.cluster.wait_for(lambda each=each: self.cluster.out("squeue", "--steps", "-h", "-j", each, "-o", "%i"), f"job {each} has a step")
        self.cluster.kmsg("n01", XID_31)
        self.cluster.wait_for(lambda: "wild pointer" in self.cluster.output(job), "the line is in the job's output")

        incident = self.done_incident("n01")
        self.assertRegex(incident["ranks"][0]["unknown"], "without a plan")
        self.assertEqual((incident["rule"], incident["jobs"]), ("users", [job]))
        self.assertEqual([(a["what"], a["target"], a["result"]) for a in incident["actions"]], [("notify-user", str(job), "its user is told")])
        said, = self.cluster.output(job).splitlines()
        self.assertRegex(said, rf"banyan: Xid 31 GPU 3: .+ \(n01 GPU 3 .*\): look for a wild pointer \[{incident['id']}\]$")
        self.assertEqual(self.cluster.output(other), "")
        self.assertEqual(self.cluster.job(job)["JobState"], "RUNNING")
        self.assertEqual(self.cluster.node("n01")["reason"], "")


if __name__ == "__main__":
    main()

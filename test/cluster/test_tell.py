# SPDX-License-Identifier: BSD-3-Clause
"""A site's rule that has the user of a job told: the line stands in the job's own output, once, and nothing else happens to job or node."""

import json

from harness import ClusterCase, main
from trouble import Trouble

from banyan_cluster import parts

RULES = """[[rule]]
name = "users"
xid = 31
action = "tell"
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
        with open(self.cluster.dir / "etc" / "banyan.conf", "a", encoding="utf-8") as file:
            file.write(f'policy = "{self.cluster.dir}/etc/policy.toml"\n')
        self.trouble.end("faultd-controller")
        self.trouble.start_faultd()

    def test_the_user_of_the_job_is_told(self):
        job, other = (self.cluster.sbatch(f"-w{node}", "-N1", script="srun sleep 600\n") for node in ("n01", "n02"))
        for each in (job, other):
            self.addCleanup(self.cluster.run, "scancel", each, check=False)
            self.cluster.wait_for(lambda each=each: self.cluster.out("squeue", "--steps", "-h", "-j", each, "-o", "%i"), f"job {each} has a step")
        self.cluster.kmsg("n01", XID_31)
        self.cluster.wait_for(lambda: "wild pointer" in self.cluster.output(job), "the line is in the job's output")

        def done():
            found = json.loads(self.cluster.out("banyan-fault", "incidents", "--json"))
            return found if found and found[0]["state"] == "done" else None
        incident, = self.cluster.wait_for(done, "the incident is done with")
        self.assertEqual((incident["rule"], incident["jobs"]), ("users", [job]))
        self.assertEqual([(a["what"], a["target"], a["result"]) for a in incident["actions"]], [("tell", str(job), "its user is told")])
        said, = self.cluster.output(job).splitlines()
        self.assertRegex(said, rf"banyan: Xid 31 GPU 3: .+ \(n01 GPU 3 .*\): look for a wild pointer \[{incident['id']}\]$")
        self.assertEqual(self.cluster.output(other), "")
        self.assertEqual(self.cluster.job(job)["JobState"], "RUNNING")
        self.assertEqual(self.cluster.node("n01")["reason"], "")


if __name__ == "__main__":
    main()

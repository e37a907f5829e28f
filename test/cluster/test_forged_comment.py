# SPDX-License-Identifier: BSD-3-Clause
"""AdminComment is text for people. Where job_submit/banyan does not stand before it an operator may write what he likes into it, a line
like banyan's, too: srun, banyan-run and banyan-faultd go by the plan, and so does what slurmctld's plugin writes next."""

import json
import re

from harness import main
from on_demand import OnDemandCase
from training import XID_79

from banyan_cluster import parts

TRAIN = ("-N3", "--ntasks-per-node=2", "--train-parallel=tp=4", "--train-spares=1", "--no-kill")  # 2 ranks on each of 2 nodes, and one node that waits
# The script waits with banyan-run until it is told, and goes on with steps on demand.
SUPERVISED = """
until [ -e supervise-$SLURM_JOB_ID ]; do sleep 0.05; done
banyan-run --debug ./ranks.sh supervised
echo "step supervised ended with $?"
"""
# Its ranks end with their node, and nothing starts them again.
UNSUPERVISED = """
srun --no-kill=off bash -c 'echo rank 1 $SLURM_PROCID $SLURMD_NODENAME; [ ! -z "$SLURM_RESTART_COUNT" ] || exec sleep 600'
[ ! -z "$SLURM_RESTART_COUNT" ] || exec sleep 600
"""


class ForgedComment(OnDemandCase):
    nodes = 8
    options = ("--group-size", 4, "--gpus", 2, "--without", "submit")

    def setUp(self):
        super().setUp()
        self.all_nodes = [f"n{i:02}" for i in range(1, 9)]
        placed = self.place("tp=4", 3, 2, self.all_nodes, spares=1)
        self.planned, (self.spare,) = placed["ranks"], placed["spares"]

    def line(self, job):
        return self.cluster.job(job).get("AdminComment", "")

    def forge(self, job, text):
        self.cluster.run("scontrol", "update", f"JobId={job}", f"AdminComment={text}")
        self.assertEqual(self.line(job), text)

    def lose(self, job):
        """A node of the job that does not run its script. Returns what a step is then."""
        node = self.planned[2]
        self.assertNotEqual(node, self.cluster.job(job)["BatchHost"])
        for state in ("down", "drain"):  # or its slurmd has it back in a moment
            self.cluster.run("scontrol", "update", f"nodename={node}", f"state={state}", "reason=lost")
        self.addCleanup(self.cluster.run, "scontrol", "update", f"nodename={node}", "state=resume")
        return 0, [*self.planned[:2], self.spare, self.spare]

    def forgeries(self, line):
        """Another spare; launchers; fewer nodes; another shape; nobody's line; none."""
        return (line.replace(f"({self.spare})", f"({self.planned[0]})"), line.replace(" ranks=4", " ranks=4 tasks=2"),
                line.replace(" nodes=2", " nodes=1"), line.replace("tp=4", "dp=8"), "banyan: nonsense", "")

    def test_the_steps_of_srun(self):
        job = self.start_on_demand(*TRAIN)
        line = self.line(job)
        self.assertIn(f"banyan: tp=4 nodes=2 ranks=4 spares=1({self.spare}) groups=", line)
        for forged in self.forgeries(line):
            with self.subTest(forged=forged):
                self.forge(job, forged)
                self.assertEqual(self.step(job), (0, self.planned))
        # What is written next is true again, and what an operator has added stays.
        self.forge(job, line.replace(" nodes=2", " nodes=1").replace(self.spare, "n08") + " | theirs")
        moved = self.lose(job)
        self.assertEqual(self.step(job), moved)
        self.assertEqual(self.line(job), line.replace(f"1({self.spare})", "0") + " | theirs")
        self.end_on_demand(job)

    def test_the_steps_of_banyan_run(self):
        job = self.submit(*TRAIN, script=SUPERVISED)
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        self.cluster.wait_for_job(job, "RUNNING")
        self.forge(job, self.forgeries(self.line(job))[0].replace(" nodes=2", " nodes=1"))
        (self.tmp / f"supervise-{job}").touch()
        self.cluster.wait_for_job(job)
        output = self.cluster.output(job)
        self.assertEqual(self.ranks(job, "supervised"), self.planned, output)
        self.assertIn("the plan has 4 ranks on 2 nodes, 1 spare", output)
        self.assertRegex(output, rf"running srun .* -N 2 -n 4 --exclude={self.spare} ")

    def test_what_faultd_does_for_a_job_that_loses_a_node(self):
        job = self.submit("-N4", "--ntasks-per-node=2", "--train-parallel=tp=2,dp=4", "--no-kill", "--requeue", script=UNSUPERVISED)
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        self.cluster.wait_for(lambda: len(self.ranks(job, 1)) == 8, "every rank runs")
        self.forge(job, self.line(job).replace("nodes=4", "nodes=3"))
        fields = self.cluster.job(job)
        victim = next(node for node in self.cluster.hosts(fields["NodeList"]) if node != fields["BatchHost"])
        self.addCleanup(self.cluster.run, "scontrol", "update", f"nodename={victim}", "state=resume", check=False)
        self.cluster.kmsg(victim, XID_79)
        self.cluster.wait_for_job(job, timeout=100)  # below the two minutes that Slurm takes by itself
        self.assertEqual(self.cluster.job(job)["Restarts"], "1", self.cluster.output(job))
        done = [action for incident in json.loads(self.cluster.out("banyan-fault", "incidents", "--json")) for action in incident["actions"]]
        self.assertIn(("job", "runs again on 4 nodes"), [(action["what"], action["result"]) for action in done])

    def test_a_slurmctld_that_starts_again_tells_the_same(self):
        shape = "dp=2,tp=2"
        planned = 0, self.place(shape, 3, 2, self.all_nodes, spares=1)["ranks"]
        self.assertNotEqual(planned[1], sorted(planned[1]), "Slurm's own order would pass, too")
        job = self.start_on_demand(*TRAIN, f"--train-parallel={shape}")
        self.assertEqual(self.step(job), planned)
        self.forge(job, "")
        self.wait_for_saved(job)
        self.end_controller()
        parts.start_slurmctld(self.layout)
        self.cluster.wait_for(lambda: self.registrations() >= self.nodes, "every node has registered")
        self.assertEqual(self.step(job), planned)
        self.end_on_demand(job)

    def test_the_batch_script_sees_a_summary_that_nobody_reads(self):
        job = self.submit(*TRAIN, script="echo told $BANYAN_PLAN_SUMMARY\n"
                          "export BANYAN_PLAN_SUMMARY='{}'\nsrun ./ranks.sh 1\n")
        self.cluster.wait_for_job(job)
        output = self.cluster.output(job)
        self.assertEqual(self.ranks(job, 1), self.planned)
        told = re.search(r"^told (.*)$", output, re.M)[1]
        self.assertRegex(told, rf'^{{.*"nodes":2,.*"shape":"tp=4","spares":"{self.spare}","version":3}}$')
        self.assertNotIn("cannot read the plan", output)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""A job that gives its nodes to a running one (--dependency=expand). Between jobs without --train options it is Slurm's own, and as with
select/cons_tres; where one of the two trains it is refused at submission, with the reason."""

import re
import unittest

from harness import Cluster, ClusterCase, main

# Where jobs have a part of a node. A job with a node for itself has its GPUs, and Slurm's cons_tres gives it none more.
SHARED = "PartitionName=shared Nodes=ALL MaxTime=INFINITE State=UP OverSubscribe=NO\n"
HALF = ("-p", "shared", "--ntasks-per-node=4")
OPTIONS = ("--group-size", 4, "--gpus", 2)


def allocate(cluster, nodes, *options):
    done = cluster.run("salloc", "--no-shell", f"-N{len(nodes)}", "-w", ",".join(nodes), *options)
    job = int(re.search(r"Granted job allocation (\d+)", done.stdout + done.stderr).group(1))
    cluster.wait_for_job(job, "RUNNING")
    return job


class Plain(unittest.TestCase):
    def outcome(self, select, *without):
        """What an expansion without GPUs and one with GPUs end in: the words of scontrol, and whose the nodes are."""
        cluster = Cluster(nodes=6, options=(*OPTIONS, "--select", select, "--without", ",".join((*without, "fault"))))
        self.addCleanup(cluster.remove)
        cluster.up()
        conf = cluster.dir / "etc" / "slurm.conf"
        conf.write_text(conf.read_text() + SHARED)
        cluster.reconfigure()
        out = []
        for nodes, more in ((("n01", "n03", "n02"), ()), (("n04", "n05", "n06"), ("--gres=gpu:1",))):
            job = allocate(cluster, nodes[:2], *HALF, *more)
            donor = allocate(cluster, nodes[2:], *HALF, *more, f"--dependency=expand:{job}")
            done = cluster.run("scontrol", "update", f"JobId={donor}", "NumNodes=0", check=False)
            if done.returncode == 0:
                cluster.wait_for_job(donor)
            out.append((job, donor, done.returncode, done.stderr, cluster.hosts(cluster.job(job)["NodeList"]),
                        re.findall(r"CPUAlloc=(\d+)", cluster.out("scontrol", "show", "node", ",".join(nodes)))))
        log = (cluster.dir / "log" / "slurmctld.log").read_text(errors="replace")
        return out, [line.partition("] ")[2] for line in log.splitlines() if re.search(r"error: .*JobId=", line)]

    def test_it_is_slurms_own(self):
        ours = self.outcome("cons_tres_banyan")
        (_, _, status, _, nodes, _), with_gpus = ours[0]
        self.assertEqual((status, nodes), (0, ["n01", "n02", "n03"]))
        self.assertNotEqual(with_gpus[2], 0)  # else cons_tres has learnt what the pages say that it cannot
        self.assertEqual(ours, self.outcome("cons_tres", "spank", "submit", "snapshot"))


class Training(ClusterCase):
    nodes = 6
    options = (*OPTIONS, "--without", "fault")
    reason = "has no place for nodes that come later (--dependency=expand)"

    def setUp(self):
        super().setUp()
        self.job = self.cluster.sbatch("-N2", "--ntasks-per-node=1", "--train-parallel=dp=2", script="sleep 600\n")
        self.cluster.wait_for_job(self.job, "RUNNING")
        self.held = self.cluster.hosts(self.cluster.job(self.job)["NodeList"])

    def tearDown(self):
        """It has what it had, and nobody waits to give it more."""
        self.assertEqual(self.cluster.hosts(self.cluster.job(self.job)["NodeList"]), self.held)
        self.assertEqual(self.cluster.job(self.job)["JobState"], "RUNNING")
        self.assertNotIn(f"expand:{self.job}", self.cluster.out("squeue", "-h", "-o", "%E"))
        self.cluster.run("scancel", "--user=root")

    def refused(self, *words):
        done = self.cluster.run(*words, check=False)
        self.assertNotEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stderr

    def test_a_training_job_takes_no_nodes(self):
        told = f"banyan: JobId={self.job} trains (--train-parallel), and its plan {self.reason}; a job that has lost nodes has all of them " \
               f"again after scontrol requeue {self.job}"
        for words in (("salloc", "--no-shell"), ("sbatch", "--wrap=true"), ("srun", "true")):
            with self.subTest(words=words):
                self.assertIn(told, self.refused(words[0], "-N1", f"--dependency=expand:{self.job}", *words[1:]))
        # As slurmctld reads it: in any case, with blanks, behind other ones, for a task.
        for text in ("EXPAND:{}", "expand: {}", "expand:+{}", "expand:\t0{}", "singleton,Expand:{}", "afterany:{0}?expand:{0}", "expand:{}_7"):
            with self.subTest(text=text):
                text = text.format(self.job)
                self.assertIn(told, self.refused("sbatch", "-N1", f"--dependency={text}", "--wrap=true"))

    def test_not_by_a_later_change(self):
        waiting = int(self.cluster.out("sbatch", "--parsable", "--hold", "-N1", "--wrap=true"))
        self.assertIn("not supported", self.refused("scontrol", "update", f"JobId={waiting}", f"Dependency=expand:{self.job}"))
        self.assertIn(self.reason, (self.cluster.dir / "log" / "slurmctld.log").read_text())
        self.cluster.run("scontrol", "update", f"JobId={waiting}", f"Dependency=afterany:{self.job}")

    def test_a_training_job_gives_none(self):
        other = allocate(self.cluster, [node for node in self.cluster.hosts("n[01-06]") if node not in self.held][:1])
        text = self.refused("sbatch", "-N2", "--ntasks-per-node=1", "--train-parallel=dp=2", f"--dependency=expand:{other}", "--wrap=true")
        self.assertIn("a job with --train-parallel gives its nodes to no other (--dependency=expand); omit one of the two", text)

    def test_a_job_that_is_not_there(self):
        """And one that says nothing: Slurm's own words."""
        for text in ("expand:99999", "expand:", "expand:x", "expand", "expand:-1"):
            with self.subTest(text=text):
                told = self.refused("sbatch", "-N1", f"--dependency={text}", "--wrap=true")
                self.assertIn("Job dependency problem", told)
                self.assertNotIn("banyan", told)

    def test_the_last_of_many(self):
        other = allocate(self.cluster, [node for node in self.cluster.hosts("n[01-06]") if node not in self.held][:1])
        text = self.refused("sbatch", "-N1", "--dependency=" + ",".join([f"expand:{other}"] * 5000 + [f"expand:{self.job}"]), "--wrap=true")
        self.assertIn(self.reason, text)


if __name__ == "__main__":
    main()

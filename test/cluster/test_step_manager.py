# SPDX-License-Identifier: BSD-3-Clause
"""A site whose steps are made by a step manager on the job's first node, and not by slurmctld. It hears of no lost node, so a training
job has none: its ranks, its losses and its requeues are as on any other site. Other jobs keep theirs."""

import re
import unittest

import harness
import test_lost_jobs
import test_node_lost
import test_placement
from harness import ClusterCase, main


class Site:
    """Comes before the case whose tests it has run here."""
    options = ("--slurm-conf", "SlurmctldParameters=enable_stepmgr", "--slurm-conf", "PrologFlags=Contain")

    @classmethod
    def setUpClass(cls):
        if harness.release() < (24, 5):
            raise unittest.SkipTest("Slurm has step managers from 24.05 on")
        super().setUpClass()


class Ranks(Site, test_placement.Placement):
    pass


class LostNodes(Site, test_node_lost.NodeLost):
    options = (*test_node_lost.NodeLost.options, *Site.options)


class LostScripts(Site, test_lost_jobs.LostJobs):
    options = (*test_lost_jobs.LostJobs.options, *Site.options)


class Others(Site, ClusterCase):
    nodes = 4
    options = ("--group-size", 4, "--gpus", 2, "--without", "fault", *Site.options)

    def managers(self, *options):
        """What a batch job that shows itself says of its step manager: one of a run."""
        job = self.cluster.sbatch(*options, script='scontrol show job $SLURM_JOB_ID; srun true && echo "manager ${SLURM_STEPMGR:-none}"\n')
        self.cluster.wait_for_job(job)
        output = self.cluster.output(job)
        return "StepMgrEnabled=Yes" in output, re.findall(r"^manager (\S+)$", output, re.M)

    def test_jobs_that_do_not_train_have_theirs(self):
        has, (name,) = self.managers("-N2")
        self.assertTrue(has)
        self.assertIn(name, self.cluster.hosts("n[01-04]"))

    def test_jobs_that_train_have_none(self):
        self.assertEqual(self.managers("-N2", "--ntasks-per-node=1", "--train-parallel=dp=2"), (False, ["none"]))
        log = (self.cluster.dir / "log" / "slurmctld.log").read_text()
        self.assertEqual(log.count("its steps are slurmctld's own"), 1, "each job says so once")

    def test_tasks_of_an_array(self):
        array = self.cluster.sbatch("-N1", "--ntasks-per-node=1", "--array=0-2", "--train-parallel=dp=1", script='echo "manager ${SLURM_STEPMGR:-none}"\n')
        self.cluster.wait_for(lambda: not self.cluster.out("squeue", "-h", "-j", array), "the array is through")
        said = [file.read_text() for file in (self.cluster.dir / "tmp").glob("slurm-*.out")]
        self.assertEqual(said.count("manager none\n"), 3, said)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""A site where users' srun loads the SPANK plugin and the nodes do not, as where the nodes are configless and plugstack.conf includes the
line. A training program that got no rank would train alone, in as many copies as the step has tasks: it is never started."""

from harness import ClusterCase, main

TRAIN = ("-N2", "--ntasks-per-node=2", "--train-parallel=tp=2,dp=2")
PROGRAM = ("sh", "-c", "echo started rank=$RANK")


class HalfInstalled(ClusterCase):
    nodes = 2
    options = ("--without", "spank,fault")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.login = cls.cluster.dir / "tmp" / "login"
        cls.login.mkdir()
        cls.login.chmod(0o755)
        etc = cls.cluster.dir / "etc"
        (cls.login / "plugstack.conf").write_text(f"optional spank_banyan.so config={etc}/banyan.conf\n")
        conf = (etc / "slurm.conf").read_text()
        nodes_plugstack, users_plugstack = f"PlugStackConfig={etc}/plugstack.conf", f"PlugStackConfig={cls.login}/plugstack.conf"
        assert nodes_plugstack in conf
        (cls.login / "slurm.conf").write_text(conf.replace(nodes_plugstack, users_plugstack))

    def as_user(self, *words, check=True):
        return self.cluster.run("env", f"SLURM_CONF={self.login}/slurm.conf", *words, check=check)

    def test_the_program_of_a_training_step_is_not_started(self):
        ran = self.as_user(*self.cluster.srun(*TRAIN), *PROGRAM, check=False)
        self.assertNotEqual(ran.returncode, 0)
        self.assertNotIn("started", ran.stdout)
        self.assertIn("its Slurm does not load spank_banyan.so", ran.stderr)

    def test_other_steps_are(self):
        self.assertEqual(self.as_user("srun", "-N2", "-n2", *PROGRAM).stdout, "started rank=\n" * 2)

    def test_banyan_run_on_such_a_node(self):
        script = f"#!/bin/bash\nexport SLURM_CONF={self.cluster.dir}/etc/slurm.conf\nbanyan-run sh -c 'echo started rank=$RANK'\n"
        work = self.cluster.dir / "tmp"
        (work / "job.sh").write_text(script)
        job = self.as_user("sbatch", "--parsable", f"--chdir={work}", f"--output={work}/slurm-%j.out", *TRAIN, work / "job.sh").stdout.strip()
        self.cluster.wait_for_job(job, "FAILED")
        output = self.cluster.output(job)
        self.assertNotIn("started", output)
        self.assertIn("srun on this host does not load spank_banyan.so", output)


if __name__ == "__main__":
    main()

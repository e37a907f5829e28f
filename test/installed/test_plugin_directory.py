# SPDX-License-Identifier: BSD-3-Clause
"""The select plugin beside Slurm's own in Slurm's plugin directory, whichever of the two readdir gives first. slurmctld loads both: a
site that has our file and another SelectType runs as without it, and one that has chosen ours runs."""

from plugin_directory import OURS, THEIRS, InstalledCase, main, of_another_micro_release
from site_texts import BANYAN, PLAIN


class PluginDirectory(InstalledCase):
    def test_ours_first_and_not_selected(self):
        self.as_if_absent(OURS)

    def test_theirs_first_and_not_selected(self):
        self.as_if_absent(THEIRS)

    def test_ours_first_and_selected(self):
        self.selected(OURS)

    def test_theirs_first_and_selected(self):
        self.selected(THEIRS)

    def as_if_absent(self, first):
        self.plugins.install(first)
        site = self.site(select=PLAIN)
        site.up()
        self.work(site)
        self.assertEqual(site.log().count("select/cons_tres loaded"), 2, "once for each start")
        for name in ("slurmctld.log", *(f"slurmd-{node}.log" for node in site.names)):
            self.assertEqual([line for line in site.log(name).splitlines() if "banyan" in line], [], name)
        for command in (("sinfo",), ("squeue",), ("srun", "-N1", "true"), ("scontrol", "show", "node", "n01")):
            self.assertEqual(site.run(*command).stderr, "")

    def selected(self, first):
        self.plugins.install(first)
        site = self.site(select=BANYAN)
        site.up()
        self.work(site)
        job = site.sbatch("-N4", "--ntasks-per-node=1", "--train-parallel=pp=2,dp=2")
        site.wait_for_job(job, "RUNNING")
        ranks = site.step(job)[1]
        self.assertEqual(sorted(ranks), site.names)
        self.assertNotEqual(ranks, site.names, "Slurm's own order would pass, too")
        self.assertEqual(site.restart_controller(), 0)
        self.assertEqual(site.step(job), (0, ranks))
        site.let_end(job)
        self.assertNotIn("error: banyan", site.log().replace("hosts that slurm.conf lacks", ""))

    def work(self, site):
        """Jobs, GPUs, a reconfiguration, a restart and an end, all as if nothing were."""
        def jobs():
            for options in (("-N4",), ("-N1", "--gres=gpu:1"), ("-N2", "--exclusive")):
                site.wait_for_job(site.sbatch(*options, script="#!/bin/bash\nsrun hostname\n"))
            held = site.sbatch("-N2")
            site.wait_for_job(held, "RUNNING")
            self.assertEqual(site.step(held)[0], 0)
            # What a select plugin packs about a node, whichever of the two unpacks it.
            nodes = site.out("squeue", "-h", "-j", held, "-o", "%N")
            self.assertEqual(site.out("sinfo", "-h", "-n", nodes, "-o", "%C"), "4/0/0/4")
            self.assertIn("AllocTRES=cpu=2", site.out("scontrol", "-o", "show", "node", nodes))
            return held
        held = jobs()
        site.run("scontrol", "reconfigure")
        self.assertEqual(site.step(held)[0], 0)
        self.assertEqual(site.restart_controller(), 0, "slurmctld's end")
        self.assertEqual(site.step(held)[0], 0)
        site.let_end(held)
        site.let_end(jobs())
        site.wait_for_idle()


class Unusable(InstalledCase):
    """Where Slurm's programs cannot go on they say why, and end as they do; none crashes."""

    def ends(self, site, *command):
        done = site.run(*command, check=False)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def everywhere(self, site, *texts):
        for command in (("slurmctld", "-D"), ("slurmd", "-D", "-N", "n01"), ("srun", "-N1", "true"), ("sbatch", "-N1", "--wrap=true")):
            said = self.ends(site, *command) + (site.log() if command[0] == "slurmctld" else "")
            for text in texts:
                self.assertIn(text, said, command)

    def test_cons_tres_is_missing(self):
        self.plugins.install()
        self.plugins.remove(THEIRS)
        site = self.site()
        self.everywhere(site, "places by its select/cons_tres, which cannot be used", f"{self.plugins.path}/{THEIRS} is not there",
                        "set SelectType=select/cons_tres")

    def test_cons_tres_of_another_release(self):
        self.plugins.install()
        self.plugins.put(THEIRS, of_another_micro_release(self.plugins.path / THEIRS))
        site = self.site()
        self.everywhere(site, f"{self.plugins.path}/{THEIRS} is that of Slurm 22.05.9", "Install banyan for this Slurm")

    def test_cons_tres_is_no_plugin(self):
        self.plugins.install()
        self.plugins.put(THEIRS, self.plugins.slurm["select_linear.so"])
        self.everywhere(self.site(), f"{self.plugins.path}/{THEIRS} is the plugin select/linear")

    def test_ours_of_another_release(self):
        """What an upgrade of Slurm without one of banyan is."""
        self.plugins.install()
        self.plugins.put(OURS, of_another_micro_release(self.plugins.path / OURS))
        self.everywhere(self.site(), "Incompatible plugin version", f"Can't find plugin for {BANYAN}")
        # A site that does not use it goes on.
        site = self.site(select=PLAIN)
        site.up()
        site.wait_for_job(site.sbatch("-N4", script="#!/bin/bash\nsrun hostname\n"))
        self.assertIn(f"for {BANYAN}: Incompatible plugin version", site.run("srun", "-N1", "true").stderr)

    def test_job_submit_of_another_release(self):
        self.plugins.install()
        name = "job_submit_banyan.so"
        self.plugins.put(name, of_another_micro_release(self.plugins.path / name))
        site = self.site()
        said = self.ends(site, "slurmctld", "-D")
        self.assertIn("job_submit/banyan: Incompatible plugin version", said)


if __name__ == "__main__":
    main()

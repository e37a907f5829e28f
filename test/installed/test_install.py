#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs/install.md, word by word, on an ordinary site of hosts with this host's release of Debian (ordinary_site.py): from nothing to the
first training job, to acting, to removal."""

import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

import debian_site
import guide
from debian_base import REPOSITORY, build_base, run

BUILD = Path(os.environ.get("BANYAN_BUILD", REPOSITORY / "build" / "dev"))
PAGE = REPOSITORY / "docs" / "install.md"
FOLDER = "/site/packages"
# Stands for the fabric that this machine does not have: prints what ibnetdiscover would.
NO_FABRIC = "#!/bin/sh\n# A mock: the fabric is one that banyan-topo made up.\nexec cat /site/fabric\n"


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("debootstrap"), "needs root and debootstrap")
class Install(unittest.TestCase):
    """One site, whose tests are steps: they run in the order of their names, and each needs the one before."""

    @classmethod
    def setUpClass(cls):
        cls.site = debian_site.Site()
        cls.addClassCleanup(cls.site.down)
        packages = cls.site.shared / "packages"
        cpack = "/usr/bin/cpack" if os.path.exists("/usr/bin/cpack") else "cpack"
        run(cpack, "--config", BUILD / "CPackConfig.cmake", "-G", "DEB", "-B", packages)
        shutil.rmtree(packages / "_CPack_Packages")
        build_base(sorted(packages.glob("*.deb")))
        subprocess.run([BUILD / "bin" / "banyan-topo", "gen", "--nodes", "2", "--group-size", "2", "--rails", "2", "--host-prefix", "n",
                        "-o", cls.site.shared / "fabric"], check=True, capture_output=True)
        cls.site.up()
        tool = cls.site.ctl.file("/usr/sbin/ibnetdiscover")
        tool.unlink()
        tool.write_text(NO_FABRIC)
        tool.chmod(0o755)
        cls.sections = guide.sections(PAGE)
        cls.followed = []

    def follow(self, number):
        """Follows the section of that number; what each step printed, one dictionary a step."""
        title = next(title for title in self.sections if title.startswith(f"{number}. "))
        self.followed.append(title)
        return [guide.follow(self.site, step, FOLDER) for step in self.sections[title]]

    def on_all(self, script, **options):
        return {host.name: host.run(script, **options).stdout for host in self.site.hosts.values()}

    def test_01_packages_change_nothing(self):
        pids = "systemctl show -p MainPID slurmctld slurmdbd slurmd munge"
        before = self.on_all(pids)
        self.follow(1)
        self.assertEqual(self.on_all(pids), before, "an installation restarted a daemon")
        for host in self.site.hosts.values():
            units = host.run("systemctl list-unit-files --no-legend 'banyan-*'").stdout
            self.assertTrue(units.strip())
            self.assertNotRegex(units, r"\benabled\b +(en|dis)abled\b")
            self.assertEqual(host.run("systemctl list-units --no-legend --state=active 'banyan-*'").stdout, "")
        self.assertEqual(sorted(self.site.ctl.run("srun -N2 hostname", user="alice").stdout.split()), ["n01", "n02"])

    def test_02_slurm_lives_with_the_plugins_beside_its_own(self):
        self.site.ctl.run("systemctl restart slurmctld")
        self.site.wait(self.site.idle, "slurmctld answers, and all nodes are idle")
        self.assertEqual(sorted(self.site.ctl.run("srun -N2 hostname", user="alice").stdout.split()), ["n01", "n02"])
        log = self.site.ctl.file("/var/log/slurm/slurmctld.log").read_text()
        self.assertNotIn("cons_tres_banyan loaded", log)

    def test_03_fabric(self):
        started, = self.follow(2)
        self.assertIn("n[01-02]", started["ctl"])
        self.assertIn("banyan-snapshot.timer", self.site.ctl.run("systemctl list-timers").stdout)

    def test_04_configuration(self):
        self.follow(3)
        self.follow(4)
        self.site.wait(self.site.idle, "all nodes are idle")
        self.assertIn("select/cons_tres_banyan", self.site.ctl.run("scontrol show config | grep SelectType").stdout)
        # By those whom it concerns, not by us. The second way is by what slurmdbd has of the cluster.
        for commands in ("squeue", "sinfo", "squeue -M site", "sinfo -M site"):
            self.site.login.run(commands, user="alice")
        self.assertIn("--train-parallel", self.site.login.run("srun --help", user="alice").stdout)
        # What the site had of its own is there still.
        self.assertEqual(sorted(self.site.login.run("srun -N2 --scratch=5G hostname", user="alice").stdout.split()), ["n01", "n02"])
        self.assertIn("the site says no", self.site.login.run("srun --comment=no hostname", user="alice", check=False).stdout)

    def test_05_daemons(self):
        self.follow(5)
        for host in self.site.nodes:
            for unit in (f"banyan-ckptd@{host.name}", "banyan-faultd-agent"):
                self.assertEqual(host.run(f"systemctl is-active {unit}").stdout.strip(), "active")
        self.site.wait(lambda: len(re.findall(r"^n0[123]\b", self.site.ctl.run("banyan-fault agents").stdout, re.M)) == 3, "all agents are heard")
        # It can ask and change Slurm.
        self.site.ctl.run("scontrol update NodeName=n03 State=DRAIN Reason='banyan:gpu-reset test'; banyan-fault resume n03")
        self.site.wait(self.site.idle, "the fault daemon has returned a node")

    def test_06_doctor(self):
        for name, told in self.follow(6)[0].items():
            self.assertIn("0 wrong, 0 that could not be looked at", told, name)
            if name == "ctl":
                self.assertIn("it lacks n03", told)
                self.assertIn("nothing, where these have no InfiniBand", told)
        self.assertEqual(self.on_all("banyan-doctor --quiet"), dict.fromkeys(self.site.hosts, ""))

    def test_06a_plugins_stay_where_slurm_looks_for_them(self):
        for host in self.site.hosts.values():
            # As by a tool that logs in nowhere.
            said = host.run("unset SLURM_CONF; apt-get remove -y banyan-slurm-plugins", check=False).stdout
            self.assertIn("NOT removed", said, host.name)

    def test_07_first_job(self):
        printed = self.follow(7)[0]["login1"]
        self.assertEqual(sorted(re.findall(r"rank (\d) of 4 on n0[12]", printed)), ["0", "1", "2", "3"], printed)
        self.assertIn("finished steps=20", printed)
        self.assertNotIn("no checkpoints", printed)
        for host in self.site.nodes[:2]:
            log = host.run(f"journalctl -q -o cat -u banyan-ckptd@{host.name}").stdout
            self.assertIn("session opened for uid 1000, 2 ranks here of 4", log)
            self.assertNotRegex(log, "warning: job")

    def test_07a_first_job_of_a_node_without_gpus_and_fabric(self):
        printed = self.site.login.run("sbatch --wait -p cpu -N1 --ntasks-per-node=2 --train-parallel=dp=2 --train-ckpt=every=1,size=1M -o cpu.out "
                                      "--wrap 'banyan-run /usr/libexec/banyan/banyan-trainer --steps 20'; cat cpu.out", user="alice",
                                      cwd="/home/alice").stdout
        self.assertIn("finished steps=20", printed)
        self.assertIn("session opened for uid 1000, 2 ranks here of 2", self.site.hosts["n03"].run("journalctl -q -o cat -u banyan-ckptd@n03").stdout)

    def test_07b_jobs_that_slurmdbd_has(self):
        self.site.login.run("srun -N2 --ntasks-per-node=2 --gpus-per-node=2 --train-parallel=tp=2,dp=2 true", user="alice")
        wanted = (r"main\|COMPLETED\|.*banyan:", r"cpu\|COMPLETED\|.*banyan:", r"main\|COMPLETED\|.*banyan:.*gres/gpu=4")

        def told():
            lines = self.site.login.run("sacct -X -n -P -o Partition,State,AdminComment,AllocTRES", user="alice").stdout.splitlines()
            return all(any(re.match(pattern, line) for line in lines) for pattern in wanted)
        self.site.wait(told, "sacct shows the training jobs, and where their ranks were")

    def test_08_dry_run_then_acting(self):
        first, _, last = self.follow(8)
        self.assertIn("dry run", first["ctl"])
        self.assertNotIn("dry run", last["ctl"])

    def test_09_logs(self):
        pids = {host.name: host.run(f"systemctl show -P MainPID banyan-ckptd@{host.name}").stdout for host in self.site.nodes}
        self.follow(9)
        self.assertEqual({host.name: host.run(f"systemctl show -P MainPID banyan-ckptd@{host.name}").stdout for host in self.site.nodes}, pids)

    def test_09a_sweep_of_a_node_that_has_no_slurm_conf(self):
        node = self.site.hosts["n03"]
        node.write("/etc/default/banyan-sweep", "OPTIONS=--drain\n")
        for mount, state in (("/nowhere", "drained"), ("/", "idle")):
            node.write("/etc/banyan/banyan.conf.d/sweep.conf", f'[sweep]\nmounts = ["{mount}"]\n')
            node.run("systemctl start banyan-sweep", check=False)
            self.site.wait(lambda state=state: self.site.ctl.run("sinfo -h -n n03 -o %T").stdout.strip() == state, f"n03 is {state}")
        node.run("rm /etc/default/banyan-sweep /etc/banyan/banyan.conf.d/sweep.conf")

    def test_10_removal(self):
        home = self.site.shared / "home" / "alice"
        job = self.site.ctl.run("sbatch --parsable -N2 --ntasks-per-node=2 --no-kill --train-parallel=tp=2,dp=2 -o removed.out --wrap "
                                "'srun hostname; touch started; until [ -e go ]; do sleep 0.1; done; srun hostname'", user="alice",
                                cwd="/home/alice").stdout.strip()
        self.site.wait((home / "started").exists, "a job runs")
        title = next(title for title in self.sections if title.startswith("10. "))
        *steps, purge = self.sections[title]
        for step in steps:
            guide.follow(self.site, step, FOLDER)
        (home / "go").touch()
        self.site.wait(lambda: self.site.ctl.run(f"squeue -h -t all -j {job} -o %T").stdout.strip() not in ("RUNNING", "COMPLETING"),
                       "the job has ended")
        self.assertEqual(sorted((home / "removed.out").read_text().split()), ["n01"] * 4 + ["n02"] * 4)
        guide.follow(self.site, purge, FOLDER)
        self.followed.append(title)
        self.site.wait(self.site.idle, "all nodes are idle")
        self.assertEqual(sorted(self.site.ctl.run("srun -N2 hostname", user="alice").stdout.split()), ["n01", "n02"])
        for host in self.site.hosts.values():
            left = host.run("find /etc /usr /var/lib /run /lib -xdev -iname '*banyan*' -not -path '/var/lib/apt/*' -not -path '/var/lib/systemd/*'").stdout
            self.assertEqual(left, "", f"left on {host.name}")

    def test_11_no_section_was_left_out(self):
        self.assertEqual(self.followed, [title for title, steps in self.sections.items() if steps])


if __name__ == "__main__":
    unittest.main(verbosity=2, failfast=True)

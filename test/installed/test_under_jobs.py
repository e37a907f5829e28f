# SPDX-License-Identifier: BSD-3-Clause
"""banyan comes, is replaced and goes while a training job runs and another one waits, in the steps of docs/upgrade.md. Every step of the
running job that is asked for between two of them runs, with its ranks where the plan has them as long as there is one; what waited
starts; no node is left completing."""

import json
import re
import time
from pathlib import Path

from plugin_directory import OURS, THEIRS, InstalledCase, NextMicroRelease, main
from site_texts import BANYAN, PLAIN

TRAIN = ("-N4", "--ntasks-per-node=1", "--train-parallel=pp=2,dp=2")
PLAIN_JOB = TRAIN[:2]
STEP_THAT_ENDS = "#!/bin/bash\nsrun hostname\n"


class UnderJobs(InstalledCase):
    def setUp(self):
        super().setUp()
        self.plugins.install(THEIRS)

    def busy(self, site, options=TRAIN):
        """A job that runs and one that waits for its nodes; the nodes of the first by rank."""
        site.up()
        runs = site.sbatch(*options)
        site.wait_for_job(runs, "RUNNING")
        waits = site.sbatch(*options, script=STEP_THAT_ENDS)
        status, ranks = site.step(runs)
        self.assertEqual((status, sorted(ranks)), (0, site.names))
        return runs, waits, ranks

    def both_end(self, site, runs, waits):
        site.let_end(runs)
        site.wait_for_job(waits)
        site.wait_for_idle()
        self.complaints(site)

    def complaints(self, site):
        self.assertNotIn("error: banyan", site.log().replace("hosts that slurm.conf lacks", ""))
        for part in ("slurmctld.log", *(f"slurmd-{name}.log" for name in site.names)):
            self.assertEqual([line for line in site.log(part).splitlines()
                              if re.search("Header lengths|unpack error|select plugin|Malformed", line)], [], part)

    # -- removal -----------------------------------------------------------------------------------------------------------------

    def test_removal(self):
        self.remove()

    def test_removal_with_ours_first(self):
        # Whose code reads what either of them packed is up to the order.
        self.plugins.install(OURS)
        self.remove()

    def remove(self):
        site = self.site()
        runs, waits, ranks = self.busy(site)
        self.assertNotEqual(ranks, site.names, "Slurm's own order would pass, too")
        site.configure(PLAIN)
        self.assertEqual(site.restart_controller(), 0)
        self.plain_step(site, runs)
        site.restart_nodes()
        self.plain_step(site, runs)
        (site.dir / "plugstack.conf").write_text("")
        self.plugins.uninstall()
        self.plain_step(site, runs)
        self.assertEqual(site.restart_controller(), 0)
        self.plain_step(site, runs)
        self.both_end(site, runs, waits)

    def test_removal_in_a_hurry(self):
        """The files go first: slurmd and slurmctld go on with what they have loaded, until each is started anew."""
        site = self.site()
        runs, waits, _ = self.busy(site)
        site.configure(PLAIN)
        (site.dir / "plugstack.conf").write_text("")
        self.plugins.uninstall()
        self.assertEqual(site.step(runs)[0], 0)
        self.assertEqual(site.restart_controller(), 0)
        self.plain_step(site, runs)
        self.both_end(site, runs, waits)
        site.restart_nodes()
        site.wait_for_job(site.sbatch("-N4", script=STEP_THAT_ENDS))

    def test_files_gone_too_early(self):
        """slurm.conf still names them: what starts meanwhile fails and says why, and all is well when they are back."""
        site = self.site()
        runs, waits, ranks = self.busy(site)
        self.plugins.uninstall()
        self.assertNotEqual(site.step(runs)[0], 0)
        self.assertIn(f"Can't find plugin for {BANYAN}", site.output(runs))
        self.plugins.install()
        self.assertEqual(site.step(runs), (0, ranks))
        self.plugins.uninstall()
        site.tell_to_end(runs)
        site.wait_for(lambda: any("_forkexec_slurmstepd" in site.log(f"slurmd-{name}.log") for name in site.names), "no batch script starts")
        self.plugins.install()
        site.wait_for(lambda: site.out("squeue", "-h", "-j", waits, "-o", "%r") == "launch failed requeued held", "the job is held")
        # Slurm revokes what it granted the job by the second: a start in the same one is refused.
        held = int(time.time())
        site.wait_for(lambda: int(time.time()) > held, "the next second")
        site.run("scontrol", "release", waits)
        site.run("scontrol", "update", f"JobId={waits}", "StartTime=now", check=False)  # it may have begun
        site.wait_for_job(waits)
        site.wait_for_idle()

    def plain_step(self, site, job):
        """In Slurm's order: there is nobody who knows another."""
        self.assertEqual(site.step(job), (0, site.names))

    # -- installation --------------------------------------------------------------------------------------------------------------

    def test_installation(self):
        self.plugins.uninstall()
        site = self.site(select=PLAIN)
        runs, waits, ranks = self.busy(site, PLAIN_JOB)
        self.assertEqual(ranks, site.names)
        self.plugins.install()
        self.plain_step(site, runs)
        site.configure(BANYAN)
        self.assertEqual(site.restart_controller(), 0)
        self.plain_step(site, runs)
        site.restart_nodes()
        self.plain_step(site, runs)
        self.both_end(site, runs, waits)
        train = site.sbatch(*TRAIN)
        site.wait_for_job(train, "RUNNING")
        status, ranks = site.step(train)
        self.assertEqual(status, 0)
        self.assertNotEqual(ranks, site.names)
        site.let_end(train)

    # -- upgrade ---------------------------------------------------------------------------------------------------------------------

    def test_upgrade(self):
        site = self.site()
        runs, waits, ranks = self.busy(site)
        self.plugins.install()
        # New files under the same names: what runs keeps the old ones.
        self.assertEqual({part: self.has_old_files(site, part) for part in ("slurmctld", "slurmd-n01")}, {"slurmctld": True, "slurmd-n01": True})
        self.assertEqual(site.step(runs), (0, ranks))
        site.run("scontrol", "reconfigure")
        self.assertEqual(site.step(runs), (0, ranks))
        self.assertEqual(site.restart_controller(), 0)
        self.assertEqual(site.step(runs), (0, ranks))
        site.restart_nodes()
        self.assertFalse(self.has_old_files(site, "slurmctld") or self.has_old_files(site, "slurmd-n01"))
        self.assertEqual(site.step(runs), (0, ranks))
        self.both_end(site, runs, waits)

    def test_upgrade_of_slurm(self):
        """To its next micro release and banyan's packages for that."""
        release = NextMicroRelease()
        self.addCleanup(release.go)
        site = self.site()
        runs, waits, ranks = self.busy(site)
        self.assertIn(release.before, site.out("scontrol", "version"))
        site.run("scontrol", "update", "PartitionName=train", "State=DOWN")
        self.assertGreater(release.unpack(self.plugins), 50, "plugins and libraries of Slurm that say its release")
        self.assertIn(release.name, site.out("scontrol", "version"))
        # Slurm's files are new, banyan's are not yet.
        self.assertNotEqual(site.step(runs)[0], 0)
        self.assertIn(f"Can't find plugin for {BANYAN}", site.output(runs))
        self.plugins.install_for(release)
        self.assertEqual(site.step(runs), (0, ranks), "daemons of the old release, srun and slurmstepd of the new one")
        self.assertEqual(site.restart_controller(), 0)
        self.assertIn(f"slurmctld version {release.name} started", site.log())
        self.assertEqual(site.step(runs), (0, ranks))
        site.restart_nodes()
        self.assertEqual(site.step(runs), (0, ranks))
        site.run("scontrol", "update", "PartitionName=train", "State=UP")
        self.both_end(site, runs, waits)

    def has_old_files(self, site, part):
        maps = Path(f"/proc/{site.parts[part].pid}/maps").read_text()
        self.assertIn(OURS, maps)
        return f"{OURS} (deleted)" in maps

    def test_plan_of_an_older_banyan(self):
        """It counts as none. The job's next step makes a new one, of the same nodes."""
        site = self.site()
        runs, waits, ranks = self.busy(site)
        self.assertEqual(site.end("slurmctld"), 0)
        plan, put = self.saved_plan(site)
        version = plan["version"]
        put({**plan, "version": version - 1})
        self.assertEqual(self.saved_plan(site)[0]["version"], version - 1)
        site.start_controller()
        site.wait_for(lambda: site.registrations() >= len(site.names), "every node has registered")
        self.assertEqual(site.step(runs), (0, ranks))
        self.assertEqual(site.restart_controller(), 0)
        self.assertEqual(site.step(runs), (0, ranks))
        self.assertEqual(site.end("slurmctld"), 0)
        self.assertEqual(self.saved_plan(site)[0]["version"], version, "the plan that the step made")
        site.start_controller()
        self.both_end(site, runs, waits)

    def saved_plan(self, site):
        """The one plan in slurmctld's saved state, and what puts another in its place."""
        file, munge, head = site.dir / "ctld" / "job_state", ("-S", site.dir / "run" / "munge"), b"BANYAN_PLAN="
        state = file.read_bytes()
        self.assertEqual(state.count(head), 1)
        at = state.index(head)
        size = int.from_bytes(state[at - 4:at], "big")  # of a string, with its null
        # unmunge says of a credential that is read again that it is, and what is in it.
        text = site.run("unmunge", *munge, "-m", "/dev/null", check=False, input=state[at + len(head):at + size - 1].decode()).stdout
        title, _, plan = text.partition("\n")

        def put(other):
            sealed = head + site.out("munge", *munge, input=f"{title}\n{json.dumps(other)}").encode() + b"\0"
            file.write_bytes(state[:at - 4] + len(sealed).to_bytes(4, "big") + sealed + state[at + size:])
        return json.loads(plan), put


if __name__ == "__main__":
    main()

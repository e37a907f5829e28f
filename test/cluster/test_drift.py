# SPDX-License-Identifier: BSD-3-Clause
"""Plugins that were built with the headers of another Slurm than the one that runs, though both have the same release number: vendors
patch it. Each private structure that the plugins read gets one field more in turn; slurmctld starts, says so with both sizes, and places
jobs as select/cons_tres does."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import harness
from harness import REPOSITORY, Cluster, main

SOURCE = Path(os.environ.get("BANYAN_SLURM_SOURCE", REPOSITORY / "build" / "deps" / "slurm"))
# The header of each, and its end or beginning.
STRUCTURES = {
    "job_record_t": ("src/slurmctld/slurmctld.h", "struct job_record {"),
    "job_details_t": ("src/slurmctld/slurmctld.h", "struct job_details {"),
    "part_record_t": ("src/slurmctld/slurmctld.h", "} part_record_t;"),
    "step_record_t": ("src/slurmctld/slurmctld.h", "} step_record_t;"),
    "job_resources_t": ("src/common/job_resources.h", "struct job_resources {"),
    "node_record_t": ("src/common/node_conf.h", "struct node_record {"),
    "slurmctld_resv_t": ("src/slurmctld/slurmctld.h", "} slurmctld_resv_t;"),
    "gres_state_t": ("src/common/gres.h", "typedef struct gres_state {"),
    "gres_job_state_t": ("src/common/gres.h", "typedef struct gres_job_state {"),
    "gres_step_state_t": ("src/common/gres.h", "typedef struct gres_step_state {"),
}


def with_one_field_more(text, place):
    """The field comes first, so that all others lie elsewhere."""
    at = text.index(place)
    if place.startswith("}"):
        at = text.rindex("typedef struct {", 0, at)
    opening = text.index("{", at) + 1
    return text[:opening] + "\n\tvoid *a_field_of_the_vendor;" + text[opening:]


class Drift(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = Path(tempfile.mkdtemp(prefix="banyan-drift-"))
        cls.work.chmod(0o755)
        cls.addClassCleanup(shutil.rmtree, cls.work, ignore_errors=True)
        subprocess.run(["cp", "-rs", SOURCE.resolve(), cls.work / "slurm"], check=True)
        cls.build = cls.work / "build"
        # The compiler's cache has all but what includes these headers.
        cls.command("cmake", "--preset", "demo", "-B", cls.build, f"-DBANYAN_SLURM_SOURCE={cls.work / 'slurm'}")
        cls.command("cmake", "--build", cls.build, "-j2")
        cls.addClassCleanup(setattr, harness, "BUILD", harness.BUILD)
        harness.BUILD = cls.build

    @classmethod
    def command(cls, *words, **variables):
        run = subprocess.run([str(word) for word in words], cwd=REPOSITORY, env={**os.environ, **variables}, capture_output=True, text=True)
        if run.returncode != 0:
            raise harness.Failure(f"{words[0]}: {run.stdout[-3000:]}{run.stderr[-3000:]}")

    def place_with(self, structure):
        """Has a training job placed by plugins that take `structure` for longer than it is. Returns (its fields, slurmctld's log)."""
        header, place = STRUCTURES[structure]
        changed = self.work / "slurm" / header
        original = (SOURCE / header).read_text(errors="surrogateescape")
        changed.unlink()
        changed.write_text(with_one_field_more(original, place), errors="surrogateescape")
        try:
            # The compiler's cache, and what it says an object depends on, know the headers by where they lay at first.
            for file in (self.build / "slurmctld-plugin").rglob("*.o"):
                file.unlink()
            self.command("cmake", "--build", self.build, "-j2", "--target", "select_cons_tres_banyan", "job_submit_banyan", CCACHE_DISABLE="1")
            cluster = Cluster(nodes=4, options=("--group-size", 4, "--without", "fault"))
            self.addCleanup(cluster.remove)
            cluster.up()
            jobs = [cluster.sbatch("-N2", "--ntasks-per-node=1", *options, script="srun hostname; srun hostname\n")
                    for options in (("--train-parallel=dp=2",), ())]
            for job in jobs:
                cluster.wait_for_job(job)
            self.lose_a_node(cluster)
            later = cluster.sbatch("-N2", script="true\n")
            cluster.wait_for_job(later)
            return cluster.job(jobs[0]), (cluster.dir / "log" / "slurmctld.log").read_text(errors="replace")
        finally:
            changed.write_text(original, errors="surrogateescape")

    def lose_a_node(self, cluster):
        """Of a job in a reservation, with GRES in a step that runs."""
        cluster.run("scontrol", "create", "reservation", "ReservationName=ours", "Users=root", "StartTime=now", "Duration=10", "Nodes=ALL")
        job = cluster.sbatch("-N2", "--no-kill", "--gres=gpu:1", "--reservation=ours", script="srun --no-kill sleep 600\n")
        cluster.wait_for(lambda: f"{job}.0" in cluster.out("squeue", "-h", "-s", "-o", "%i"), "its step runs")
        cluster.run("scontrol", "update", f"nodename={cluster.hosts(cluster.job(job)['NodeList'])[1]}", "state=down", "reason=lost")
        cluster.wait_for(lambda: len(cluster.hosts(cluster.job(job)["NodeList"])) == 1, "the job has lost the node")
        cluster.run("scancel", job)
        cluster.wait_for_job(job, "CANCELLED")
        cluster.run("scontrol", "delete", "ReservationName=ours")

    def test_each_structure(self):
        for structure in STRUCTURES:
            with self.subTest(structure=structure):
                fields, log = self.place_with(structure)
                self.assertEqual(fields["JobState"], "COMPLETED")
                sizes = re.findall(rf"{structure} has (\d+) bytes here, and (\d+) in the headers", log)
                self.assertTrue(sizes, log[-2000:])
                self.assertEqual({int(theirs) + 8 for theirs, _ in sizes}, {int(ours) for _, ours in sizes})
                # There is no step, and no loss, before the first job has been placed.
                if structure not in ("step_record_t", "slurmctld_resv_t") and not structure.startswith("gres"):
                    self.assertNotIn("banyan", fields.get("AdminComment", ""))


if __name__ == "__main__":
    main()

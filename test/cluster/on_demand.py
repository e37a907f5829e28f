# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that run a step whenever a test asks for one, so that their ranks can be read before and after something happens to slurmctld."""

import json
import os
import re
import signal
import time

from harness import ClusterCase

from banyan_cluster import layout as layouts, process

RANKS = "./ranks.sh"  # and a name for the step

# Runs one step for every file that appears, until "end" does: srun's options stand in the file.
STEPS_ON_DEMAND = """
for name in $(seq 1 100); do
    until [ -e go-$SLURM_JOB_ID-$name ] || [ -e go-$SLURM_JOB_ID-end ]; do sleep 0.05; done
    [ -e go-$SLURM_JOB_ID-end ] && exit 0
    srun $(cat go-$SLURM_JOB_ID-$name) ./ranks.sh $name
    echo "step $name ended with $?"
done
"""


class OnDemandCase(ClusterCase):
    """A cluster of nodes with two GPUs each, whose jobs take them all."""

    expected_complaints = ("hosts that slurm.conf lacks: sm01",)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.layout = layouts.load(cls.cluster.dir)
        cls.tmp = cls.cluster.dir / "tmp"
        cls.steps = {}  # {job: how many steps it was asked for}
        script = cls.tmp / "ranks.sh"
        script.write_text("#!/bin/bash\necho rank $1 $SLURM_PROCID $SLURMD_NODENAME\n")
        script.chmod(0o755)

    # -- the controller ------------------------------------------------------------------------------------------------------

    @classmethod
    def end_controller(cls, number=signal.SIGKILL, part="slurmctld"):
        pid = cls.cluster.parts()[part]
        os.kill(pid, number)
        cls.cluster.wait_for(lambda: process.start_time(pid) is None, f"{part} has ended")

    @classmethod
    def registrations(cls):
        """How many a slurmctld has heard. Before its nodes' it makes an srun that asks for a step sleep for up to two minutes."""
        found = re.search(r"MESSAGE_NODE_REGISTRATION_STATUS\s.*count:(\d+)", cls.cluster.out("sdiag"))
        return int(found.group(1)) if found else 0

    def wait_for_saved(self, job):
        """Slurm saves its jobs seconds after a change, or at once: what was not saved is lost with it, whatever plugin it has."""
        file = self.cluster.dir / "ctld" / "job_state"
        now = time.time()
        # Any change of any job makes slurmctld save them all; what was to be saved may have been by now.
        self.cluster.run("scontrol", "update", f"JobId={job}", "Comment=saved")
        self.cluster.wait_for(lambda: file.exists() and file.stat().st_mtime > now, "the jobs are saved")

    def complaints(self, log="slurmctld.log"):
        """What our plugins reported as an error, but for what is expected."""
        lines = (self.cluster.dir / "log" / log).read_text(errors="replace").splitlines()
        return [line for line in lines if "error: banyan" in line and not any(text in line for text in self.expected_complaints)]

    # -- jobs ----------------------------------------------------------------------------------------------------------------

    @classmethod
    def submit(cls, *options, script=STEPS_ON_DEMAND):
        return cls.cluster.sbatch("--gres=gpu:2", "--open-mode=append", *options, script=script)

    def place(self, shape, nodes, per_node, free, spares=0):
        return json.loads(self.cluster.out("banyan-topo", "place", self.cluster.dir / "fabric.snapshot", "--shape", shape,
                                           "--nodes", nodes, "--ranks-per-node", per_node, "--spares", spares, "--free", ",".join(free),
                                           "--json"))

    def ranks(self, job, step):
        """Nodes by rank, as the tasks of a step printed them."""
        seen = {}
        for line in self.cluster.output(job).splitlines():
            words = line.split()
            if words[:2] == ["rank", str(step)]:
                seen[int(words[2])] = words[3]  # of the latest run
        return [seen[rank] for rank in sorted(seen)]

    def state(self, job):
        return self.cluster.job(job).get("JobState", "unknown")

    def start_on_demand(self, *options):
        job = self.submit(*options)
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        self.cluster.wait_for_job(job, "RUNNING")
        return job

    def step(self, job, options=""):
        """Runs a step of the job and returns its (exit status, nodes by rank)."""
        name = self.steps[job] = self.steps.get(job, 0) + 1
        file = self.tmp / f"go-{job}-{name}.new"
        file.write_text(options)
        file.rename(self.tmp / f"go-{job}-{name}")
        line = f"step {name} ended with "
        self.cluster.wait_for(lambda: line in self.cluster.output(job),
                              lambda: f"step {name} of job {job} ends; it printed {self.cluster.output(job)}")
        status = int(self.cluster.output(job).partition(line)[2].split()[0])
        return status, self.ranks(job, name)

    def end_on_demand(self, job):
        (self.tmp / f"go-{job}-end").touch()
        self.cluster.wait_for_job(job)

    def occupy(self, nodes):
        job = self.submit("-w", ",".join(nodes), f"-N{len(nodes)}", script="sleep 600\n")
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        self.cluster.wait_for_job(job, "RUNNING")
        return job

# SPDX-License-Identifier: BSD-3-Clause
"""A slurmctld without slurmds, for tests of node choice alone: its nodes are cloud nodes whose resume program does nothing, so that an
allocated job shows its nodes and cores and stays CONFIGURING until it is cancelled. Nothing in it depends on how fast anything runs.

A `gate` makes passes of the scheduler repeatable: every job needs a license, and while the gate is shut a reservation holds them all.
One RPC opens it for all jobs at once, so that a pass meets either none of them or all. (Draining the nodes would requeue what runs on a
cloud node, and opening a partition would leave the others shut.)
"""

import re
import shutil
import subprocess
import tempfile
import time

import harness
from banyan_cluster import files, installed, layout as layouts, namespace, parts, process

DEADLINE = 120
LICENSES = 1_000_000
RUNNING = ("RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED")


def state_of(job):
    return job["JobState"]


class LoneController:
    def __init__(self, select, scheduler, nodes=48, group_size=8):
        self.layout = layouts.Layout(tempfile.mkdtemp(prefix="banyan-"), {
            "nodes": 1, "gpus": 8, "group_size": group_size, "tree": str(installed.of(harness.BUILD).root), "select": select, "spank": True,
            "submit": select == "cons_tres_banyan"})
        layouts.prepare(self.layout)
        self.layout.options["port"], self.reservation = layouts.choose_port(self.layout)
        self.layout.options["nodes"] = nodes  # none of them has a slurmd, and so a port
        self.layout.save()
        self.scheduler = scheduler
        self.gate_state = "open"
        self.names = self.layout.node_names
        self.script = self.layout.path("tmp", "job.sh")
        self.env = parts.tool_environment(self.layout)

    # -- life --------------------------------------------------------------------------------------------------------------

    def up(self):
        layout, etc = self.layout, self.layout.path("etc")
        dump = layout.path("fabric", "dump")
        self._topo("gen", "--nodes", len(self.names), "--group-size", layout.group_size, "-o", dump)
        (etc / "topology.conf").write_text(self._topo("slurm", dump, "--plugin", "tree"))
        self._topo("snapshot", dump, "-o", layout.path("fabric.snapshot"))
        (etc / "slurm.conf").write_text(self.slurm_conf())
        devices = layout.path("nodes")
        for gpu in range(8):
            (devices / f"nvidia{gpu}").touch()
        (etc / "gres.conf").write_text(
            f"NodeName={layout.node_range()} Name=gpu File={devices}/nvidia[0-3] Cores=0-7\n"
            f"NodeName={layout.node_range()} Name=gpu File={devices}/nvidia[4-7] Cores=8-15\n")
        (etc / "plugstack.conf").write_text(files.plugstack_conf(layout))
        (etc / "banyan.conf").write_text(f'[munge]\nsocket = "{layout.path("run")}/munge.socket"\n'
                                         f'[topo]\nsnapshot = "{layout.path("fabric.snapshot")}"\n')
        self.script.write_text("#!/bin/bash\nsleep 1\n")
        parts.start_base(layout)
        parts.start_slurmctld(layout)

    def remove(self):
        process.end_parts(self.layout, ("slurmctld",), grace=10)
        process.end_all(self.layout)
        for one in self.reservation:
            one.close()
        shutil.rmtree(self.layout.dir)

    def slurm_conf(self):
        """Two kinds of nodes, several features and weights, and a partition for each way to share a node."""
        layout = self.layout
        # One scheduler only: main and backfill side by side would take turns as the clock has it.
        limits = "default_queue_depth=10000,max_sched_time=50,batch_sched_delay=0,sched_min_interval=0,max_switch_wait=86400"
        scheduler = {"main": ["SchedulerType=sched/builtin", f"SchedulerParameters=sched_interval=1,defer,{limits}"],
                     "backfill": ["SchedulerType=sched/backfill", "DebugFlags=Backfill",
                                  f"SchedulerParameters=sched_interval=-1,bf_interval=1,bf_resolution=60,bf_max_time=100,"
                                  f"bf_yield_interval=10000000,bf_max_job_test=10000,bf_continue,{limits}"]}[self.scheduler]
        size = layout.group_size
        nodes = []
        for group in range(0, len(self.names), size):
            for half, (feature, weight) in enumerate((("a", 1), ("b", 5))):
                first, last = group + half * size // 2, min(group + (half + 1) * size // 2, len(self.names)) - 1
                if first <= last:
                    nodes.append(f"NodeName=n[{self.names[first][1:]}-{self.names[last][1:]}] CPUs=16 Sockets=2 CoresPerSocket=8 "
                                 f"ThreadsPerCore=1 RealMemory={64000 if group else 32000} Gres=gpu:8 "
                                 f"Feature={feature},rack{group // size % 3},all Weight={weight} State=CLOUD")
        common = "Nodes=ALL State=UP MaxTime=INFINITE"
        return "\n".join([
            *files.controller_conf(layout, topology="tree"), *files.cloud_conf(),
            "SelectTypeParameters=CR_Core_Memory", "DefMemPerCPU=500", "GresTypes=gpu",
            "PreemptType=preempt/partition_prio", "PreemptMode=CANCEL", "MinJobAge=86400", "MessageTimeout=100", "MaxArraySize=100",
            f"Licenses=gate:{LICENSES}",
            *scheduler, *nodes,
            f"PartitionName=main {common} Default=YES OverSubscribe=NO PriorityTier=10 PreemptMode=CANCEL",
            f"PartitionName=whole {common} OverSubscribe=EXCLUSIVE PriorityTier=10 PreemptMode=OFF",
            f"PartitionName=shared {common} OverSubscribe=YES:4 PriorityTier=10 PreemptMode=OFF",
            f"PartitionName=urgent {common} OverSubscribe=NO PriorityTier=100 PreemptMode=OFF"]) + "\n"

    def _topo(self, *words):
        done = subprocess.run([str(word) for word in (harness.program("banyan-topo"), *words)], capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise harness.Failure(f"banyan-topo {words} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    # -- commands ----------------------------------------------------------------------------------------------------------

    def run(self, *words):
        """(exit status, output). Refusals are answers, too."""
        done = namespace.run(self.layout, words, self.layout.path("tmp"), capture_output=True, text=True, timeout=DEADLINE, env=self.env,
                             stdin=subprocess.DEVNULL)
        return done.returncode, (done.stdout + done.stderr).strip()

    def must(self, *words):
        status, text = self.run(*words)
        if status:
            raise harness.Failure(f"{' '.join(map(str, words))} ended with {status}: {text}\n{self.log()[-3000:]}")
        return text

    def sbatch(self, *options):
        """(job number or None, what sbatch said). A part of the options that is ":" begins a component of a heterogeneous job."""
        words = ["sbatch", "--parsable", *options, self.script]
        status, text = self.run(*words)
        number = text.splitlines()[-1].split(";")[0] if text else ""
        return (int(number), "") if status == 0 and number.isdigit() else (None, text)

    def jobs(self):
        """{name: {field: text}} of every job and array task that slurmctld knows; `cores` is what it holds on each node."""
        out = {}
        for line in self.must("scontrol", "-o", "-d", "show", "job").splitlines():
            if not line.startswith("JobId="):
                continue
            fields = {}
            for word in line.split():
                key, equals, value = word.partition("=")
                if equals:
                    fields.setdefault(key, value)
            fields["cores"] = re.findall(r" Nodes=(\S+ CPU_IDs=\S* Mem=\d+ GRES=\S*)", line)
            fields["line"] = line
            name = fields.get("ArrayJobId", fields["JobId"])  # the tasks of an array that are not yet jobs of their own
            if fields.get("ArrayTaskId", "").isdigit():
                name = f"{fields['ArrayJobId']}_{fields['ArrayTaskId']}"
            out[name] = fields
        return out

    def hosts(self, expression):
        return self.must("scontrol", "show", "hostnames", expression).split() if expression else []

    def log(self):
        return self.layout.path("log", "slurmctld.log").read_text(errors="replace")

    def complaints(self):
        """What our plugins reported as an error."""
        return [line for line in self.log().splitlines() if "error: banyan" in line]

    # -- passes of the scheduler ---------------------------------------------------------------------------------------------

    def gate(self, state):
        """`shut` keeps every pending job pending, `open` lets one pass of the scheduler meet all of them."""
        if state == self.gate_state:
            return
        self.gate_state = state
        if state == "shut":
            self.must("scontrol", "create", "reservation", "ReservationName=gate", f"Licenses=gate:{LICENSES}", "Users=root", "StartTime=now",
                      "Duration=10-0", "Flags=ANY_NODES,IGNORE_JOBS")
        else:
            self.must("scontrol", "delete", "ReservationName=gate")

    def cycles(self):
        """How many passes the scheduler has begun."""
        if self.scheduler == "main":
            return int(re.search(r"Total cycles:\s+(\d+)", self.must("sdiag")).group(1))
        # sdiag leaves out passes that find nothing to do.
        return self.log().count("_attempt_backfill: beginning")

    def settle(self):
        """Waits until a whole pass has changed nothing, and returns the jobs."""
        end = time.monotonic() + DEADLINE
        before, passes = None, 2  # a pass that had begun already may have missed the latest, so the one after it counts
        while True:
            start = self.cycles()
            while self.cycles() < start + passes:
                if time.monotonic() > end:
                    raise harness.Failure(f"the scheduler makes no passes\n{self.log()[-3000:]}")
                # The backfill scheduler sleeps while nothing changes.
                self.must("scontrol", "update", f"NodeName={self.names[0]}", f"Comment=pass{start}")
                time.sleep(0.1)
            jobs = self.jobs()
            now = {name: (state_of(job), job.get("NodeList")) for name, job in jobs.items()}
            if now == before:
                return jobs
            before, passes = now, 1

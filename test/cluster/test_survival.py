# SPDX-License-Identifier: BSD-3-Clause
"""What outlives slurmctld: kill -9 while it schedules, a restart and a reconfiguration lose no job, no plan and no rank. The plan is read
where root's prolog and epilog get it, the ranks where the tasks run.

BANYAN_SURVIVAL_SEED and BANYAN_SURVIVAL_ROUNDS set the dice and the number of kills.
"""

import json
import os
import random
import signal
import time

from harness import main
from on_demand import RANKS, OnDemandCase

from banyan_cluster import parts, process

SEED = int(os.environ.get("BANYAN_SURVIVAL_SEED", "20261121"))
ROUNDS = int(os.environ.get("BANYAN_SURVIVAL_ROUNDS", "4"))
ENDS = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL")

# The plan as prolog and epilog of every node get it, and one run of the job after the other.
HOOK = """#!/bin/bash
[ -z "$SPANK_BANYAN_PLAN" ] || printf '%s\\n' "$SPANK_BANYAN_PLAN" >>'{tmp}'/plan-{when}-"$SLURM_JOB_ID"-"$SLURMD_NODENAME"
exit 0
"""


class Survival(OnDemandCase):
    nodes = 8
    options = ("--group-size", 4, "--gpus", 2, "--without", "fault")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        lines = "BatchStartTimeout=1\n"
        for key, when in (("Prolog", "prolog"), ("Epilog", "epilog")):
            file = cls.cluster.dir / "etc" / f"{when}.sh"
            file.write_text(HOOK.format(tmp=cls.tmp, when=when))
            file.chmod(0o755)
            lines += f"{key}={file}\n"
        conf = cls.cluster.dir / "etc" / "slurm.conf"
        conf.write_text(conf.read_text() + lines)
        cls.restart_controller(signal.SIGTERM)
        # slurmd reads it on its own time: the probe shows that all have.
        cls.cluster.reconfigure()

        def hooked():
            job = cls.submit("-N8", "--ntasks-per-node=1", "--train-parallel=dp=8", script="true\n")
            cls.cluster.wait_for_job(job)
            return len(list(cls.tmp.glob(f"plan-prolog-{job}-*"))) == cls.nodes
        cls.cluster.wait_for(hooked, "every node runs the prolog")

    # -- the controller ------------------------------------------------------------------------------------------------------

    @classmethod
    def restart_controller(cls, number=signal.SIGKILL):
        cls.end_controller(number)
        cls.start_controller()

    @classmethod
    def start_controller(cls):
        """And waits until it has heard its nodes."""
        parts.start_slurmctld(cls.layout)
        cls.cluster.wait_for(lambda: cls.registrations() >= cls.nodes, "every node has registered")

    # -- jobs ----------------------------------------------------------------------------------------------------------------

    def plans(self, job, when):
        """The last plan that each of the job's nodes was given. A start that slurmctld died over may have left others elsewhere."""
        files = {node: self.tmp / f"plan-{when}-{job}-{node}" for node in self.cluster.hosts(self.cluster.job(job)["NodeList"])}
        return {node: self.opened(file.read_text().splitlines()[-1]) for node, file in files.items() if file.exists()}

    def opened(self, sealed):
        """munge says of a credential that is read again, or late, that it is, and what is in it."""
        done = self.cluster.run("unmunge", "-S", self.cluster.dir / "run" / "munge.socket", "-m", "/dev/null", check=False, input=sealed)
        head, _, plan = done.stdout.partition("\n")
        self.assertEqual(head, "banyan plan", done.stderr)
        return json.loads(plan)

    def plan_of(self, job):
        """The plan that every node of the job was given, which is for exactly these nodes."""
        nodes = self.cluster.hosts(self.cluster.job(job)["NodeList"])
        # The job is running before its prologs are through.
        files = [self.tmp / f"plan-prolog-{job}-{node}" for node in nodes]
        self.cluster.wait_for(lambda: all(file.exists() and file.read_text().endswith("\n") for file in files), f"prologs of job {job}")
        plans = self.plans(job, "prolog")
        self.assertEqual(sorted(plans), sorted(nodes), f"nodes of job {job} with a plan")
        plan = plans[nodes[0]]
        self.assertTrue(all(other == plan for other in plans.values()), plans)
        self.assertEqual(sorted(self.cluster.hosts(plan["nodes"])), sorted(nodes))
        return plan

    def planned_ranks(self, job):
        """Nodes by rank, as the plan says."""
        return self.ranks_of(self.plan_of(job))

    def ranks_of(self, plan):
        nodes = self.cluster.hosts(plan["nodes"])
        placed = self.place(plan["shape"], len(nodes), plan["ranks_per_node"], nodes)
        return [nodes[placed["nodes"].index(node)] for node in placed["ranks"]]

    # -- kills during scheduling -----------------------------------------------------------------------------------------------

    def test_killed_while_it_schedules(self):
        dice = random.Random(SEED)
        self.addCleanup(self.partition, "UP")
        for number in range(ROUNDS):
            with self.subTest(seed=SEED, round=number):
                self.one_kill(dice, number)
        self.cluster.wait_for_nodes_idle()

    def partition(self, state):
        self.cluster.run("scontrol", "update", "PartitionName=train", f"State={state}")

    def one_kill(self, dice, number):
        # srun sleeps for long when slurmctld is away or knows no node yet: rather ask again.
        step = "for try in $(seq 50); do srun --immediate=2 " + RANKS + " {} && break; sleep 0.3; done"
        go = self.tmp / f"go-{SEED}-{number}"
        trains, plains = [], []
        self.partition("DOWN")
        for _ in range(4):
            nodes = dice.choice([2, 4, 6, 8])
            shape = dice.choice([f"pp={nodes}", f"dp=2,pp={nodes // 2}", f"pp={nodes // 2},dp=2", f"dp={nodes}"])
            # What has started when slurmctld dies is still there when it is back. Of a job that it never saw start, and that ends
            # while it is away, Slurm makes a mess.
            wait = f"until [ -e {go} ]; do sleep 0.1; done"
            script = f"{step.format(1)}\n{wait}\n{step.format(2)}\n"
            trains.append(self.submit(f"-N{nodes}", "--ntasks-per-node=1", f"--train-parallel={shape}", script=script))
            plains.append(self.submit(f"-N{dice.choice([1, 2, 3])}", script=f"{wait}\nsleep {dice.uniform(0, 1.5):.2f}\n"))
        self.wait_for_saved(trains[0])
        self.partition("UP")
        if number % 2:
            # Jobs that slurmctld knows to be running when it is back.
            self.cluster.wait_for(lambda: "RUNNING" in [self.state(job) for job in trains], "a training job runs")
            self.wait_for_saved(trains[0])
        moment = dice.uniform(0, 3)
        time.sleep(moment)
        states = [self.state(job) for job in trains + plains]
        self.end_controller()
        time.sleep(dice.uniform(0, 1))
        self.start_controller()
        self.partition("UP")
        known = [self.state(job) for job in trains + plains]
        go.touch()
        self.see_to_the_end(trains + plains)
        ended = {job: self.state(job) for job in trains + plains}
        print(f"killed {moment:.2f} s later: running {states.count('RUNNING')} before, {known.count('RUNNING')} after, of {len(states)}; "
              f"in the end {sorted(set(ended.values()))}", flush=True)
        refused = self.refused_by_its_node(trains + plains)
        self.assertEqual({job: state for job, state in ended.items() if state != "COMPLETED" and job not in refused}, {})
        for job in set(trains) - refused:
            # Not the prolog's: on a node that met the job before, in a start that slurmctld died over, it may not run again.
            plan = self.plan_at_the_end(job)
            expected = self.ranks_of(plan)
            for step in (1, 2):
                self.assertEqual(self.ranks(job, step), expected, f"job {job} step {step}:\n{self.cluster.output(job)}")

    def refused_by_its_node(self, jobs):
        """Jobs that ran when slurmctld was back, which knew of no start; it ended them and started them anew before their node would
        take another credential. Slurm fails them, training jobs or not."""
        log = (self.cluster.dir / "log" / "slurmctld.log").read_text(errors="replace")
        return {job for job in jobs if f"Registered PENDING JobId={job} " in log and
                f"Killing non-startable batch JobId={job}: Job credential revoked" in log}

    def plan_at_the_end(self, job):
        """The plan that slurmctld had in the end, as the epilog of every node of the job got it."""
        nodes = self.cluster.hosts(self.cluster.job(job)["NodeList"])
        plans = self.cluster.wait_for(
            lambda: (lambda found: found if set(found) == set(nodes) and len({json.dumps(plan) for plan in found.values()}) == 1
                     else None)(self.plans(job, "epilog")), f"the epilogs of job {job} have one plan")
        plan = plans[nodes[0]]
        self.assertEqual(sorted(self.cluster.hosts(plan["nodes"])), sorted(nodes))
        return plan

    def see_to_the_end(self, jobs):
        """What Slurm does about a start that slurmctld died over, for plain jobs as for training jobs: it waits for a registration of the
        node, then for the end of the old credential, minutes by default, and may take the second start for a duplicate and drain the
        node. So ask for the first and lift the others."""
        asked = time.monotonic()

        def ended():
            nonlocal asked
            lines = self.cluster.out("squeue", "-h", "-o", "%i %T %r").splitlines()
            left = [line.split(None, 2) for line in lines if int(line.split()[0]) in jobs]
            for job, state, reason in left:
                if reason == "BeginTime":
                    self.cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now", check=False)
            if time.monotonic() > asked + 5:
                asked = time.monotonic()
                self.cluster.run("scontrol", "reconfigure")
                for line in self.cluster.out("sinfo", "-h", "-N", "-t", "drain", "-o", "%N %E").splitlines():
                    if "Duplicate jobid" in line:
                        self.cluster.run("scontrol", "update", f"NodeName={line.split()[0]}", "State=RESUME", check=False)
            return not left
        self.cluster.wait_for(ended, "every job ends", timeout=90, pause=0.5)

    # -- a running job ---------------------------------------------------------------------------------------------------------

    def test_ranks_of_a_running_job(self):
        """The same order before and after kill -9, a restart and a reconfiguration."""
        busy = ["n01", "n06"]
        self.occupy(busy)
        free = [name for name in self.layout.node_names if name not in busy]
        expected = self.place("dp=2,pp=3", 6, 1, free)["ranks"]
        self.assertNotEqual(expected, sorted(expected), "Slurm's own order would pass, too")
        job = self.start_on_demand("-N6", "--ntasks-per-node=1", "--train-parallel=dp=2,pp=3")
        self.assertEqual(self.step(job), (0, expected))
        self.assertEqual(self.planned_ranks(job), expected)
        self.wait_for_saved(job)
        self.restart_controller()
        self.assertEqual(self.step(job), (0, expected), "after kill -9")
        self.wait_for_saved(job)
        self.restart_controller(signal.SIGTERM)
        self.assertEqual(self.step(job), (0, expected), "after a restart")
        self.cluster.reconfigure()
        self.assertEqual(self.step(job), (0, expected), "after a reconfiguration")
        self.end_on_demand(job)

    def test_steps_of_one_job(self):
        job = self.start_on_demand("-N4", "--ntasks-per-node=2", "--train-parallel=dp=4,tp=2")
        expected = self.planned_ranks(job)
        nodes = self.cluster.hosts(self.cluster.job(job)["NodeList"])
        slurms = [node for node in nodes for _ in range(2)]
        self.assertNotEqual(expected, slurms, "Slurm's own order would pass, too")
        for _ in range(3):
            self.assertEqual(self.step(job), (0, expected))
        # A step that is not the training keeps Slurm's order.
        self.assertEqual(self.step(job, "-N2 -n4"), (0, slurms[:4]))
        self.assertEqual(self.step(job, "-N4 -n4 --ntasks-per-node=1"), (0, nodes))
        self.assertEqual(self.step(job, "-N4 -n12 --ntasks-per-node=3 --overcommit"), (0, [node for node in nodes for _ in range(3)]))
        # Uneven: as many tasks as ranks, but not two on each node.
        status, uneven = self.step(job, "-N3 -n8")
        self.assertEqual(status, 0)
        self.assertEqual(len(uneven), 8)
        # Who repeats the option with a step that does not fit is told so.
        status, nothing = self.step(job, "-N2 -n2 --train-parallel=dp=2,tp=2")
        self.assertNotEqual((status, nothing), (0, []))
        self.assertIn("--train-parallel=dp=2,tp=2 is 4 ranks, but this step has 2 tasks; ask for -n 4", self.cluster.output(job))
        # And none of them changed the plan.
        self.assertEqual(self.step(job), (0, expected))
        self.end_on_demand(job)

    def test_ranks_without_a_snapshot(self):
        self.occupy(["n01", "n06"])
        job = self.start_on_demand("-N6", "--ntasks-per-node=1", "--train-parallel=dp=2,pp=3")
        before = self.step(job)
        snapshot = self.cluster.dir / "fabric.snapshot"
        away = snapshot.with_suffix(".away")
        type(self).expected_complaints += ("no fabric snapshot at",)
        snapshot.rename(away)
        try:
            self.restart_controller(signal.SIGTERM)
            self.assertEqual(self.step(job), before)
        finally:
            away.rename(snapshot)
        self.assertEqual(before[0], 0)
        self.end_on_demand(job)

    def test_arrays(self):
        script = f"srun {RANKS} 1\nsrun {RANKS} 2\n"
        first = self.submit("-N4", "--ntasks-per-node=1", "--train-parallel=dp=2,pp=2", "--array=1-6", script=script)
        self.cluster.wait_for(lambda: not self.cluster.out("squeue", "-h", "-j", first, check=False), "the array ends")
        tasks = self.cluster.out("scontrol", "-o", "show", "job", first).splitlines()
        jobs = [int(line.split()[0].partition("=")[2]) for line in tasks]
        self.assertEqual(len(jobs), 6)
        for job in jobs:
            self.assertEqual(self.state(job), "COMPLETED")
            expected = self.planned_ranks(job)
            for step in (1, 2):
                self.assertEqual(self.ranks(job, step), expected, f"job {job}")

    def tearDown(self):
        self.assertEqual(self.complaints(), [])


if __name__ == "__main__":
    main()

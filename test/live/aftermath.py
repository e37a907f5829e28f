# SPDX-License-Identifier: BSD-3-Clause
"""What must be true of a cluster when the faults are over: every job trains on, with the same loss, Slurm's books and ours agree, and
nothing of the jobs is left when they have ended."""

import collections
import json
import time

from recovery_lab import ENDED, now_ms

from banyan_cluster import process
from banyan_demo import trainer_log
from harness import processes_of

TRAINS_WITHIN_S = 200   # after the last repair
FAULTS_IN_A_ROW_MS = 30_000  # two nodes of a job so close together may be all that had some shard
DAEMONS = {"slurmd", "slurmctld", "slurmscriptd", "munged", "ibsim", "opensm", "sleep", "banyan-faultd", "banyan-ckptd", "banyan-ckpt-kee",
           "exe"}  # of an agent, which listens to the HCAs by a process of its own


class Aftermath:
    """Of jobs of so many nodes, with two ranks on each."""

    def __init__(self, lab, nodes):
        self.lab, self.cluster, self.trouble = lab, lab.cluster, lab.trouble
        self.nodes, self.ranks = nodes, 2 * nodes
        self.hits, self.broken, self.jobs, self.wrong = [], {}, [], []

    def repair(self, due):
        for node in [node for node, at in self.broken.items() if due(at)]:
            # Somebody sees to it when it is out, and not before.
            if {"DOWN", "DRAIN"} & {state.rstrip("*") for state in self.cluster.node(node)["state"]}:
                self.trouble.repair(node)
                del self.broken[node]
                print(f"{time.strftime('%H:%M:%S')} {node} is back", flush=True)

    def complain(self, text):
        self.wrong.append(text)
        print(f"WRONG {text}", flush=True)

    def hold(self, what, condition, timeout=TRAINS_WITHIN_S):
        try:
            self.cluster.wait_for(condition, what, timeout=timeout, pause=0.3)
        except AssertionError:
            self.complain(f"not within {timeout} s: {what}")

    def all_repaired(self):
        def all_back():
            self.repair(lambda _: True)
            return not self.broken
        self.hold("every broken node was taken out, and is back", all_back)
        for node in self.broken:
            self.complain(f"{node} broke and was not taken out")
        self.trouble.start_what_ended()

    def all_train(self):
        since = now_ms()
        for job in self.jobs:
            def trains(job=job):
                return len([at for _, at in self.lab.log(job).step_times if at > since]) >= 8 and len(self.lab.ranks(job)) == self.ranks
            self.hold(f"job {job} trains on", trains)
            state = self.cluster.job(job).get("JobState", "gone")
            if state in ENDED or state == "gone":
                self.complain(f"job {job} is {state}: {self.cluster.output(job)[-1500:]}")

    def what_was_lost(self):
        """Steps that were trained again, and where that has no reason; the loss."""
        for job in self.jobs:
            log = self.lab.log(job)
            losses = trainer_log.losses(log)
            differ = [step for step, bits in losses.items() if self.lab.reference.get(step) != bits]
            if differ:
                self.complain(f"job {job}: the loss of {len(differ)} steps differs, the first is {min(differ)} of {max(losses)}")
            rewinds = [(now, before - step + 1) for (before, _), (step, now) in zip(log.step_times, log.step_times[1:]) if step <= before]
            for at, steps in rewinds:
                near = [hit for hit in self.hits if job in hit.jobs and at - FAULTS_IN_A_ROW_MS - 60_000 <= hit.at_ms <= at]
                if steps > max(1, len(near)) and not self.in_a_row(near):
                    self.complain(f"job {job} lost {steps} steps at {time.strftime('%H:%M:%S', time.localtime(at / 1000))}, "
                                  f"after {'; '.join(hit.what for hit in near) or 'nothing'}")
            print(f"job {job}: {len(losses)} steps, {len(log.starts)} starts, {self.cluster.job(job).get('Restarts')} requeues, "
                  f"{sum(steps for _, steps in rewinds)} steps lost", flush=True)

    @staticmethod
    def in_a_row(hits):
        losses = sorted(hit.at_ms for hit in hits if hit.nodes)
        return any(later - earlier < FAULTS_IN_A_ROW_MS for earlier, later in zip(losses, losses[1:]))

    def books(self):
        """What Slurm has of nodes and jobs, and what we have."""
        out = self.lab.out_of_service()
        if out:
            self.complain(f"out of service: {', '.join(sorted(out))}")
        for incident in self.trouble.incidents():
            about = f"{incident['id']} ({incident['object']['text']}: {incident['cause']})"
            if incident["state"] != "done":
                self.complain(f"incident {about} is {incident['state']}")
            if incident.get("followed"):
                self.complain(f"incident {about} still follows {incident['followed']}")
            if not incident["times"]["closed_ms"] and incident["times"]["node_out_ms"]:
                self.complain(f"incident {about} is open, and its node is in service")
            accused = incident["reason"] == "gpu-app" and any(a["what"] in ("node_down", "node_drain") for a in incident["actions"])
            if accused:
                self.complain(f"incident {about}: a node was taken out for an application's error")
        for job in self.jobs:
            fields, ranks = self.cluster.job(job), self.lab.ranks(job)
            nodes = {node for _, node in ranks.values()}
            if not nodes <= set(self.cluster.hosts(fields.get("NodeList", ""))):
                self.complain(f"job {job} has ranks on {sorted(nodes)}, and Slurm gave it {fields.get('NodeList')}")
            if f"nodes={self.nodes} " not in fields.get("AdminComment", ""):
                self.complain(f"job {job}: our line says {fields.get('AdminComment')}")

    def nothing_is_left(self):
        for job in self.jobs:
            self.cluster.run("scancel", job, check=False)
        self.hold("the queue is empty", lambda: not self.cluster.out("squeue", "-h", "-o", "%i"))
        self.hold("all nodes are idle", lambda: set(self.cluster.out("sinfo", "-h", "-o", "%T").split()) == {"idle"})
        for name in self.trouble.layout.node_names:
            if reason := self.cluster.node(name)["reason"]:
                self.complain(f"{name} is idle and has the reason {reason}")

        def left():
            return {pid: name for pid, name in processes_of(self.cluster.dir).items() if name not in DAEMONS and name != "python3"}
        self.hold("no process of a job is left", lambda: not left(), timeout=60)
        if found := left():
            self.complain(f"processes are left: {found}")
        counts = collections.Counter(name for name in processes_of(self.cluster.dir).values() if name in DAEMONS)
        nodes = len(self.trouble.layout.node_names)
        for name, most in (("slurmd", nodes), ("banyan-faultd", nodes + 1), ("exe", nodes), ("banyan-ckptd", nodes), ("banyan-ckpt-kee", nodes)):
            if counts[name] > most:
                self.complain(f"{counts[name]} {name} on {nodes} nodes")
        registry = process.Registry(self.trouble.layout)
        for part in registry.all():
            if not registry.alive(part):
                self.complain(f"{part} has ended")
        # A detached one waits out its lease.
        self.hold("no node keeps the session of an ended job", lambda: not self.sessions(), timeout=60)
        for node, jobs in self.sessions().items():
            self.complain(f"{node} keeps what job {', '.join(jobs)} had")
        for node in self.trouble.layout.node_names:
            if found := list((self.cluster.dir / "spool" / node).glob("job*")):
                self.complain(f"slurmd of {node} left {found}")
        if found := [str(path) for path in (self.cluster.dir / "run").glob("*.no-job-*")]:
            self.complain(f"files are left: {found}")

    def sessions(self):
        """{node: jobs} of the sessions that nobody has ended."""
        found = {}
        for node in self.trouble.layout.node_names:
            socket = self.cluster.dir / "run" / f"ckptd-{node}.sock"
            answer = self.cluster.run("banyan-ckpt", "--socket", socket, "status", "--json", check=False)
            all_of = json.loads(answer.stdout)["sessions"] if answer.returncode == 0 else []
            if jobs := [str(s["job"]) for s in all_of if s["state"] != "detached"]:
                found[node] = jobs
        return found

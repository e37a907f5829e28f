#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Four jobs train on one live cluster of 16 nodes while random faults, seeded, meet nodes, ranks, cables and daemons, and what broke comes
back from repair. At the end every job trains on with the same loss, bit for bit, nothing is left over, and Slurm's books and ours agree.

    chaos.py [--minutes N] [--seed N] [--json FILE] [--keep DIR]

A line for each fault; the exit status says whether all was as it should be. Needs root, Slurm and munge.
"""
import argparse
import collections
import contextlib
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "bench")]

from recovery_lab import Lab, now_ms  # noqa: E402
from banyan_cluster import fabric  # noqa: E402
from aftermath import Aftermath  # noqa: E402
from moves import leaves  # noqa: E402
from scenarios import XID_13, XID_31, XID_43, XID_45, XID_79, XID_95  # noqa: E402

SHAPE, NODES, SPARES = "tp=2,dp=3", 3, (0, 1, 0, 1)
STEP_MS = 400
STEADY = ("--learning-rate", "0.005")  # over thousands of steps: a loss that is no number any more equals any other
BROKEN_AT_ONCE = 2      # nodes: with more there is no room for all jobs
HCA = "mlx5_core 0000:3b:00.0: poll_health:855:(pid 0): device's health compromised - reached miss count"
SXID = "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"


@dataclass
class Hit:
    """A fault, and whom it met."""
    at_ms: float
    what: str
    nodes: set = field(default_factory=set)
    jobs: set = field(default_factory=set)


class Chaos(Aftermath):
    def __init__(self, lab, options):
        super().__init__(lab, NODES)
        self.dice = random.Random(options.seed)

    def start(self, steps):
        self.lab.undisturbed(steps, nodes=NODES, shape=SHAPE, trainer=STEADY)
        if len(set(self.lab.reference.values())) < steps / 2:
            raise AssertionError("the loss of the run without faults says nothing: many steps have the same")
        self.jobs = [self.lab.submit(spares, step_ms=STEP_MS, nodes=NODES, shape=SHAPE, trainer=STEADY) for spares in SPARES]
        for job in self.jobs:
            self.cluster.wait_for(lambda job=job: max(self.lab.log(job).steps, default=0) >= 5, f"job {job} trains", timeout=120)

    # -- faults ------------------------------------------------------------------------------------------------------------

    def holders(self):
        """{node: job} of the nodes with ranks."""
        return {node: job for job in self.jobs for _, node in self.lab.ranks(job).values()}

    def a_node(self):
        return self.dice.choice([node for node in self.trouble.layout.node_names if node not in self.broken])

    def breaks(self, what, line=None):
        if len(self.broken) >= BROKEN_AT_ONCE:
            return None
        node = self.a_node()
        hit = Hit(now_ms(), f"{what} on {node}", {node}, {job for job in (self.holders().get(node),) if job})
        self.broken[node] = time.monotonic() + self.dice.uniform(8, 30)
        if line:
            self.lab.kmsg(node, line)
        else:
            self.trouble.power_off(node)
        return hit

    def gpu(self):
        return self.breaks("xid 79", XID_79)

    def reset(self):
        return self.breaks("xid 95", XID_95)

    def hca(self):
        return self.breaks("hca firmware", HCA)

    def dies(self):
        return self.breaks("no power")

    def words(self):
        nodes = self.dice.sample(self.trouble.layout.node_names, 5)
        for node in nodes:
            for line in (XID_31, XID_13, XID_45, XID_43, SXID) * 10:
                self.lab.kmsg(node, line)
        return Hit(now_ms(), f"application xids and an sxid on {','.join(nodes)}")

    def rank(self):
        job = self.dice.choice(self.jobs)
        ranks = self.lab.ranks(job)
        if not ranks:
            return None
        pid, node = ranks[self.dice.choice(sorted(ranks))]
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return Hit(now_ms(), f"a rank of job {job} on {node} is killed", set(), {job})

    def ckptd(self):
        node = self.a_node()
        daemons = self.trouble.checkpoint_daemons(node)
        for pid in daemons:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return Hit(now_ms(), f"ckptd of {node} is killed") if daemons else None

    def agent(self):
        node = self.a_node()
        self.trouble.end(f"faultd-{node}")
        time.sleep(self.dice.uniform(0, 2))
        self.trouble.start_agent(node)
        return Hit(now_ms(), f"the agent of {node} is killed")

    def away(self, part, start):
        number = self.dice.choice([signal.SIGTERM, signal.SIGKILL])
        self.trouble.end(part, number)
        time.sleep(self.dice.uniform(0.2, 3))
        start()
        return Hit(now_ms(), f"{part} restarts ({signal.Signals(number).name})")

    def faultd(self):
        # Agents of broken nodes do not come back by themselves.
        return self.away("faultd-controller", lambda: self.trouble.start_faultd(heard=()))

    def slurmctld(self):
        self.lab.saved()  # what it had not saved is lost, whatever plugin it has
        return self.away("slurmctld", self.lab.start_slurmctld)

    def cable(self):
        layout = self.trouble.layout
        leaf, port = self.dice.choice([(leaf, port) for leaf, ports in leaves(layout).items() for port, up in ports if up])
        fabric.link(layout, "down", leaf, port)
        time.sleep(self.dice.uniform(0, 2))
        fabric.link(layout, "up", leaf, port)
        return Hit(now_ms(), f"a cable at {leaf} port {port}")

    KINDS = {gpu: 4, reset: 4, hca: 2, dies: 4, words: 2, rank: 4, ckptd: 3, agent: 2, faultd: 2, slurmctld: 2, cable: 2}

    def storm(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for _ in range(self.dice.choice([1, 1, 1, 2])):
                hit = self.dice.choices(list(self.KINDS), list(self.KINDS.values()))[0](self)
                if hit:
                    self.hits.append(hit)
                    print(f"{time.strftime('%H:%M:%S')} {hit.what}" + (f" (job {min(hit.jobs)})" if hit.jobs else ""), flush=True)
            self.repair(lambda at: at < time.monotonic())
            time.sleep(min(20, 1 + self.dice.expovariate(1 / 6)))

    def run(self, minutes):
        self.start(int(minutes * 60_000 / STEP_MS) + 1200)
        self.storm(minutes * 60)
        print(f"{time.strftime('%H:%M:%S')} {len(self.hits)} faults; no more, and all is repaired", flush=True)
        self.all_repaired()
        self.all_train()
        # An incident follows its job until a newer step is complete.
        self.hold("every recovery is over", lambda: all(i["state"] == "done" and not i.get("followed") for i in self.trouble.incidents()), 120)
        self.books()
        self.what_was_lost()
        self.nothing_is_left()


def main():
    parser = argparse.ArgumentParser(description="Random faults and repairs under four jobs that train.")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=20261124)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--keep", metavar="DIR", default=os.environ.get("BANYAN_KEEP"), help="where the logs are kept when something is wrong")
    options = parser.parse_args()
    keep = options.keep or tempfile.mkdtemp(prefix="chaos-")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the cluster ends with us
    lab = Lab(16)
    chaos = Chaos(lab, options)
    try:
        try:
            chaos.run(options.minutes)
        except Exception as error:
            chaos.complain(f"{type(error).__name__}: {error}"[:4000])
        if chaos.wrong:
            shutil.copytree(lab.cluster.dir / "log", Path(keep) / "log", dirs_exist_ok=True)
            for job in chaos.jobs:
                (Path(keep) / f"slurm-{job}.out").write_text(lab.cluster.output(job))
            told = [lab.cluster.run(*words, check=False).stdout for words in
                    (("banyan-fault", "incidents", "--json"), ("scontrol", "show", "nodes"), ("scontrol", "show", "jobs"))]
            (Path(keep) / "what-was-seen").write_text("\n\n".join(told))
            print(f"logs: {keep}")
    finally:
        lab.remove()
    kinds = collections.Counter(re.sub(r"\b(n\d+|job \d+|S-\w+|port \d+)\b|[,()]", "", hit.what).strip() for hit in chaos.hits)
    if options.json:
        Path(options.json).write_text(json.dumps({"minutes": options.minutes, "seed": options.seed, "faults": kinds, "wrong": chaos.wrong},
                                                 indent=1) + "\n")
    print(f"{len(chaos.hits)} faults in {options.minutes:g} minutes (seed {options.seed}): "
          + (f"{len(chaos.wrong)} things are wrong" if chaos.wrong else "all is as it should be"))
    return 1 if chaos.wrong else 0


if __name__ == "__main__":
    sys.exit(main())

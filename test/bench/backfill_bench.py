#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What banyan adds to a cycle of Slurm's backfill scheduler: a slurmctld with 12,800 nodes and 500 pending training jobs, once with
select/cons_tres_banyan and the fabric snapshot, once with plain select/cons_tres, both with the same topology/tree, cluster and queue.

    backfill_bench.py [--json FILE] [--nodes N] [--jobs N] [--cycles N]

No slurmd runs: the nodes are CLOUD nodes, filled but for scattered ones by jobs that end at different times, so that no pending job can
start and every cycle plans all of them into the future. Nothing but root, munge and slurmctld is needed; where they are missing, the
bench has no figures.
"""
import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BANYAN_BUILD", REPOSITORY / "build" / "dev"))
sys.path.insert(0, str(REPOSITORY / "scripts" / "lib"))

from banyan_cluster import files, installed, layout as layouts, namespace, parts, process  # noqa: E402

GOAL = 1.2
GROUP = 32
BLOCK = 320      # nodes of a running job and of the free ones among them
FREE = 2         # of each block
SIZES = (128, 160, 192, 256, 320, 512, 640, 1024)
DEADLINE_S = 600


class Controller:
    """A slurmctld of its own with the fabric of `dump`."""

    def __init__(self, select, nodes, dump):
        ours = select == "cons_tres_banyan"
        self.layout = layouts.Layout(tempfile.mkdtemp(prefix="banyan-"), {
            "nodes": 1, "gpus": 8, "group_size": GROUP, "tree": str(installed.of(BUILD).root), "select": select, "spank": ours, "submit": ours})
        layouts.prepare(self.layout)
        self.layout.options["port"], self.reservation = layouts.choose_port(self.layout)
        self.layout.save()
        self.select, self.ours, self.nodes = select, ours, nodes
        etc = self.layout.path("etc")
        (etc / "topology.conf").write_text(topo("slurm", dump, "--plugin", "tree"))
        topo("snapshot", dump, "-o", self.layout.path("fabric.snapshot"))
        (etc / "banyan.conf").write_text(f'[munge]\nsocket = "{self.layout.path("run")}/munge.socket"\n'
                                         f'[topo]\nsnapshot = "{self.layout.path("fabric.snapshot")}"\n')
        (etc / "plugstack.conf").write_text(files.plugstack_conf(self.layout))
        (etc / "slurm.conf").write_text(self.slurm_conf())
        self.env = parts.tool_environment(self.layout)
        parts.start_base(self.layout)
        parts.start_slurmctld(self.layout)

    def slurm_conf(self):
        return "\n".join([
            *files.controller_conf(self.layout, topology="tree"), *files.cloud_conf(),
            "SelectTypeParameters=CR_Core", "MessageTimeout=100", "SchedulerType=sched/backfill",
            # Backfill alone, and all of the queue in each cycle.
            "SchedulerParameters=sched_interval=-1,defer,batch_sched_delay=86400,bf_interval=1,bf_resolution=60,bf_window=14400,"
            f"bf_max_job_test=10000,bf_max_time={DEADLINE_S},bf_yield_interval=10000000,bf_yield_sleep=1,bf_continue",
            f"NodeName=n[00001-{self.nodes:05d}] CPUs=16 RealMemory=1000 State=CLOUD",
            "PartitionName=train Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=EXCLUSIVE"]) + "\n"

    def run(self, *words):
        done = namespace.run(self.layout, words, self.layout.path("tmp"), capture_output=True, text=True, timeout=DEADLINE_S,
                             env=self.env, stdin=subprocess.DEVNULL, check=False)
        if done.returncode:
            raise SystemExit(f"backfill_bench: {' '.join(map(str, words))[:200]} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout.strip()

    def submit(self, *options):
        self.run("sbatch", "--parsable", *options, "--wrap=true")

    def partition(self, state):
        self.run("scontrol", "update", "PartitionName=train", f"State={state}")

    def nudge(self):
        """Backfill sleeps while nothing changes."""
        self.run("scontrol", "update", "NodeName=n00001", f"Comment={time.monotonic()}")

    def cycle(self):
        """(number, seconds, jobs tried) of the latest cycle."""
        text = self.run("sdiag").partition("Backfilling stats")[2]

        def field(name):
            found = re.search(rf"{name}:\s*(\d+)", text)
            return int(found.group(1)) if found else 0
        return field("Total cycles"), field("Last cycle") / 1e6, field(r"Last depth cycle \(try sched\)")

    def wait(self, condition, what):
        end = time.monotonic() + DEADLINE_S
        while not condition():
            if time.monotonic() > end:
                raise SystemExit(f"backfill_bench: {what}: not within {DEADLINE_S} s\n{self.log()[-2000:]}")
            self.nudge()
            time.sleep(0.3)

    def log(self):
        return self.layout.path("log", "slurmctld.log").read_text(errors="replace")

    def remove(self):
        process.end_parts(self.layout, ("slurmctld",), grace=10)
        process.end_all(self.layout)
        for one in self.reservation:
            one.close()
        shutil.rmtree(self.layout.dir)


def topo(*words):
    done = subprocess.run([str(word) for word in (installed.program(BUILD, "banyan-topo"), *words)], capture_output=True, text=True, timeout=120,
                          check=False)
    if done.returncode:
        raise SystemExit(f"backfill_bench: banyan-topo {words[0]} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def fill(controller, options):
    """Jobs that run until different times on all nodes but a few, and the queue behind them."""
    dice = random.Random(20261121)
    blocks = options.nodes // BLOCK
    for block in range(blocks):
        first = block * BLOCK + 1
        spared = set(dice.sample(range(first, first + BLOCK), FREE))
        names = ",".join(f"n{node:05d}" for node in range(first, first + BLOCK) if node not in spared)
        controller.submit(f"-N{BLOCK - FREE}", f"--time={60 + 15 * block}", "-w", names)
    controller.wait(lambda: len(controller.run("squeue", "-h", "-t", "CF,R", "-o", "%i").split()) == blocks, "the cluster is full")
    # Not while jobs come in: each cycle would keep the next ones waiting.
    controller.partition("DOWN")
    for _ in range(options.jobs):
        nodes, hours = dice.choice([size for size in SIZES if blocks * FREE < size <= options.nodes]), dice.randint(1, 4)
        words = [f"-N{nodes}", "--ntasks-per-node=8", f"--time={60 * hours}"]
        controller.submit(*words, *([f"--train-parallel=tp=8,pp=4,dp={nodes // 4}"] if controller.ours else []))


def one_cycle(controller, options):
    """The length in seconds of a cycle that tries the queue."""
    seen = controller.cycle()[0]
    controller.partition("UP")
    while True:
        controller.wait(lambda: controller.cycle()[0] > seen, "a cycle ends")
        seen, length, tried = controller.cycle()
        if tried >= 0.9 * options.jobs:  # a job as large as the cluster may not fit into the time that backfill plans
            break
    controller.partition("DOWN")
    waiting = controller.run("squeue", "-h", "-t", "PD", "-o", "%i").split()
    if len(waiting) != options.jobs:
        raise SystemExit(f"backfill_bench: {options.jobs - len(waiting)} jobs have started, the cycles are not comparable")
    return length


def measure(options):
    """{select: lengths of cycles}, in turns, so that what else the machine does meets both."""
    controllers, lengths = [], {}
    with tempfile.TemporaryDirectory(prefix="banyan-") as folder:
        dump = Path(folder) / "dump"
        topo("gen", "--nodes", options.nodes, "--group-size", GROUP, "--host-digits", 5, "--spines", 32, "--links", 1, "-o", dump)
        try:
            for select in ("cons_tres", "cons_tres_banyan"):
                controllers.append(Controller(select, options.nodes, dump))
                fill(controllers[-1], options)
            for _ in range(options.cycles):
                for controller in controllers:
                    lengths.setdefault(controller.select, []).append(one_cycle(controller, options))
                    print(f"select/{controller.select}: {lengths[controller.select][-1]:.2f} s", file=sys.stderr, flush=True)
            log = controllers[-1].log()
            if "banyan: fabric snapshot" not in log:
                raise SystemExit(f"backfill_bench: the snapshot was not read\n{log[-2000:]}")
        finally:
            for controller in controllers:
                controller.remove()
    return lengths


def main():
    parser = argparse.ArgumentParser(description="What banyan adds to a cycle of Slurm's backfill scheduler.")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--nodes", type=int, default=12800)
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--cycles", type=int, default=3)
    options = parser.parse_args()
    figures = []
    missing = [tool for tool in ("slurmctld", "munged") if not shutil.which(tool, path="/usr/sbin:/usr/bin:/sbin:/bin")]
    if missing or os.geteuid() != 0 or not (BUILD / "lib" / "select_cons_tres_banyan.so").exists():
        print("backfill_bench: left out, since it needs root, slurmctld, munged and the plugins", file=sys.stderr)
    else:
        # The shortest: what else this machine does can only make a cycle longer.
        lengths = {select: min(all) for select, all in measure(options).items()}
        what = f"{options.nodes} nodes, {options.jobs} pending training jobs"
        ratio = lengths["cons_tres_banyan"] / lengths["cons_tres"]
        figures = [
            {"figure": f"backfill cycle, select/cons_tres, {what}", "value": lengths["cons_tres"], "unit": "s", "against": None,
             "goal": None, "holds": None},
            {"figure": f"backfill cycle, select/cons_tres_banyan, {what}", "value": lengths["cons_tres_banyan"], "unit": "s",
             "against": f"{lengths['cons_tres']:.3g} s", "goal": None, "holds": None},
            {"figure": "backfill cycle, with banyan over without", "value": ratio, "unit": "", "against": "1", "goal": f"<= {GOAL}",
             "holds": ratio <= GOAL}]
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1) + "\n")
    else:
        for figure in figures:
            print(f"{figure['figure']}: {figure['value']:.3f} {figure['unit']}")
    return 1 if any(figure["holds"] is False for figure in figures) else 0


sys.exit(main())

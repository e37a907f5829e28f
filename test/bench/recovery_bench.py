#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""How long a training job stands still after a fault, and what it loses: seeded faults of every kind, one after the other on one live
cluster of 16 nodes (a real Slurm, real daemons), each met by a job of 8 nodes and its spares. Nodes go back into service after each.

    recovery_bench.py [--json FILE] [--faults N | --rounds N] [--seed N] [--kinds NAME,...] [--nodes N] [--list]

From the fault (the line in the kernel's log, the kill, the command) to the first step of the run after it. Times are those of this
machine at this moment: compare runs of one machine. Needs root, Slurm and munge; where they are missing, the bench has no figures.
"""
import argparse
import json
import os
import random
import shutil
import signal
import statistics
import sys
import time
from pathlib import Path

from recovery_faults import KINDS, RUNGS
from recovery_lab import Lab, Outcome

BUILD = Path(os.environ.get("BANYAN_BUILD", Path(__file__).resolve().parents[2] / "build" / "dev"))
NOTICED_S = 5  # of a node that dies without a word
SLOWEST = float("inf")


def one(lab, name, dice):
    """One fault of that kind, and what came of it."""
    kind, undo = KINDS[name], None
    training = lab.start(kind.spares, dice.randint(10, 25))
    try:
        undo = kind.inject(lab, training, dice)
        return lab.follow(training, name)
    finally:
        if undo:
            undo()
        lab.cluster.run("scancel", training.job, check=False)
        if kind.rung == "hung":  # slurmds of two jobs that do not answer within minutes are held to be the network
            lab.trouble.end("faultd-controller")
        lab.in_order()


def measure(options):
    dice, outcomes = random.Random(options.seed), []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the cluster ends with us
    lab = Lab(options.nodes)
    try:
        lab.undisturbed()
        for number, names in enumerate(plan(options, dice)):
            for name in names:
                began = time.monotonic()
                try:
                    outcome = one(lab, name, dice)
                except AssertionError as error:  # the cluster is not what it was: what follows would say nothing
                    outcomes.append(Outcome(name, said=str(error)[:2000]))
                    print(f"{name}: {error}", file=sys.stderr, flush=True)
                    if os.environ.get("BANYAN_KEEP"):
                        shutil.copytree(lab.cluster.dir / "log", Path(os.environ["BANYAN_KEEP"]) / f"{name}-{number}", dirs_exist_ok=True)
                    lab.remove()
                    lab.__init__(options.nodes)
                    lab.undisturbed()
                    continue
                outcomes.append(outcome)
                took = f"{outcome.first_step_s:6.2f} s" if outcome.first_step_s is not None else "  NEVER "
                print(f"{number + 1:3d} {name:12s} {took}  lost {outcome.steps_lost}  loss {'equal' if outcome.same else 'DIFFERS'}  "
                      f"requeued {outcome.restarts}  drained {outcome.drains}  "
                      f"noticed {'-' if outcome.noticed_s is None else f'{outcome.noticed_s:.2f} s'}  [{outcome.sources}]  "
                      f"({time.monotonic() - began:.0f} s)\n      {outcome.said}", file=sys.stderr, flush=True)
                if os.environ.get("BANYAN_KEEP"):
                    shutil.copytree(lab.cluster.dir / "log", Path(os.environ["BANYAN_KEEP"]) / f"{name}-{number}", dirs_exist_ok=True)
    finally:
        lab.remove()
    return outcomes


def plan(options, dice):
    """Rounds of all kinds; or so many faults, each round in an order of its own."""
    if not options.faults:
        return [options.kinds] * options.rounds
    names = []
    while len(names) < options.faults:
        names += dice.sample(options.kinds, len(options.kinds))
    names = names[:options.faults]
    return [names[at:at + len(options.kinds)] for at in range(0, len(names), len(options.kinds))]


def percentile(values, share):
    """The smallest value that so large a share of all does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 100) * len(ordered) // 100) - 1)]


def finite(value):
    return None if value == SLOWEST else round(value, 3)


def figure(what, value, unit, limit=None):
    holds = None if limit is None else value is not None and value <= limit
    return {"figure": what, "value": value, "unit": unit, "against": None, "goal": None if limit is None else f"<= {limit}", "holds": holds}


def figures_of(name, outcomes):
    kind, head = KINDS[name], f"recovery, {name} ({KINDS[name].what}), {len(outcomes)} faults"
    times = [SLOWEST if o.first_step_s is None else o.first_step_s for o in outcomes]
    found = [figure(f"{head}: to the first new step, p50", finite(statistics.median_low(times)), "s"),
             figure(f"{head}: to the first new step, p95", finite(percentile(times, 0.95)), "s", kind.goal_s),
             figure(f"{head}: steps lost, most", max(o.steps_lost for o in outcomes), "steps", kind.faults),
             figure(f"{head}: losses that differ", sum(not o.same for o in outcomes), "", 0),
             figure(f"{head}: nodes drained beyond the broken", sum(o.drains for o in outcomes), "", 0)]
    if name == "silent":
        noticed = [SLOWEST if o.noticed_s is None else o.noticed_s for o in outcomes]
        found.append(figure(f"{head}: noticed, p95", finite(percentile(noticed, 0.95)), "s", NOTICED_S))
    return found


def rung_figures(rung, outcomes):
    """Over all kinds that take this rung of the ladder."""
    head, times = f"recovery, {rung}, {len(outcomes)} faults", [SLOWEST if o.first_step_s is None else o.first_step_s for o in outcomes]
    return [figure(f"{head}: to the first new step, p50", finite(statistics.median_low(times)), "s"),
            figure(f"{head}: to the first new step, p95", finite(percentile(times, 0.95)), "s", RUNGS[rung]),
            figure(f"{head}: to the first new step, worst", finite(max(times)), "s")]


def main():
    parser = argparse.ArgumentParser(description="How long a training job stands still after a fault, and what it loses.")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--rounds", type=int, default=1, help="faults of each kind (default 1)")
    parser.add_argument("--faults", type=int, metavar="N", help="so many in all, the kinds in turn (in place of --rounds)")
    parser.add_argument("--seed", type=int, default=20261123)
    parser.add_argument("--kinds", default=",".join(KINDS), type=lambda text: text.split(","), help="names, comma-separated (default: all)")
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--list", action="store_true", help="print the kinds and end")
    options = parser.parse_args()
    if options.list:
        print("\n".join(f"{name:12s} {kind.rung}: {kind.what}" for name, kind in KINDS.items()))
        return 0
    unknown = [name for name in options.kinds if name not in KINDS]
    if unknown:
        parser.error(f"no kind {', '.join(unknown)}; --list names them")
    figures = []
    missing = [tool for tool in ("slurmctld", "slurmd", "munged") if not shutil.which(tool, path="/usr/sbin:/usr/bin:/sbin:/bin")]
    if missing or os.geteuid() != 0 or not (BUILD / "lib" / "select_cons_tres_banyan.so").exists():
        print("recovery_bench: left out, since it needs root, Slurm, munge and the plugins", file=sys.stderr)
    else:
        outcomes = measure(options)
        for rung in RUNGS:
            if of_rung := [o for o in outcomes if KINDS[o.kind].rung == rung]:
                figures += rung_figures(rung, of_rung)
        for name in options.kinds:
            if of_kind := [o for o in outcomes if o.kind == name]:
                figures += figures_of(name, of_kind)
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1) + "\n")
    else:
        for f in figures:
            verdict = {True: "", False: "  MISSES " + str(f["goal"]), None: ""}[f["holds"]]
            print(f"{f['figure']}: {'never' if f['value'] is None else f['value']} {f['unit']}{verdict}")
    return 1 if any(f["holds"] is False for f in figures) else 0


if __name__ == "__main__":
    sys.exit(main())

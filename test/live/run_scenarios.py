#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the scenarios of scenarios.py, one after the other, on one live cluster of 16 nodes: the right culprit, the right action, and the
job trains again with the same loss, bit for bit, or is stopped for its own bug.

    run_scenarios.py [--json FILE] [--names TEXT,...] [--skip N] [--quick] [--list] [--keep DIR]

A row of result each; the exit status says whether all are as they should be. The logs of one that is not are kept (--keep, or
$BANYAN_KEEP). Where the cluster itself fails, a new one follows. Needs root, Slurm and munge.
"""
import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "bench")]

from recovery_lab import NODES, Lab  # noqa: E402
from moves import cast  # noqa: E402
from one_scenario import Run  # noqa: E402
from scenarios import BUG_AT, SCENARIOS  # noqa: E402

REFERENCE = 3000  # training steps of the run that nothing happens to
STEP_MS = 100


class Program:
    def __init__(self, options):
        self.options, self.rows = options, []
        self.lab, self.shared = None, None

    def begin(self):
        self.lab, self.shared = Lab(16), None
        # Reachable for jobs of any user, as the examples are.
        self.bug = self.lab.cluster.dir / "tmp" / "trainer-with-a-bug"
        self.bug.write_text('#!/bin/sh\n/usr/libexec/banyan/banyan-trainer "$@"\nexit 3\n')
        self.bug.chmod(0o755)
        self.lab.undisturbed(REFERENCE)

    def stage_for(self, scenario):
        """A job that trains: that of the scenario before, where nothing happened to it."""
        shared = self.shared
        if shared and scenario.outcome == "untouched" and len(shared.job.spares) == scenario.spares \
                and max(self.lab.log(shared.job.job).steps) < REFERENCE / 2:
            return shared
        self.drop()
        more = {"step_ms": STEP_MS}
        if scenario.bug:
            more |= {"steps": BUG_AT, "options": [f"--export=ALL,BANYAN_TRAINER={self.bug}"]}
        return cast(self.lab, self.lab.start(scenario.spares, 10, **more))

    def drop(self):
        """The job ends, and all is in order again."""
        if self.shared:
            self.lab.cluster.run("scancel", self.shared.job.job, check=False)
            self.lab.cluster.wait_for(lambda: not self.lab.cluster.out("squeue", "-h", "-o", "%i"), "the queue is empty")
        self.shared = None
        self.lab.in_order()

    def one(self, scenario):
        began, run, stage = time.monotonic(), None, None
        try:
            stage = self.stage_for(scenario)
            self.shared = None
            run = Run(self.lab, scenario, stage)
            try:
                run.play()
                wrong = run.judge()
            finally:
                for undo in reversed(run.undo):
                    undo()
            self.shared = stage
            if wrong:
                self.keep(scenario, run, wrong)
            if scenario.outcome != "untouched" or scenario.culprits or wrong:
                self.settle(scenario, wrong)
        except Exception as error:  # the cluster is not what it was: what follows would say nothing
            wrong = [f"{type(error).__name__}: {error}"[:3000]]
            self.keep(scenario, run, wrong)
            self.lab.remove()
            self.begin()
        row = {"scenario": scenario.name, "spares": scenario.spares, "right": not wrong, "wrong": wrong,
               "blamed": run.seen if run else [], "outcome": getattr(run, "way_seen", None), "lost": getattr(run, "lost", None),
               "loss_equal": getattr(run, "same", None), "first_step_s": getattr(run, "first_step_s", None),
               "took_s": round(time.monotonic() - began, 1)}
        self.rows.append(row)
        print(f"{len(self.rows):3d} {'right' if row['right'] else 'WRONG'} {scenario.name} (spares: {scenario.spares}): {row['outcome']}, "
              f"lost {row['lost']}, loss {'equal' if row['loss_equal'] else 'DIFFERS'}, first step {row['first_step_s']} s; "
              f"{'; '.join(row['blamed']) or 'nobody is blamed'} ({row['took_s']} s)"
              + "".join(f"\n      {line}" for line in wrong), flush=True)

    def settle(self, scenario, wrong):
        """Incidents are closed and nodes are back; the job may go on where nothing happened to it."""
        if scenario.outcome == "untouched" and not wrong and not self.lab.out_of_service():
            for incident in self.lab.trouble.incidents():
                if not incident["times"]["closed_ms"]:
                    self.lab.cluster.run("banyan-fault", "close", incident["id"], check=False)
            return
        self.drop()

    def keep(self, scenario, run, wrong):
        folder = Path(self.options.keep) / scenario.name.replace(" ", "-").replace(":", "").replace(",", "")
        shutil.copytree(self.lab.cluster.dir / "log", folder, dirs_exist_ok=True)
        told = ["\n".join(wrong)]
        for words in (("banyan-fault", "incidents", "--json"), ("scontrol", "show", "nodes"), ("squeue",)):
            told.append(self.lab.cluster.run(*words, check=False).stdout)
        if run:
            told += [json.dumps(run.stage.roles), self.lab.cluster.output(run.job.job)]
        (folder / "what-was-seen").write_text("\n\n".join(told))
        print(f"      logs: {folder}", flush=True)

    def run(self, scenarios):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the cluster ends with us
        try:
            self.begin()
            for scenario in scenarios:
                self.one(scenario)
        finally:
            if self.lab:
                self.lab.remove()
            if self.options.json:
                Path(self.options.json).write_text(json.dumps(self.rows, indent=1) + "\n")
        wrong = [row["scenario"] for row in self.rows if not row["right"]]
        print(f"{len(self.rows) - len(wrong)} of {len(self.rows)} scenarios are right" + (f"; wrong: {', '.join(wrong)}" if wrong else ""))
        return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description="Scripted faults on a live cluster: culprit, action and what becomes of the job.")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--names", metavar="TEXT,...", help="those whose name has one of the texts in it")
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="leave out the first N, to go on where a run was cut")
    parser.add_argument("--quick", action="store_true", help="the few that are of every kind")
    parser.add_argument("--list", action="store_true", help="print the table and end")
    parser.add_argument("--keep", metavar="DIR", default=os.environ.get("BANYAN_KEEP"), help="where logs of what went wrong are kept")
    options = parser.parse_args()
    options.keep = options.keep or tempfile.mkdtemp(prefix="scenarios-")
    chosen = [s for s in SCENARIOS if not options.quick or s.quick]
    if options.names:
        chosen = [s for s in chosen if any(text in s.name for text in options.names.split(","))]
    chosen = chosen[options.skip:]
    if options.list:
        for s in chosen:
            print(f"{s.name} ({NODES + s.spares} nodes, {s.spares} of them spare): {s.outcome}; "
                  + ("; ".join(" ".join(culprit) for culprit in s.culprits) or "nobody is blamed"))
        print(f"{len(chosen)} scenarios")
        return 0
    if not chosen:
        parser.error("no scenario has that in its name; --list names them")
    return Program(options).run(chosen)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""scripts/demo after set-up and build: brings the cluster up, plays the acts, prints the timeline, ends everything."""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(REPOSITORY / "scripts/lib"))

from banyan_cluster import layout  # noqa: E402
from banyan_demo import acts, pytorch  # noqa: E402
from banyan_demo.measure import BUSY_PERCENT, Memory, busy_percent, measure  # noqa: E402
from banyan_demo.story import SHAPE, DemoError, Story  # noqa: E402


WHAT = f"""One training job ({SHAPE}, a spare node) on a real Slurm cluster and a real subnet manager, all on this host:
  discover  the fabric is read through the subnet manager
  place     the job's ranks on it, drawn
  save      all 16 ranks are killed: each restores from its node's memory
  watch     a leaf-spine cable and a host's cable are pulled: incidents, and the job is left alone
  heal      a GPU falls off the bus: the node goes, the spare takes its place, nothing is read from storage
  compare   an undisturbed run of as many steps: the losses have the same bits"""

STEPS, STEP_MS = 160, 50


def positive(text):
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def parse(arguments):
    parser = argparse.ArgumentParser(prog="scripts/demo", description=WHAT, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="Exit status: 0 every figure holds, 1 one missed its goal, 2 the demo could not be played.")
    parser.add_argument("--pytorch", action="store_true",
                        help="a small GPT in PyTorch instead (examples/gpt): a rank is killed, a node is lost; the loss curve as a "
                             "picture, and the seconds from a fault to the next step by phase")
    parser.add_argument("--json", metavar="FILE",
                        help="write the figures, too, to FILE: a list of {figure, value, unit, against, goal, holds}; holds is null where "
                             "there is no goal, or a time missed it on a busy host")
    parser.add_argument("--dir", type=os.path.abspath, default=str(layout.default_directory("demo-cluster")),
                        help="the cluster's directory (default: %(default)s)")
    parser.add_argument("--steps", type=positive,
                        help=f"training steps (default {STEPS}, with --pytorch {pytorch.STEPS}); without --pytorch the job trains on until "
                             "the last act is over")
    parser.add_argument("--step-ms", type=positive, help=f"time of a training step in ms, without --pytorch (default {STEP_MS})")
    parser.add_argument("--keep", action="store_true", help="leave the cluster running, to look around in it")
    options = parser.parse_args(arguments)
    if options.pytorch and options.step_ms:
        parser.error("--step-ms: with --pytorch a step takes as long as it takes; leave it out")
    options.steps = options.steps or (pytorch.STEPS if options.pytorch else STEPS)
    if options.pytorch and options.steps < pytorch.FEWEST:
        parser.error(f"--steps: {options.steps} are over before the last fault; --pytorch takes {pytorch.FEWEST} or more")
    options.step_ms = options.step_ms or STEP_MS
    if options.json:
        try:  # before the work, not after it
            open(options.json, "a", encoding="utf-8").close()
        except OSError as error:
            parser.error(f"--json: {error}; name a file that can be written")
    return options


def cluster(*words):
    subprocess.run([REPOSITORY / "scripts/cluster", *map(str, words)], check=True)


def print_timeline(story, origin):
    acts.heading("Timeline (ms after the job's first training step)")
    last = None
    for at, text in sorted(story.events):
        gap = "" if last is None else f"+{at - last:.0f}"
        print(f"  {at - origin:9.0f}  {gap:>7}  {text}")
        last = at


def play(options):
    print(pytorch.WHAT if options.pytorch else WHAT, flush=True)
    taken = busy_percent()
    busy = taken > BUSY_PERCENT
    if busy:
        print(f"Other work takes {taken:.0f} % of this host: times that miss their goals are not held against banyan.", flush=True)
    figures = pytorch.play(options, cluster, print_timeline, busy) if options.pytorch else play_trainer(options, busy)
    print(figures.table())
    if options.json:
        figures.write(options.json)
    return 0 if figures.hold() else 1


def play_trainer(options, busy):
    """Returns the figures."""
    start = time.monotonic()
    memory = Memory(options.dir)
    memory.start()
    cluster("up", "--dir", options.dir, "--nodes", 16)
    story = Story(options.dir, REPOSITORY, options.steps, options.step_ms)
    acts.discover(story)
    job, log = acts.place(story)
    acts.process_fault(story, job, log)
    link_ms, host_ms = acts.fabric_faults(story, job, log)
    line_ms, incident, resumed = acts.gpu_fault(story, job, log)
    done = acts.end(story, job, log)
    reference = acts.compare(story, done)
    print_timeline(story, done.step_times[0][1])
    acts.heading("Figures")
    figures = measure(done, reference,
                      {"incident": incident, "line_ms": line_ms, "resumed": resumed, "link_ms": link_ms, "host_ms": host_ms}, busy)
    memory.over.set()
    figures.at_most("memory of all processes together, peak", memory.peak_kib // 1024, "MiB", 4096)
    figures.below("demo after set-up", time.monotonic() - start, "s", 180)
    return figures


def main():
    options = parse(None)
    try:
        return play(options)
    except (DemoError, subprocess.SubprocessError) as error:
        logs = f"; logs are in {options.dir}" if os.path.isdir(options.dir) else ""
        print(f"scripts/demo: {error}{logs}", file=sys.stderr)
        for log in sorted(Path(options.dir, "demo").glob("*.log")):
            said = [line for line in log.read_text(errors="replace").splitlines() if line.startswith("banyan")]
            print("".join(f"  {log.name}: {line}\n" for line in said[-10:]), end="", file=sys.stderr)
        return 2
    finally:
        if not options.keep:
            subprocess.run([REPOSITORY / "scripts/cluster", "down", "--dir", options.dir], check=False)


if __name__ == "__main__":
    sys.exit(main())

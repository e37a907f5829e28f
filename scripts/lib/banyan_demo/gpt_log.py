# SPDX-License-Identifier: BSD-3-Clause
"""What examples/gpt prints, read back: JSON objects, one a line, among what others print."""

import json
from dataclasses import dataclass, field

# What a rank has behind it when it begins, in this order: train.py takes the time of each.
PHASES = ("process", "imports", "rendezvous", "model", "restore")
NAMES = {"process": "Slurm", "imports": "imports", "rendezvous": "rendezvous", "model": "model and optimizer", "restore": "restore"}


@dataclass
class GptLog:
    """Times in seconds since 1970."""
    steps: list = field(default_factory=list)   # (step, loss, time) in the order printed
    starts: list = field(default_factory=list)  # a dict for each rank that began: rank, pid, node, begins_at, source, times

    def newest(self):
        return max((step for step, _, _ in self.steps), default=-1)

    def losses(self):
        """{step: loss} of the last run of each; equal for two runs exactly when they computed the same."""
        return {step: loss for step, loss, _ in self.steps}

    def trained_twice_alike(self):
        """Whether each step that was trained again had the same loss."""
        return len({(step, loss) for step, loss, _ in self.steps}) == len(self.losses())

    def ranks(self):
        """{rank: what it printed at its last start}"""
        return {one["rank"]: one for one in self.starts}


def read(path):
    """The log as it is now; a last line that is still being written is left out."""
    log = GptLog()
    try:
        text = path.read_text(errors="replace")
    except FileNotFoundError:
        return log
    for line in text[:text.rfind("\n") + 1].splitlines():
        if not line.startswith("{"):
            continue
        try:
            one = json.loads(line)
            if "loss" in one:
                log.steps.append((int(one["step"]), float(one["loss"]), float(one["time"])))
            elif "begins_at" in one:
                log.starts.append({**one, "times": {phase: float(one["times"][phase]) for phase in PHASES}})
        except (KeyError, TypeError, ValueError):
            continue  # a line of another program that looks alike
    return log


def resumed(log, fault, world):
    """The starts of all `world` ranks after the fault's time, and the first step after them: (starts, step), or None while it lasts."""
    starts = {one["rank"]: one for one in log.starts if one["times"]["process"] > fault}
    if len(starts) < world:
        return None
    ready = max(one["times"]["restore"] for one in starts.values())
    step = next((one for one in log.steps if one[2] > ready), None)
    return (list(starts.values()), step) if step else None


def split(fault, starts, step):
    """{phase: seconds} from the fault to the end of the first step: a phase ends when the last rank has it behind it."""
    out, last = {}, fault
    for phase in PHASES:
        end = max(one["times"][phase] for one in starts)
        out[NAMES[phase]], last = end - last, end
    out["first step"] = step[2] - last
    return out

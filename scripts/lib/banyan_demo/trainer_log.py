# SPDX-License-Identifier: BSD-3-Clause
"""What banyan-trainer prints, read back: one line per training step, one per restored rank."""

import re
from dataclasses import dataclass, field

FIELD = re.compile(r"(\w+)=(\S+)")


@dataclass
class TrainerLog:
    steps: dict = field(default_factory=dict)      # step -> (loss bits, epoch ms) of its last run
    replayed: int = 0                              # steps that were trained more than once
    restored: list = field(default_factory=list)   # dicts: rank, step, source, bytes, node, at (epoch ms)
    starts: list = field(default_factory=list)     # epoch ms of each start of the trainer
    finished: float = None                         # epoch ms
    step_times: list = field(default_factory=list)  # (step, epoch ms), in the order printed


def milliseconds(text):
    return float(text) * 1000


def read(path):
    """The log as it is now; a last line that is still being written is left out."""
    log = TrainerLog()
    try:
        text = path.read_text(errors="replace")
    except FileNotFoundError:
        return log
    for line in text[:text.rfind("\n") + 1].splitlines():
        values = dict(FIELD.findall(line))
        try:
            if line.startswith("step="):
                step, at = int(values["step"]), milliseconds(values["at"])
                log.replayed += step in log.steps
                log.steps[step] = (values["bits"], at)
                log.step_times.append((step, at))
            elif line.startswith("restored "):
                log.restored.append({**values, "rank": int(values["rank"]), "step": int(values["step"]),
                                     "bytes": int(values["bytes"]), "at": milliseconds(values["at"])})
            elif line.startswith("started "):
                log.starts.append(milliseconds(values["at"]))
            elif line.startswith("finished "):
                log.finished = milliseconds(values["at"])
        except (KeyError, ValueError):
            continue  # a line of another program that looks alike
    return log


def losses(log):
    """step -> bits of the loss: equal for two runs exactly when the runs computed the same."""
    return {step: bits for step, (bits, _) in log.steps.items()}

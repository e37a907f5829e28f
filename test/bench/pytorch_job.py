# SPDX-License-Identifier: BSD-3-Clause
"""What the figures of the Python package have in common: how one is written down, and a job with ranks."""

import dcp_jobs  # noqa: F401  it has ranks forked from a process that has imported what DCP needs
import ranks

MB = 1 << 20
TURNS = 7  # of which a figure is the median


def figure(name, value, unit, against="", most=None, least=None):
    """`most` or `least` is its goal, if it has one."""
    goal = f"<= {most}" if most is not None else f">= {least}" if least is not None else ""
    holds = value <= most if most is not None else value >= least if least is not None else None
    return {"figure": name, "value": value, "unit": unit, "against": against, "goal": goal, "holds": holds}


def unmeasured(name, why):
    return {"figure": name, "value": None, "unit": "", "against": f"not measured: {why}", "goal": "", "holds": None}


def tried(name, measure, *arguments):
    """The figures of a part, or one that says why it has none: others are not lost with it."""
    try:
        return measure(*arguments)
    except (AssertionError, OSError) as error:  # a rank's error is an AssertionError
        return [{**unmeasured(name, str(error).partition("\n")[0]), "holds": False}]


def described(size, count):
    return f"{size} MB, {count} rank{'s' if count > 1 else ''}"


class Job:
    """A job on some nodes, with ranks that end with it."""

    def __init__(self, nodes, number, per_node, over=(1,), **more):
        self.nodes, self.number, self.per_node, self.starts, self.over = nodes, number, per_node, 0, list(over)
        self.ranks = None
        nodes.open(number, per_node, self.over, **{"buffers": 2, **more})

    def start(self, over=None):
        """The next launch of its program, on these nodes of its own: by default all."""
        over = over or self.over
        if self.ranks:
            self.ranks.kill()
            self.starts += 1
            self.nodes.begin(self.number, self.starts, over)
        self.ranks = ranks.Ranks(self.nodes, self.number, self.per_node, over)
        return self.ranks

    def end(self):
        self.ranks.kill()
        for node in self.over:
            self.nodes.close(self.number, node)

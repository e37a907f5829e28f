# SPDX-License-Identifier: BSD-3-Clause
"""Figures as scripts/demo and scripts/bench write them."""

import json


class Figures:
    def __init__(self, busy=False):
        """`busy`: other work takes the host's time, so that times are written down but not held against their goals."""
        self.rows, self.busy = [], busy

    def add(self, figure, value, unit, against, goal=None, holds=None):
        self.rows.append({"figure": figure, "value": value, "unit": unit, "against": against, "goal": goal, "holds": holds})

    def below(self, figure, value, unit, limit, against="limit"):
        holds = value is not None and value < limit
        self.add(figure, value, unit, against, f"< {limit}", None if self.busy and unit in ("ms", "s") and not holds else holds)

    def at_most(self, figure, value, unit, limit, against="limit"):
        self.add(figure, value, unit, against, f"<= {limit}", value is not None and value <= limit)

    def hold(self):
        return all(row["holds"] is not False for row in self.rows)

    def write(self, path):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.rows, file, indent=1)
            file.write("\n")

    def table(self):
        lines = []
        for row in self.rows:
            value = "-" if row["value"] is None else f"{row['value']:.1f}" if isinstance(row["value"], float) else str(row["value"])
            verdict = {True: "holds", False: "MISSED", None: "not judged: host busy" if row["goal"] else ""}[row["holds"]]
            lines.append(f"  {row['figure']:<52} {value:>10} {row['unit']:<6} {row['goal'] or '':>8}  {verdict}".rstrip())
        return "\n".join(lines)

# SPDX-License-Identifier: BSD-3-Clause
"""A loss curve with the faults in it: as a picture (SVG), and as a sketch for the terminal."""

import math
from html import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 900, 420, 60, 20, 50, 50
COLORS = ("#c0392b", "#8e44ad", "#d35400", "#16a085")


def finite(curve):
    """What can be drawn of it."""
    return {step: loss for step, loss in curve.items() if math.isfinite(loss)}


class Scale:
    """Steps and losses to places of a drawing of that size, whose origin is its upper left corner."""

    def __init__(self, losses, width, height):
        self.width, self.height = width, height
        self.steps = max(max(losses), 1)
        self.low, self.high = min(losses.values()), max(losses.values())

    def x(self, step):
        return step / self.steps * self.width

    def y(self, loss):
        return (self.high - loss) / ((self.high - self.low) or 1) * self.height


def svg(losses, reference, marks):
    """losses, reference: {step: loss}, the latter wide and pale below the former. marks: [(step, text)]. Returns the file's text."""
    losses, reference = finite(losses), finite(reference)
    scale = Scale({**reference, **losses}, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM)

    def line(curve, style):
        points = " ".join(f"{LEFT + scale.x(step):.1f},{TOP + scale.y(loss):.1f}" for step, loss in sorted(curve.items()))
        return f'<polyline points="{points}" fill="none" {style}/>'
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="13">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for i in range(5):
        loss = scale.low + (scale.high - scale.low) * i / 4
        y = TOP + scale.y(loss)
        out.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{loss:.2f}</text>')
        step = round(scale.steps * i / 4)
        out.append(f'<text x="{LEFT + scale.x(step):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{step}</text>')
    out.append(line(reference, 'stroke="#aed6f1" stroke-width="7"'))
    out.append(line(losses, 'stroke="#1b4f72" stroke-width="1.5"'))
    for i, (step, text) in enumerate(marks):
        x, color = LEFT + scale.x(step), COLORS[i % len(COLORS)]
        out.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}" stroke="{color}" stroke-dasharray="5 4"/>')
        out.append(f'<text x="{x + 6:.1f}" y="{TOP + 16 + 18 * (i % 8)}" fill="{color}">{escape(text)}</text>')
    out.append(f'<text x="{LEFT}" y="24">Loss (nats) by step: the disturbed run (thin) on the undisturbed one (wide)</text>')
    out.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 10}" text-anchor="end">training step</text></svg>')
    return "\n".join(out) + "\n"


def sketch(losses, marks, width=72, height=12):
    """The same in letters: `*` the loss, `|` a fault, named by its letter below."""
    losses = finite(losses)
    scale = Scale(losses, width - 1, height - 1)
    rows = [[" "] * width for _ in range(height)]
    for step, _ in marks:
        for row in rows:
            row[round(scale.x(step))] = "|"
    for step, loss in losses.items():
        rows[round(scale.y(loss))][round(scale.x(step))] = "*"
    lines = [f"{scale.high - (scale.high - scale.low) * i / (height - 1):6.2f} |{''.join(row)}".rstrip() for i, row in enumerate(rows)]
    below, right = [" "] * width, str(scale.steps)
    below[0], below[width - len(right):] = "0", list(right)
    for i, (step, _) in enumerate(marks):
        below[round(scale.x(step))] = chr(ord("A") + i % 26)
    lines += [" " * 7 + "+" + "-" * width, " " * 8 + "".join(below)]
    return "\n".join(lines + [f"{' ' * 8}{chr(ord('A') + i % 26)}: {text}" for i, (_, text) in enumerate(marks)])

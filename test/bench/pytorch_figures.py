# SPDX-License-Identifier: BSD-3-Clause
"""The figures of pytorch_bench.py, which runs this in the tests' Python environment. The argument is the file for them."""

import json
import os
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

import daemons
import pytorch_peers
import pytorch_ranks
import pytorch_reshard
import pytorch_steps
from pytorch_job import MB, TURNS, Job, described, figure, tried

SIZES = ((256, 1), (256, 2), (1024, 1), (1024, 2))
PIECE_MB = 64


def saves(nodes, number, size, count):
    """Copies and saves of all ranks at once, in turn, in three jobs; a time is the slowest rank's of a round."""
    first, copies, later = [], [], []
    for attempt in range(3):
        job = Job(nodes, 10 * number + attempt, count)
        try:
            all_ranks = job.start()
            all_ranks.run(pytorch_ranks.begin, size * MB)
            first.append(max(all_ranks.run(pytorch_ranks.save)))
            for _ in range(4):
                all_ranks.run(pytorch_ranks.settle)
                copies.append(max(all_ranks.run(pytorch_ranks.copy)))
                later.append(max(all_ranks.run(pytorch_ranks.save)))
        finally:
            job.end()
    copy, save = statistics.median(copies), statistics.median(later)
    what = described(size, count)
    return [figure(f"save, {what}", save / copy, "copies", f"copy {copy * 1e3:.0f} ms", most=1.1),
            figure(f"first save, {what}", statistics.median(first) / save, "later saves", f"save {save * 1e3:.0f} ms", most=1.2)]


def many(nodes, number):
    out = []
    for kind, what in (("plain", ""), ("AdamW", " of a module and AdamW")):
        job = Job(nodes, number, 1)
        try:
            rank = job.start()[0]
            rank.run(pytorch_ranks.begin_many, 10_000, kind)
            beyond = min(rank.run(pytorch_ranks.many) for _ in range(9))  # a time, not a ratio: what else the machine does only adds
            out.append(figure(f"save of 10,000 tensors{what}, beyond the copy", beyond * 1e3, "ms", most=10))
        finally:
            job.end()
    return out


def new_training(nodes, number):
    first, later = [], []
    for _ in range(3):
        job = Job(nodes, number, 1)
        try:
            rank = job.start()[0]
            first.append(rank.run(pytorch_ranks.begin_training, 256 * MB))
            later += [rank.run(pytorch_ranks.save_settled) for _ in range(5)]
        finally:
            job.end()
    save = statistics.median(later)
    return [figure("first save of a new training", statistics.median(first) / save, "later saves", f"save {save * 1e3:.0f} ms", most=1.2)]


def overlapped(nodes, number):
    job = Job(nodes, number, 1)
    try:
        rank = job.start()[0]
        rank.run(pytorch_ranks.begin_training, 256 * MB)
        found = {kind: [] for kind in ("none", "blocking", "overlap")}
        for _ in range(TURNS):
            for kind, times in found.items():
                times.append(rank.run(pytorch_ranks.step, kind))
        base = statistics.median(found["none"])
        return [figure(f"step with a save at each, {kind}", statistics.median(found[kind]) / base, "steps without", f"step {base * 1e3:.0f} ms")
                for kind in ("blocking", "overlap")]
    finally:
        job.end()


def peaks(nodes, number):
    """What lies beside the state at the worst moment of a load."""
    out = []
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        directory = Path(folder, "out")
        directory.mkdir(mode=0o777)
        job = Job(nodes, number, 1, directory=directory, flush=1)
        try:
            job.start().run(pytorch_ranks.begin_peak, PIECE_MB * MB)
            for kind, place in (("the job", None), ("a directory", directory)):
                beside = max(job.start().run(pytorch_ranks.peak, PIECE_MB * MB, place))
                out.append(figure(f"load from {kind}: memory beside the state", beside / MB, "MB", f"a piece of {PIECE_MB} MB",
                                  most=PIECE_MB * 1.1))
        finally:
            job.end()
    return out


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the daemons end with us
    nodes, figures, began = daemons.Daemons(1), [], time.monotonic()
    try:
        for number, (size, count) in enumerate(SIZES):
            figures += saves(nodes, 1 + number, size, count)
        figures += many(nodes, 60) + new_training(nodes, 61) + overlapped(nodes, 62) + peaks(nodes, 63)
        figures += tried("saves of PyTorch's own", pytorch_peers.figures, nodes, 70)
    finally:
        nodes.stop()
    figures += tried("a save at each step", pytorch_steps.figures, 80) + tried("another number of ranks", pytorch_reshard.figures, 90)
    Path(sys.argv[1]).write_text(json.dumps(figures, indent=1) + "\n")
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()

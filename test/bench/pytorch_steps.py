# SPDX-License-Identifier: BSD-3-Clause
"""What a save at each step costs a training whose work is on a GPU: a step sleeps, as the CPU does meanwhile, and the optimizer only waits.

Two nodes on this machine, a rank on each; all saves go to the other node, each tenth to a disk. What daemons have to do for a save takes
their cores' time whatever the training does: with few cores a large state wants longer steps, or steps wait for a free buffer."""

import os
import statistics
import tempfile
import time
from pathlib import Path

import daemons
import torch
from pytorch_job import MB, TURNS, Job, figure
from pytorch_peers import DISK

import banyan_ckpt as banyan

NODES, FLUSH, STEPS = 2, 10, 10
KINDS = {"none": None, "blocking": False, "overlap": True}
# MB of both ranks together, ms of a step, and whether two cores can do it.
CASES = ((16, 50, True), (256, 250, True), (256, 50, False))


class OnGpu(torch.optim.Optimizer):
    """Its step is in the sleep."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    def step(self, closure=None):
        pass


def begin(kept, size):
    banyan.init()
    model = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(size // 8 // 4)) for _ in range(8)])
    kept |= {"state": {"model": model, "optimizer": OnGpu(model.parameters())}, "step": 0}
    assert banyan.load(kept["state"]) is None
    assert banyan.save(0, kept["state"])


def train(kept, kind, sleep):
    """Seconds that a step takes, of a few in a row. A save may be skipped, where each buffer is still on its way to the other node."""
    start = time.perf_counter()
    for _ in range(STEPS):
        if kind != "none":
            kept["step"] += 1
            banyan.save(kept["step"], kept["state"], overlap=KINDS[kind])
        time.sleep(sleep)
        kept["state"]["optimizer"].step()
    return (time.perf_counter() - start) / STEPS


def settle(kept):
    """Until nothing is on its way any more; of a step that was skipped there is no more to see."""
    banyan.wait(kept["step"], "replicated", 5)


def finish(kept):
    assert banyan.finish()


def measure(nodes, number, size, sleep):
    """Seconds of a step by kind, the slower rank's, medians; and what the daemons say they have done."""
    times = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory(dir=DISK) as folder:
        os.chmod(folder, 0o755)
        directory = Path(folder, "out")
        directory.mkdir(mode=0o777)
        job = Job(nodes, number, 1, range(1, NODES + 1), directory=directory, flush=FLUSH, buffers=3)
        try:
            ranks = job.start()
            ranks.run(begin, size // NODES)
            ranks.run(settle)
            for _ in range(TURNS):
                for kind, found in times.items():
                    found.append(max(ranks.run(train, kind, sleep)))
                    ranks.run(settle)
            ranks.run(finish)
            counters = nodes.session(1, number)["counters"]
        finally:
            job.end()
    return {kind: statistics.median(found) for kind, found in times.items()}, counters


def figures(number):
    out = []
    nodes = daemons.Daemons(NODES)
    try:
        for i, (size, sleep, fits) in enumerate(CASES):
            took, counters = measure(nodes, number + i, size * MB, sleep / 1e3)
            done = f"of {1 + 2 * TURNS * STEPS} saves {counters['commits']} on both nodes, {counters['flushes']} in storage"
            for kind in ("blocking", "overlap"):
                out.append(figure(f"step of {sleep} ms with a save at each, {size} MB, {kind}", took[kind] / took["none"], "steps without",
                                  f"{took['none'] * 1e3:.1f} ms; {done}", most=1.03 if fits and kind == "overlap" else None))
    finally:
        nodes.stop()
    return out

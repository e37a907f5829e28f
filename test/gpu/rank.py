# SPDX-License-Identifier: BSD-3-Clause
"""One rank whose state is on a GPU, or on CPUs where there is none: `rank.py first GIB` measures saves, and waits to be killed;
`rank.py second GIB` restores what it has saved. Each figure is a line of JSON."""

import json
import statistics
import sys
import time
import warnings

import others
import torch
from ckpt import Checkpoints, Failed

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
ADDED = 5  # to each number of the state, before the last save
ROUNDS = 3
HIDDEN = 4096


def say(what, **figures):
    print(json.dumps({"what": what, **figures}), flush=True)


def synchronize():
    if GPU:
        torch.cuda.synchronize()


def timed(work):
    synchronize()
    begin = time.perf_counter()
    work()
    synchronize()
    return time.perf_counter() - begin


def make_state(gib):
    """Layers of a transformer, the same numbers in each process."""
    numbers = torch.Generator(device=DEVICE)
    numbers.manual_seed(1)
    hidden, left, state = HIDDEN if gib >= 1 else HIDDEN // 16, int(gib * 2**30), {}
    while left > 0:
        layer = len(state) // 4
        for name, shape in (("qkv", (3 * hidden, hidden)), ("proj", (hidden, hidden)), ("up", (4 * hidden, hidden)), ("norm", (hidden,))):
            state[f"layers.{layer}.{name}"] = torch.rand(shape, device=DEVICE, generator=numbers)
            left -= state[f"layers.{layer}.{name}"].numel() * 4
            if left <= 0:
                break
    return state


def size(state):
    return sum(tensor.numel() * tensor.element_size() for tensor in state.values())


def measure_saves(checkpoints, state, tensors):
    def save():
        checkpoints.save(tensors)

    def rate(what, seconds):
        say(what, seconds=round(seconds, 4), gb_per_second=round(size(state) / seconds / 1e9, 2))

    rate("first save", timed(save))
    checkpoints.wait()
    ways = {"save": (save, checkpoints.wait), **others.ways(state, GPU)}
    times = {name: [] for name in ways}
    for _ in range(ROUNDS):  # in turns: whatever else the machine does concerns all
        for name, (way, after) in ways.items():
            times[name].append(timed(way))
            after()
    for name, seconds in times.items():
        rate(name, statistics.median(seconds))
    others.end()


def measure_in_flight(checkpoints, state):
    """Whether a save has what was queued before it on the stream that is in use."""
    factor = torch.randn(8192, 8192, device=DEVICE, dtype=torch.bfloat16)
    name, tensor = next(iter(state.items()))
    before = tensor.clone()
    for label, stream in (("default", torch.cuda.default_stream()), ("side", torch.cuda.Stream())):
        synchronize()
        with torch.cuda.stream(stream):
            for _ in range(200):
                factor @ factor
            tensor.fill_(7.0)
            checkpoints.save(checkpoints.described(state))
        synchronize()
        checkpoints.wait()
        found = torch.zeros_like(tensor)
        checkpoints.restore(checkpoints.described({name: found}))
        synchronize()
        say(f"a save has what was queued on the {label} stream", yes=bool((found == 7.0).all()))
        tensor.copy_(before)


def measure_training(checkpoints, tensors):
    """Iterations of some matrix products, alone and with a save after every tenth, whose time counts."""
    dtype, width = (torch.bfloat16, 8192) if GPU else (torch.float32, 256)
    factor = torch.randn(width, width, device=DEVICE, dtype=dtype)
    in_saves = []

    def iterate(saves):
        for number in range(50):
            for _ in range(20):
                factor @ factor
            synchronize()
            if saves and number % 10 == 0:
                begin = time.perf_counter()
                checkpoints.save(tensors)
                in_saves.append(time.perf_counter() - begin)

    iterate(False)
    alone, beside = timed(lambda: iterate(False)), timed(lambda: iterate(True))
    say("50 iterations of training with 5 saves", slower_by_percent=round((beside / alone - 1) * 100, 2), seconds=round(beside, 3),
        in_a_save=round(statistics.median(in_saves), 4))
    checkpoints.wait()


def first(gib):
    state = make_state(gib)
    synchronize()
    say("state", told=f"{size(state)} bytes in {len(state)} tensors")
    checkpoints = Checkpoints()
    checkpoints.nothing_is_there()
    tensors = checkpoints.described(state)
    measure_saves(checkpoints, state, tensors)
    if GPU:
        measure_in_flight(checkpoints, state)
    measure_training(checkpoints, tensors)
    for tensor in state.values():
        tensor.add_(ADDED)
    synchronize()
    checkpoints.save(tensors)
    checkpoints.wait()
    say("ready")
    time.sleep(600)  # the one who reads kills this process


def second(gib):
    saved = make_state(gib)
    state = {name: torch.zeros_like(tensor) for name, tensor in saved.items()}
    checkpoints = Checkpoints()
    tensors = checkpoints.described(state)
    for what in ("first restore", "restore"):
        seconds = timed(lambda: checkpoints.restore(tensors))
        say(what, seconds=round(seconds, 4), gb_per_second=round(size(state) / seconds / 1e9, 2))
    wrong = [name for name, tensor in state.items() if not torch.equal(tensor, saved[name] + ADDED)]
    say("the content after kill -9 and a restore is what was saved", must=not wrong)
    if GPU:
        host, gpu = torch.empty(size(state), dtype=torch.uint8, pin_memory=True), torch.empty(size(state), dtype=torch.uint8, device=DEVICE)
        seconds = min(timed(lambda: gpu.copy_(host, non_blocking=True)) for _ in range(3))
        say("one pinned copy to the GPU", seconds=round(seconds, 4), gb_per_second=round(size(state) / seconds / 1e9, 2))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    try:
        {"first": first, "second": second}[sys.argv[1]](float(sys.argv[2]))
    except Failed as error:
        say(str(error), must=False)
        sys.exit(1)

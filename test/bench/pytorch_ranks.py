# SPDX-License-Identifier: BSD-3-Clause
"""What the ranks of pytorch_figures.py do. Times are in seconds."""

import ctypes
import threading
import time

import torch

import banyan_ckpt as banyan


def took(call, *arguments, **named):
    begin = time.perf_counter()
    answer = call(*arguments, **named)
    seconds = time.perf_counter() - begin
    assert answer or answer is None, answer
    return seconds


def begin(kept, size):
    """A state of eight tensors, and warm memory to copy it to."""
    banyan.init()
    kept["state"] = {"w": [torch.ones(size // 8 // 4) for _ in range(8)]}
    kept["copies"] = [torch.ones_like(t) for t in kept["state"]["w"]]
    kept["step"] = 0
    assert banyan.load(kept["state"]) is None


def save(kept):
    kept["step"] += 1
    return took(banyan.save, kept["step"], kept["state"])


def settle(kept):
    assert banyan.wait(kept["step"], timeout=60)


def copy(kept):
    pairs = [(to.data_ptr(), of.data_ptr(), of.numel() * 4) for to, of in zip(kept["copies"], kept["state"]["w"], strict=True)]
    begin = time.perf_counter()
    for words in pairs:
        ctypes.memmove(*words)
    return time.perf_counter() - begin


def begin_many(kept, count, kind):
    """kind: plain, or AdamW for a module and that, which has three tensors more for each of its parameters."""
    banyan.init()
    if kind == "plain":
        kept["state"] = {"model": {f"layers.{i}.weight": torch.ones(16) for i in range(count)}}
    else:
        model = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(16)) for _ in range(count // 4)])
        kept["state"] = {"model": model, "optimizer": torch.optim.AdamW(model.parameters())}
        sum(p.sum() for p in model).backward()
        kept["state"]["optimizer"].step()
    kept["step"] = 0
    banyan.load(kept["state"])
    save(kept)


def many(kept):
    """All of it: its 640 kB are copied in less than a tenth of a millisecond."""
    settle(kept)
    return save(kept)


def begin_training(kept, size):
    """A model whose step takes a few times as long as the copy of its state. Its first save, after its first step."""
    banyan.init()
    width = int((size / 3 / 4) ** 0.5)
    model = torch.nn.Sequential(torch.nn.Linear(width, width, bias=False), torch.nn.BatchNorm1d(width))
    kept["state"] = {"model": model, "optimizer": torch.optim.AdamW(model.parameters(), foreach=False)}
    kept["batch"], kept["step"] = torch.randn(64, width), 0
    banyan.load(kept["state"])
    train(kept)
    return save(kept)


def save_settled(kept):
    settle(kept)
    return save(kept)


def train(kept):
    kept["state"]["optimizer"].zero_grad()
    kept["state"]["model"](kept["batch"]).square().mean().backward()
    kept["state"]["optimizer"].step()


def step(kept, kind):
    """One step, and the save of it; `kind`: none, blocking, overlap. What of an overlapped save is left falls into the next step."""
    if kept["step"]:
        settle(kept)
    begin = time.perf_counter()
    if kind != "none":
        kept["step"] += 1
        assert banyan.save(kept["step"], kept["state"], overlap=kind == "overlap")
    train(kept)
    return time.perf_counter() - begin


def peak_state(piece, value):
    model = torch.nn.ParameterList([torch.nn.Parameter(torch.full((piece // 4,), value)) for _ in range(4)])
    return {"model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)}


def begin_peak(kept, piece):
    banyan.init()
    state = peak_state(piece, 1.0)
    assert banyan.load(state) is None
    sum(p.sum() for p in state["model"]).backward()
    state["optimizer"].step()
    assert banyan.save(1, state) and banyan.wait(1, "durable", 120)


def anonymous():
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


def peak(kept, piece, directory):
    """How much more memory was in use during the load than after it: looked at each millisecond."""
    banyan.init()
    state = peak_state(piece, 0.0)
    seen, over = [], threading.Event()

    def look():
        while not over.wait(0.001):
            seen.append(anonymous())

    watcher = threading.Thread(target=look)
    watcher.start()
    assert banyan.load(state, directory=directory)
    over.set()
    watcher.join()
    assert len(state["optimizer"].state) == 4
    return max(seen) - anonymous()

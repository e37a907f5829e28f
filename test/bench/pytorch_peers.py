# SPDX-License-Identifier: BSD-3-Clause
"""How long a save blocks beside what PyTorch itself brings: torch.distributed.checkpoint to a disk, whole, by a thread and by a process.

All methods in turn, in one run, of one state: a transformer's weights and two moments, to each rank its own, as with FSDP. Sizes are
a rank's."""

import ctypes
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import dcp_jobs
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from pytorch_job import MB, TURNS, Job, described, figure
from torch.distributed.checkpoint import FileSystemWriter
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType

import banyan_ckpt as banyan
from banyan_ckpt.dcp import Writer

SIZES = ((256, 1), (256, 2), (1024, 1), (512, 2))
DISK = "/var/tmp"  # what outlives a boot, so no memory


def transformer(rank, size):
    """Tensors of `size` bytes, about a thousand of them."""
    h = 256 if size <= 256 * MB else 512 if size > 512 * MB else 384
    shapes = {"qkv": (3 * h, h), "proj": (h, h), "up": (4 * h, h), "down": (h, 4 * h), "up_bias": (4 * h,)}
    shapes |= {name: (h,) for name in ("norm", "norm_bias", "norm2", "norm2_bias", "proj_bias", "down_bias")}
    layers = round(size / (12 * sum(torch.Size(shape).numel() for shape in shapes.values())))
    return {f"rank{rank}.{kind}.{layer}.{name}": torch.ones(shape)
            for kind in ("weight", "exp_avg", "exp_avg_sq") for layer in range(layers) for name, shape in shapes.items()}


def begin(kept, store, disk, size):
    os.environ["MASTER_ADDR"] = "127.0.0.1"  # where DCP's own process listens
    dcp_jobs.group(kept, store)
    tensors = transformer(kept["rank"], size)
    copies = [torch.zeros_like(t) for t in tensors.values()]
    kept |= {"state": {"state": tensors}, "copies": copies, "step": 0, "disk": Path(disk)}
    kept["pairs"] = [(to.data_ptr(), of.data_ptr(), of.nbytes) for to, of in zip(copies, tensors.values(), strict=True)]
    assert banyan.load(kept["state"]) is None


def copy(kept):
    for words in kept["pairs"]:
        ctypes.memmove(*words)
    return lambda: True


def save(kept):
    assert banyan.save(kept["step"], kept["state"])
    return lambda: banyan.wait(kept["step"], timeout=60)


def async_save(kept):
    writer = Writer(kept["step"])
    future = dcp.async_save(kept["state"], storage_writer=writer)
    return lambda: future.result() is None or writer.outcome and banyan.wait(kept["step"], timeout=60)


def files(kept):
    return kept["disk"] / str(kept["step"])


def disk(kept):
    dcp.save(kept["state"], storage_writer=FileSystemWriter(files(kept)))
    return lambda: True


def thread(kept):
    return dcp.async_save(kept["state"], storage_writer=FileSystemWriter(files(kept))).result


def process(kept):
    return dcp.async_save(kept["state"], storage_writer=FileSystemWriter(files(kept)),
                          async_checkpointer_type=AsyncCheckpointerType.PROCESS).result


METHODS = {"copy": copy, "save": save, "async_save": async_save, "disk": disk, "thread": thread, "process": process}


def blocked(kept, method):
    """For how many seconds. What is left to do then is done on return, and its files are gone."""
    kept["step"] += 1
    dist.barrier()
    start = time.perf_counter()
    rest = METHODS[method](kept)
    seconds = time.perf_counter() - start
    assert rest()
    dist.barrier()
    if kept["rank"] == 0:
        shutil.rmtree(files(kept), ignore_errors=True)
    return seconds


def measure(nodes, number, size, count):
    """Seconds by method, the slowest rank's; medians."""
    times = {method: [] for method in METHODS}
    with tempfile.TemporaryDirectory(dir=DISK) as folder:
        job = Job(nodes, number, count)
        try:
            ranks = job.start()
            ranks.run(begin, Path(folder, "store"), folder, size * MB)
            order = list(METHODS)
            for turn in range(1 + TURNS):
                order = order[1:] + order[:1]
                for method in order:
                    took = max(ranks.run(blocked, method))
                    if turn != 0:  # then memory is made, and processes are started
                        times[method].append(took)
        finally:
            job.end()
    return {method: statistics.median(found) for method, found in times.items()}


def compared(nodes, number, size, count):
    took, what = measure(nodes, number, size, count), described(size, count)
    ours, stager = took["save"], took["async_save"]
    out = [figure(f"dcp.async_save with our stager, {what}", stager / took["copy"], "copies", f"copy {took['copy'] * 1e3:.0f} ms", most=1.1),
           figure(f"dcp.save to disk, {what}", took["disk"] / ours, "saves", f"save {ours * 1e3:.0f} ms", least=10)]
    for method in ("thread", "process"):
        out += [figure(f"dcp.async_save by a {method}, {what}", took[method] / ours, "saves", f"save {ours * 1e3:.0f} ms", least=2),
                figure(f"dcp.async_save by a {method}, {what}, beside our stager", took[method] / stager, "async_saves",
                       f"async_save with our stager {stager * 1e3:.0f} ms", least=1.2)]
    return out


def figures(nodes, number):
    return [one for i, (size, count) in enumerate(SIZES) for one in compared(nodes, number + i, size, count)]

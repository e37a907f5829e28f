# SPDX-License-Identifier: BSD-3-Clause
"""A job of 8 ranks goes on with 4, and with 8 again: from its memory, beside dcp.load from a disk whose pages nobody has in memory.

Each rank is on a node of its own, all nodes on this machine; each load is a process's first, and what it has loaded is looked at."""

import os
import statistics
import tempfile
import time
from pathlib import Path

import daemons
import dcp_jobs
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from pytorch_job import MB, TURNS, Job, figure, unmeasured
from pytorch_peers import DISK
from torch.distributed.checkpoint import FileSystemReader, FileSystemWriter
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard

import banyan_ckpt as banyan

MANY, FEW = 8, 4
SIZE, TENSORS, ROWS = 512 * MB, 128, 1024  # of all ranks together
CACHES = Path("/proc/sys/vm/drop_caches")


def begin(kept, store):
    """A state of sharded tensors, as FSDP2 has them, whose memory is there; nothing in it is right yet."""
    dcp_jobs.group(kept, store)
    mesh = init_device_mesh("cpu", (kept["world"],))
    shape = (ROWS // kept["world"], SIZE // TENSORS // ROWS // 4)
    kept["state"] = {"model": {f"layers.{i}": DTensor.from_local(torch.full(shape, -1.0), mesh, [Shard(0)]) for i in range(TENSORS)}}
    kept["first"] = kept["rank"] * shape[0]


def rows(kept):
    """By tensor: this rank's rows, and what belongs there."""
    for i, tensor in enumerate(kept["state"]["model"].values()):
        local = tensor.to_local()
        yield local, (i + kept["first"] + torch.arange(len(local), dtype=torch.float32))[:, None].expand_as(local)


def fill(kept):
    assert banyan.load(kept["state"]) is None
    for local, right in rows(kept):
        local.copy_(right)


def load(kept, folder):
    """Seconds: from a folder, or from the job's memory."""
    for local, _ in rows(kept):
        local.fill_(-1)
    dist.barrier()
    start = time.perf_counter()
    if folder:
        dcp.load(kept["state"], storage_reader=FileSystemReader(folder))
    else:
        assert banyan.load(kept["state"])
    seconds = time.perf_counter() - start
    assert all(torch.equal(local, right) for local, right in rows(kept))
    return seconds


def save(kept, step):
    assert banyan.save(step, kept["state"])
    safe = banyan.wait(step, "replicated", 40)
    assert safe, safe


def save_to_disk(kept, folder):
    dcp.save(kept["state"], storage_writer=FileSystemWriter(folder))


def empty_caches():
    os.sync()
    CACHES.write_text("3\n", encoding="ascii")


def turns(job, folder):
    """Seconds by number of ranks that load, and by source: the slowest rank's, medians."""
    found = {count: {"memory": [], "disk": []} for count in (FEW, MANY)}
    saved_by = {FEW: folder / str(MANY), MANY: folder / str(FEW)}
    ranks = job.start()
    for function, *arguments in ((begin, folder / "store"), (fill,), (save_to_disk, folder / str(MANY)), (save, 0)):
        ranks.run(function, *arguments)
    for turn in range(TURNS):
        for count, times in found.items():
            ranks = job.start(list(range(1, count + 1)))
            ranks.run(begin, folder / f"store-{turn}-{count}")
            if turn == 0 and count == FEW:
                ranks.run(load, None)
                ranks.run(save_to_disk, folder / str(FEW))
            for source in list(times)[:: 1 if turn % 2 else -1]:
                if source == "disk":
                    empty_caches()
                times[source].append(max(ranks.run(load, saved_by[count] if source == "disk" else None)))
            ranks.run(save, 1 + 2 * turn + (count == MANY))
    return {count: {source: statistics.median(t) for source, t in times.items()} for count, times in found.items()}


def figures(number):
    what = f"{SIZE // MB} MB, from memory"
    names = {FEW: f"{MANY} -> {FEW} ranks, {what}", MANY: f"{FEW} -> {MANY} ranks, {what}"}
    try:
        empty_caches()
    except OSError as error:
        why = f"{CACHES} cannot be written ({error.strerror}), so dcp.load would read from memory"
        return [unmeasured(name, why) for name in names.values()]
    nodes = daemons.Daemons(MANY)
    try:
        with tempfile.TemporaryDirectory(dir=DISK) as folder:
            job = Job(nodes, number, 1, range(1, MANY + 1), min_nodes=2, group=1,
                      slots=[{"ranks": [i], "buddy": (i + 1) % MANY} for i in range(MANY)])
            try:
                took = turns(job, Path(folder))
            finally:
                job.end()
    finally:
        nodes.stop()
    return [figure(names[count], times["disk"] / times["memory"], "times as fast",
                   f"dcp.load from disk, {times['disk']:.2f} s ({SIZE / MB / times['disk']:.0f} MB/s)", least=5)
            for count, times in took.items()]

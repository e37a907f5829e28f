# SPDX-License-Identifier: BSD-3-Clause
"""A training that saves and loads by torch.distributed.checkpoint, in any layout, and what its ranks do."""

import hashlib
import json
import os

import ranks
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

import banyan_ckpt as banyan
from banyan_ckpt.dcp import Reader, Writer

ranks._context.set_forkserver_preload(["torch", "numpy", "torch._dynamo", "torch.distributed.checkpoint", "torch.distributed.fsdp",
                                       "torch.distributed.tensor", "banyan_ckpt.dcp", "banyan_ckpt._load", "banyan_ckpt._overlap"])


class Net(torch.nn.Module):
    """Rows that do not divide by the ranks, fewer rows than ranks, a scalar buffer, and an integer one."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(7, 14), torch.nn.Linear(14, 1)
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.seen += 1
        return self.second(torch.relu(self.first(x)))


def group(kept, store):
    kept["rank"], kept["world"] = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=kept["rank"], world_size=kept["world"])
    banyan.init()


def make(kept, store, kind, seed=0):
    """kind: fsdp, hsdp, ddp, or tp for FSDP2 over tensor parallelism."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    group(kept, store)
    torch.manual_seed(seed)
    model = Net()
    kept["run"] = model
    if kind == "ddp":
        kept["run"] = torch.nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
    else:
        shape, names = ((kept["world"],), ("shard",)) if kind == "fsdp" else ((2, kept["world"] // 2), ("replica", "shard"))
        mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
        if kind == "tp":
            from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
            parallelize_module(model, mesh["shard"], {"first": ColwiseParallel(), "second": RowwiseParallel()})
            mesh = mesh["replica"]
        for module in (model.first, model.second, model):
            fully_shard(module, mesh=mesh)
    kept["model"], kept["optimizer"], kept["step"] = model, torch.optim.AdamW(model.parameters(), lr=0.01), 0


def train(kept, steps):
    losses = []
    for _ in range(steps):
        torch.manual_seed(kept["step"])  # the same batch in each world
        data = torch.randn(4, 7)
        torch.rand(kept["rank"] + 1)  # and random numbers of the rank's own
        loss = kept["run"](data).square().mean()
        kept["optimizer"].zero_grad()
        loss.backward()
        kept["optimizer"].step()
        kept["step"] += 1
        losses.append(loss.item())
    return losses


def state(kept, of=None):
    """Model, optimizer, random numbers (of rank `of`, by default this one), and values of each kind."""
    model, optimizer = get_state_dict(kept["model"], kept["optimizer"])
    return {"model": model, "optimizer": optimizer, "rng": {str(kept["rank"] if of is None else of): torch.get_rng_state()}, "rank": kept["rank"],
            "note": {"step": kept["step"], "none": None, "list": [1, 2.5, "three"], "tuple": (1, 2), "bytes": b"\0\1"}}


def save(kept, step):
    writer = Writer()
    dcp.save(state(kept), storage_writer=writer, checkpoint_id=f"run/step-{step}")
    return str(writer.outcome)


def save_behind(kept, step, alone=True):
    writer = Writer(step)
    future = dcp.async_save(state(kept), storage_writer=writer, no_dist=alone)
    future.result()
    return str(writer.outcome)


def load(kept, old=None, directory=None):
    """Into other contents, from `old` ranks; the step, and the values."""
    train(kept, 1)
    with torch.no_grad():
        for parameter in kept["model"].parameters():
            parameter.fill_(9)
    of = kept["rank"] % (old or kept["world"])
    into = state(kept, of)
    into["note"] = {"step": 0, "none": 0, "list": [0, 0, 0], "tuple": None, "bytes": None}
    reader = Reader(directory)
    dcp.load(into, storage_reader=reader)
    set_state_dict(kept["model"], kept["optimizer"], model_state_dict=into["model"], optim_state_dict=into["optimizer"])
    torch.set_rng_state(into["rng"][str(of)])
    kept["step"] = into["note"]["step"]
    return reader.step, into["note"], into["rank"]


def bits(kept):
    """Of all tensors, put together, by name."""
    from torch.distributed.checkpoint._nested_dict import flatten_state_dict
    out = {}
    for name, value in flatten_state_dict(state(kept))[0].items():
        if isinstance(value, torch.Tensor) and not name.startswith("rng"):
            whole = value.full_tensor() if hasattr(value, "full_tensor") else value
            out[name] = (str(whole.dtype), tuple(whole.shape), hashlib.sha256(whole.contiguous().view(-1).view(torch.uint8).numpy()).hexdigest())
        elif name.startswith("note"):
            out[name] = repr(value)
    return json.dumps(out, sort_keys=True)


def rng(kept):
    return hashlib.sha256(torch.get_rng_state().numpy()).hexdigest()


def wait(kept, step, level="memory"):
    return str(banyan.wait(step, level, 40))


def latest(kept):
    return banyan.latest()


def finish(kept):
    return str(banyan.finish())

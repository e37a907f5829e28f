# SPDX-License-Identifier: BSD-3-Clause
"""Megatron-core's dist_checkpointing on CPU tensors: rows that are split over the ranks, layers of one key, what all ranks have, objects."""

import io
import os
import warnings

warnings.filterwarnings("ignore")
import torch
import torch.distributed as dist
from common import RANK, STEPS, WORLD, log
from megatron.core import dist_checkpointing
from megatron.core.dist_checkpointing import ShardedObject, ShardedTensor
from megatron.core.dist_checkpointing.strategies.fully_parallel import FullyParallelSaveStrategyWrapper

import banyan_ckpt as banyan
from banyan_ckpt.megatron import LoadStrategy, SaveStrategy

dist.init_process_group("gloo")
banyan.init()
torch.manual_seed(3)
rows = torch.nn.Parameter(torch.randn(WORLD * 4, 8).tensor_split(WORLD)[RANK].clone())
layers = [torch.nn.Parameter(torch.randn(2 * WORLD, 3)[RANK * 2 + i].clone()) for i in range(2)]
bias = torch.nn.Parameter(torch.zeros(8))
parameters = [rows, *layers, bias]
optimizer = torch.optim.SGD(parameters, lr=0.05, momentum=0.9)
strategy = SaveStrategy()


def sharded(at):
    """The state, as Megatron describes it. Momentum is there from the first step on."""
    def four(prefix, tensors):
        return {f"{prefix}rows": ShardedTensor.from_rank_offsets(f"{prefix}rows", tensors[0], (0, RANK, WORLD)),
                **{f"{prefix}layer{i}": ShardedTensor.from_rank_offsets(f"{prefix}layers", tensors[1 + i], (0, RANK * 2 + i, 2 * WORLD), prepend_axis_num=1)
                   for i in range(2)},
                f"{prefix}bias": ShardedTensor.from_rank_offsets(f"{prefix}bias", tensors[3], replica_id=RANK)}
    moments = [optimizer.state[p].setdefault("momentum_buffer", torch.zeros_like(p)) for p in parameters]
    rng = ShardedObject("rng", [{"torch": torch.get_rng_state(), "odd": (1, None)}], (WORLD,), (RANK,))
    extra = ShardedObject("extra", io.BytesIO(b"\0of all"), (1,), (0,), replica_id=RANK)
    return {"model": four("model.", [p.data for p in parameters]), "optimizer": four("optimizer.", moments), "rng": rng, "extra": extra,
            "iteration": at}


def place(step):
    folder = f"out/iter_{step:07d}"
    os.makedirs(folder, exist_ok=True)
    dist.barrier()
    return folder


step, newest = 0, banyan.latest()
if newest is not None:
    found = dist_checkpointing.load(sharded(0), place(newest), LoadStrategy())
    with torch.no_grad():
        for i, (into, name) in enumerate(zip(parameters, ["rows", "layer0", "layer1", "bias"], strict=True)):
            into.copy_(found["model"][f"model.{name}"])
            optimizer.state[into]["momentum_buffer"].copy_(found["optimizer"][f"optimizer.{name}"])
    assert found["rng"][0]["odd"] == (1, None) and found["extra"].getvalue() == b"\0of all"
    torch.set_rng_state(found["rng"][0]["torch"])
    step = found["iteration"]
    assert step == newest
while step < STEPS:
    data = torch.randn(4, 8)
    loss = (data @ rows.t()).square().mean() + sum(layer.square().sum() for layer in layers) + (data + bias).square().mean()
    optimizer.zero_grad()
    loss.backward()
    dist.all_reduce(bias.grad)
    optimizer.step()
    torch.rand(RANK + 1)
    step += 1
    if "BANYAN_JOB" in os.environ:
        request = dist_checkpointing.save(sharded(step), place(step), FullyParallelSaveStrategyWrapper(strategy), async_sharded_save=True)
        request.execute_sync()
    log(step, loss, strategy.outcome)
print("ended", banyan.finish())
dist.destroy_process_group()

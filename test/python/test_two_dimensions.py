# SPDX-License-Identifier: BSD-3-Clause
"""FSDP2 over tensor parallelism, and over replicas: each rank's part lies where its offset says, also where rows do not divide."""

import sharded
import torch

import banyan_ckpt as banyan


class Pair(torch.nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.up = torch.nn.Linear(4, rows)
        self.down = torch.nn.Linear(rows, 3)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


def begin(kept, store, rows, kind, seed, directory=None):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    sharded.group(kept, store)
    torch.manual_seed(seed)
    model = Pair(rows)
    if kind == "tensor":
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        parallelize_module(model, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        fully_shard(model, mesh=mesh["dp"])
    elif kind == "replicas":
        fully_shard(model, mesh=init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard")))
    kept["state"] = {"model": model, "optimizer": torch.optim.AdamW(model.parameters(), lr=0.01)}
    banyan.init()
    loaded = banyan.load(kept["state"], directory=directory)
    kept["next"] = loaded.step + 1 if loaded else 0
    return loaded and loaded.step


def go_on(kept):
    torch.manual_seed(3)
    kept["state"]["model"](torch.randn(4, 4)).square().mean().backward()
    kept["state"]["optimizer"].step()
    assert banyan.save(kept["next"], kept["state"])
    kept["next"] += 1


def tried(lab, rows, kind):
    nodes = lab.daemons()
    out = lab.tmp / "out"
    out.mkdir(mode=0o777)
    nodes.open(7, 4, directory=out, flush=1)
    first = lab.ranks(nodes, 7, 4)
    first.run(begin, lab.tmp / "a", rows, kind, 0)
    first.run(go_on)
    assert first.run(sharded.wait, "durable") == ["step 0: ok"] * 4
    expected = first.run(sharded.whole)
    assert all(one == expected[0] for one in expected)
    first.kill()
    nodes.begin(7, 1)
    second = lab.ranks(nodes, 7, 4)
    assert second.run(begin, lab.tmp / "b", rows, kind, 9) == [0] * 4
    assert second.run(sharded.whole) == expected
    alone = lab.rank({"BANYAN_LIB": nodes.environment(7, 0, 1)["BANYAN_LIB"], "RANK": "0", "WORLD_SIZE": "1"})
    assert alone.run(begin, lab.tmp / "c", rows, "plain", 5, out) == 0
    assert alone.run(sharded.whole) == expected[0]


def test_over_tensor_parallelism(lab):
    tried(lab, 8, "tensor")


def test_over_tensor_parallelism_in_uneven_parts(lab):
    tried(lab, 6, "tensor")


def test_over_replicas_in_uneven_parts(lab):
    tried(lab, 5, "replicas")

# SPDX-License-Identifier: BSD-3-Clause
"""A training with FSDP2 on gloo: rows that do not divide by the ranks, and a tensor with fewer rows than ranks."""

import os

import torch
import torch.distributed as dist

import banyan_ckpt as banyan


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 5)
        self.second = torch.nn.Linear(5, 1)  # one row
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.seen += 1
        return self.second(torch.relu(self.first(x)))


def group(kept, store):
    """The process group; `store` is a file that is there for this start alone."""
    kept["rank"], kept["world"] = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=kept["rank"], world_size=kept["world"])


def begin(kept, store, seed=0, directory=None):
    from torch.distributed.fsdp import fully_shard
    group(kept, store)
    torch.manual_seed(seed)
    model = Net()
    fully_shard(model)
    kept["state"] = {"model": model, "optimizer": torch.optim.AdamW(model.parameters(), lr=0.01), "rng": banyan.Rng(), "note": kept["rank"]}
    banyan.init(directory=directory)
    loaded = banyan.load(kept["state"])
    kept["next"] = loaded.step + 1 if loaded else 0
    return None if loaded is None else (loaded.step, loaded.own, loaded.rank, loaded.world)


def go_on(kept, steps, overlap=False):
    losses = []
    model, optimizer = kept["state"]["model"], kept["state"]["optimizer"]
    for _ in range(steps):
        torch.manual_seed(kept["next"])  # the same batch in each world
        loss = model(torch.randn(4, 6)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        saved = banyan.save(kept["next"], kept["state"], overlap=overlap)
        assert saved, saved
        losses.append(loss.item())
        kept["next"] += 1
    return losses


def whole(kept):
    """All tensors, put together, by name."""
    out = {}
    names = {id(p): name for name, p in kept["state"]["model"].named_parameters()}
    for name, tensor in kept["state"]["model"].state_dict().items():
        out[name] = full(tensor)
    for parameter, per in kept["state"]["optimizer"].state.items():
        for key, value in per.items():
            out[f"{names[id(parameter)]}.{key}"] = full(value)
    return {name: value.tolist() for name, value in out.items()}


def full(tensor):
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def note(kept):
    return kept["state"]["note"]


def wait(kept, level):
    return str(banyan.wait(kept["next"] - 1, level, 30))


def finish(kept):
    return str(banyan.finish())

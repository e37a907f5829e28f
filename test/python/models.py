# SPDX-License-Identifier: BSD-3-Clause
"""A small training of each kind that the tests save, and what ranks do with it."""

import hashlib

import torch

import banyan_ckpt as banyan


def net(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 4))


def training(seed=0):
    """Model, optimizer, schedule, random numbers and a counter."""
    model = net(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 4])
    return {"model": model, "optimizer": optimizer, "schedule": schedule, "rng": banyan.Rng(), "epoch": 0}


def train(state):
    """One step; returns its loss."""
    state["model"].train()
    loss = state["model"](torch.randn(12, 8)).square().mean()
    state["optimizer"].zero_grad()
    loss.backward()
    state["optimizer"].step()
    state["schedule"].step()
    return loss.item()


def digest(state):
    """The bits of all tensors of a training."""
    out = hashlib.sha256()
    tensors = dict(state["model"].state_dict())
    for i, per in state["optimizer"].state_dict()["state"].items():
        tensors |= {f"{i}.{key}": value for key, value in per.items()}
    for key in sorted(tensors):
        value = tensors[key]
        out.update(key.encode() + str(value.dtype).encode() + str(tuple(value.shape)).encode())
        out.update(value.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return out.hexdigest()


def begin(kept, seed=0):
    """init() and load(); the step that was loaded, or None."""
    banyan.init()
    kept["state"] = training(seed)
    loaded = banyan.load(kept["state"])
    kept["loaded"] = loaded
    kept["next"] = loaded.step + 1 if loaded else 0
    return loaded.step if loaded else None


def go_on(kept, steps):
    """Trains and saves; the losses, and whether each save was taken."""
    out = []
    for _ in range(steps):
        loss = train(kept["state"])
        kept["state"]["epoch"] = kept["next"]
        saved = banyan.save(kept["next"], kept["state"])
        out.append((loss, str(saved)))
        kept["next"] += 1
    return out


def bits(kept):
    return digest(kept["state"])


def wait(kept, level="memory"):
    return str(banyan.wait(kept["next"] - 1, level, 30))


def finish(kept):
    return str(banyan.finish())

# SPDX-License-Identifier: BSD-3-Clause
"""Optimizers, schedules, scalers, data loaders and modules of each kind go on as if nothing had happened."""

import inspect

import pytest
import torch

import banyan_ckpt as banyan

OPTIMIZERS = sorted(name for name, kind in vars(torch.optim).items()
                    if inspect.isclass(kind) and issubclass(kind, torch.optim.Optimizer) and kind is not torch.optim.Optimizer)
SCHEDULES = {
    "MultiStepLR": lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [1, 3]),
    "LambdaLR": lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda n: 0.9**n),
    "OneCycleLR": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, 10),
    "CyclicLR": lambda o: torch.optim.lr_scheduler.CyclicLR(o, 0.01, 0.1, cycle_momentum=False),
    "CosineAnnealingWarmRestarts": lambda o: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 2),
    "SequentialLR": lambda o: torch.optim.lr_scheduler.SequentialLR(
        o, [torch.optim.lr_scheduler.ConstantLR(o), torch.optim.lr_scheduler.ExponentialLR(o, 0.9)], [2]),
}


def made(name, seed):
    torch.manual_seed(seed)
    model = torch.nn.Linear(4, 4, bias=False)
    kind = getattr(torch.optim, name)
    parameters = model.weight if name != "SparseAdam" else model.weight
    return {"model": model, "optimizer": kind([parameters], lr=0.05)}


def step(state, seed):
    torch.manual_seed(seed)
    data = torch.randn(3, 4)
    optimizer = state["optimizer"]

    def closure():
        optimizer.zero_grad()
        loss = state["model"](data).square().mean()
        loss.backward()
        weight = state["model"].weight
        if type(optimizer).__name__ == "SparseAdam":
            weight.grad = weight.grad.to_sparse()
        return loss

    loss = optimizer.step(closure)
    if "schedule" in state:
        state["schedule"].step()
    return loss.item()


def tried(kept, name, schedule=None):
    """Trains on after the save; and from the save, with objects made anew. Both losses."""
    kept.setdefault("next", 0)
    if "me" not in kept:
        kept["me"] = banyan.init()
        banyan.load(None)
    state = made(name, 0)
    if schedule:
        state["schedule"] = SCHEDULES[schedule](state["optimizer"])
    for seed in range(3):
        step(state, seed)
    kept["next"] += 1
    assert banyan.save(kept["next"], state)
    expected = [step(state, seed) for seed in range(3, 6)]
    fresh = made(name, 7)
    if schedule:
        fresh["schedule"] = SCHEDULES[schedule](fresh["optimizer"])
    assert banyan.wait(kept["next"], timeout=30)
    assert banyan.load(fresh).step == kept["next"]
    return expected, [step(fresh, seed) for seed in range(3, 6)], fresh["optimizer"].param_groups[0]["lr"], \
        state["optimizer"].param_groups[0]["lr"]


def test_each_optimizer_and_schedule(lab):
    nodes = lab.daemons()
    nodes.open(7)
    rank = lab.ranks(nodes, 7)[0]
    for name in OPTIMIZERS:
        expected, again, lr, expected_lr = rank.run(tried, name)
        assert again == expected and lr == expected_lr, name
    for schedule in SCHEDULES:
        expected, again, lr, expected_lr = rank.run(tried, "AdamW", schedule)
        assert again == expected and lr == expected_lr, schedule
    assert len(OPTIMIZERS) > 10


class Extra(torch.nn.Module):
    """A module with a state that is no tensor, and one that it makes anew."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3))
        self.said = None

    def get_extra_state(self):
        return {"said": self.said, "at": (1, 2)}

    def set_extra_state(self, state):
        self.said = state["said"]


class Doubled(torch.nn.Module):
    """state_dict() has other tensors than the module."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3))
        self.register_state_dict_post_hook(lambda module, state, prefix, _: state.__setitem__(prefix + "weight", state[prefix + "weight"] * 2))
        self.register_load_state_dict_pre_hook(lambda module, state, prefix, *_: state.__setitem__(prefix + "weight", state[prefix + "weight"] / 2))


def modules(kept):
    banyan.init()
    banyan.load(None)
    torch.manual_seed(0)
    extra, doubled = Extra(), Doubled()
    extra.said = "hello"
    compiled = torch.compile(torch.nn.Sequential(torch.nn.Linear(2, 2)))
    part = torch.nn.Sequential(torch.compile(torch.nn.Linear(2, 2)))
    raw = torch.compile(torch.nn.Linear(2, 2)).state_dict()
    assert all("_orig_mod" in key for key in raw)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**7)
    state = {"extra": extra, "doubled": doubled, "compiled": compiled, "part": part, "raw": raw, "scaler": scaler}
    assert banyan.save(1, state) and banyan.wait(1, timeout=30)
    again = {"extra": Extra(), "doubled": Doubled(), "compiled": torch.nn.Sequential(torch.nn.Linear(2, 2)),
             "part": torch.nn.Sequential(torch.nn.Linear(2, 2)), "raw": torch.nn.Linear(2, 2).state_dict(), "scaler": torch.amp.GradScaler("cpu")}
    assert banyan.load(again).step == 1
    assert again["extra"].said == "hello" and torch.equal(again["extra"].weight, extra.weight)
    assert torch.equal(again["doubled"].weight, doubled.weight)
    assert torch.equal(again["compiled"][0].weight, compiled._orig_mod[0].weight)
    assert torch.equal(again["part"][0].weight, part[0]._orig_mod.weight)
    assert torch.equal(again["raw"]["weight"], raw["_orig_mod.weight"])
    assert again["scaler"].get_scale() == 2.0**7


def test_modules_of_each_kind(lab):
    nodes = lab.daemons()
    nodes.open(7)
    lab.ranks(nodes, 7)[0].run(modules)


def loader(kept, workers):
    from torchdata.stateful_dataloader import StatefulDataLoader
    torch.manual_seed(0)
    return StatefulDataLoader(torch.arange(40), batch_size=3, shuffle=True, num_workers=workers)


def read_and_save(kept, workers):
    banyan.init()
    banyan.load(None)
    data = loader(kept, workers)
    batches = iter(data)
    for _ in range(5):
        next(batches)
    assert banyan.save(1, {"loader": data, "rng": banyan.Rng()}) and banyan.wait(1, timeout=30)
    return [batch.tolist() for batch in batches]


def read_on(kept, workers):
    banyan.init()
    torch.manual_seed(99)
    data = loader(kept, workers)
    assert banyan.load({"loader": data, "rng": banyan.Rng()}).step == 1
    return [batch.tolist() for batch in data]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_data_loader_goes_on_where_it_was(lab, workers):
    pytest.importorskip("torchdata")
    nodes = lab.daemons()
    nodes.open(7)
    first = lab.ranks(nodes, 7)[0]
    expected = first.run(read_and_save, workers)
    assert len(expected) == 9
    first.kill()
    nodes.begin(7, 1)
    assert lab.ranks(nodes, 7)[0].run(read_on, workers) == expected

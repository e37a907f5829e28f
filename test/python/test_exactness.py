# SPDX-License-Identifier: BSD-3-Clause
"""What is loaded is what was saved, for states of a shape that the other tests have not; what cannot be is refused before anything is changed."""

import numpy as np
import pytest
import torch
from states import refused

import banyan_ckpt as banyan


def begun(kept):
    banyan.init()
    assert banyan.load(None) is None


def saved(step, state):
    assert banyan.save(step, state) and banyan.wait(step, timeout=30)


def two_layers(grouped):
    """Two weights of one shape; `grouped` makes an optimizer of them."""
    model = torch.nn.ModuleDict({"a": torch.nn.Linear(3, 3, bias=False), "b": torch.nn.Linear(3, 3, bias=False)})
    groups = grouped(model["a"].weight, model["b"].weight)
    return {"model": model, "optimizer": torch.optim.Adam([{"params": group, "lr": 0.1 * (i + 1)} for i, group in enumerate(groups)])}


def another_order(kept):
    begun(kept)
    first = two_layers(lambda a, b: [[a, b]])
    model = first["model"]
    (model["a"](torch.ones(1, 3)).sum() + 5 * model["b"](torch.ones(1, 3)).sum()).backward()
    first["optimizer"].step()
    first["optimizer"].state["of all"] = 7
    saved(1, first)
    split = two_layers(lambda a, b: [[a], [b]])
    before = split["model"]["a"].weight.detach().clone()
    named = refused(banyan.load, split)
    assert named[0] == "optimizer" and "groups of 1, 1 parameters here" in named[2]
    assert torch.equal(split["model"]["a"].weight, before), "nothing was changed"
    second = two_layers(lambda a, b: [[b, a]])
    assert banyan.load(second).step == 1
    assert second["optimizer"].state["of all"] == 7
    for name in "ab":
        was, now = (one["optimizer"].state[one["model"][name].weight] for one in (first, second))
        assert all(torch.equal(was[key], now[key]) for key in was), name


def test_an_optimizer_with_its_parameters_in_another_order(lab):
    nodes = lab.daemons()
    nodes.open(7)
    lab.ranks(nodes, 7)[0].run(another_order)


def shuffled(seed):
    from torchdata.stateful_dataloader import StatefulDataLoader
    torch.manual_seed(seed)
    return {"loader": StatefulDataLoader(list(range(12)), batch_size=2, shuffle=True), "rng": banyan.Rng()}


def drawing(kept, seed):
    """Two epochs, in each step a draw as a dropout's, saved up to step 2: what was drawn from the step after the one that was loaded."""
    banyan.init()
    state, out = shuffled(seed), []
    loaded = banyan.load(state)
    step = loaded.step + 1 if loaded else 0
    while step < 12:
        for batch in state["loader"]:
            out.append((batch.tolist(), torch.rand(1).item()))
            if step <= 2:
                assert banyan.save(step, state)
            step += 1
    assert banyan.wait(2, timeout=30)
    return out


def test_a_loader_that_draws_its_seed_leaves_random_numbers_as_they_were(lab):
    nodes = lab.daemons()
    nodes.open(7)
    first = lab.ranks(nodes, 7)
    expected = first[0].run(drawing, 0)
    first.kill()
    nodes.begin(7, 1)
    assert lab.ranks(nodes, 7)[0].run(drawing, 5) == expected[3:]


def swapped(kept):
    """parameter.data = ... frees the memory of a parameter, while it is copied."""
    begun(kept)
    module = torch.nn.Module()
    module.large = torch.nn.Parameter(torch.ones(64 << 20))
    state = {"model": module, "optimizer": torch.optim.SGD(module.parameters(), lr=0.1)}
    assert banyan.save(1, state)
    new = torch.zeros(3)
    assert banyan.save(2, state, overlap=True)
    module.large.data = new
    assert banyan.wait(2, timeout=30)
    into = {"model": {"large": torch.zeros(64 << 20)}}
    assert banyan.load(into).step == 2
    return bool((into["model"]["large"] == 1).all())


def test_memory_that_is_freed_while_it_is_copied(lab):
    nodes = lab.daemons()
    nodes.open(7)
    rank = lab.ranks(nodes, 7)[0]
    rank.say(swapped)
    assert rank.hear(), "the process lives, and what was sealed is what was there"


class Listed:
    """Its state is no dictionary."""

    def state_dict(self):
        return [1]

    def load_state_dict(self, state_dict):
        raise AssertionError


def odd_states(kept):
    begun(kept)
    counts = {"_orig_mod.weight": 3}  # of a compiled module's parameters
    saved(1, {"counts": dict(counts)})
    again = {"counts": {"_orig_mod.weight": 0}}
    assert banyan.load(again).step == 1 and again["counts"] == counts
    named = refused(banyan.save, 2, {"listed": Listed()})
    assert named[0] == "listed" and "returns a list" in named[2]
    module = torch.nn.Module()
    module.register_buffer("mask", torch.arange(3.0).expand(4, 3))
    saved(2, {"model": module})
    other = torch.nn.Module()
    other.register_buffer("mask", torch.zeros(3).expand(4, 3))
    assert banyan.load({"model": other}).step == 2
    assert torch.equal(other.mask, module.mask) and other.mask.stride() == (0, 1)
    scripted = torch.jit.script(torch.nn.Linear(3, 2))
    saved(3, {"model": scripted})
    plain = torch.nn.Linear(3, 2)
    assert banyan.load({"model": plain}).step == 3 and torch.equal(plain.weight, scripted.weight)
    saved(4, {"t": torch.arange(12.0).reshape(4, 3)})
    named = refused(banyan.load, {"t": torch.zeros(3).expand(4, 3)})
    assert named[0] == "t" and "expanded" in named[2]


def test_keys_objects_and_tensors_of_odd_kinds(lab):
    nodes = lab.daemons()
    nodes.open(7)
    lab.ranks(nodes, 7)[0].run(odd_states)


def of_numpy(kept):
    begun(kept)
    values = [np.str_(""), np.bytes_(b""), np.zeros((0, 3), np.float32), np.array(["", "x"])]
    saved(1, {"values": values})
    found = banyan.load().state["values"]
    assert [(type(one), one.dtype, one.tolist()) for one in found] == [(type(one), one.dtype, one.tolist()) for one in values]
    for other in (np.ma.masked_array([1, 2], mask=[0, 1]), np.matrix([[1]])):
        assert refused(banyan.save, 2, {"values": {"other": other}})[0] == "values.other"


def test_numpy_values_come_back_or_are_refused(lab):
    nodes = lab.daemons()
    nodes.open(7)
    lab.ranks(nodes, 7)[0].run(of_numpy)


def begun_again(kept):
    banyan.init()
    refused(banyan.load, {"unknown": torch.zeros(1)})
    banyan.init()
    with pytest.raises(banyan.Error, match=r"nothing is saved, since load\(\) failed"):
        banyan.save(9, {"t": torch.zeros(1)})
    assert banyan.load({"t": torch.zeros(1)}).step == 1
    assert banyan.save(9, {"t": torch.zeros(1)})


def one_saved(kept):
    begun(kept)
    saved(1, {"t": torch.ones(1)})


def test_init_again_after_a_load_that_failed(lab):
    nodes = lab.daemons()
    nodes.open(7)
    first = lab.ranks(nodes, 7)
    first[0].run(one_saved)
    first.kill()
    nodes.begin(7, 1)
    lab.ranks(nodes, 7)[0].run(begun_again)

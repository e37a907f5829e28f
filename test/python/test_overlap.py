# SPDX-License-Identifier: BSD-3-Clause
"""save(overlap=True) seals one step exactly, though forward and backward run beside the copy."""

import models
import pytest
import torch

import banyan_ckpt as banyan
from banyan_ckpt import _overlap


class Wide(torch.nn.Module):
    """A batch norm, and enough weights that a copy takes longer than a forward."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(8)
        self.out = torch.nn.Linear(8, 4)
        self.large = torch.nn.Parameter(torch.randn(8 << 20))
        self.last = torch.nn.Parameter(torch.ones(3))
        self.frozen = torch.nn.Parameter(torch.zeros(3), requires_grad=False)

    def forward(self, x):
        self.frozen.data += 1  # as a moving average of weights does
        return self.out(self.norm(x)) + self.large[:4] + self.last.sum() + self.frozen.sum()


def begin(kept, seed=0):
    banyan.init()
    torch.manual_seed(seed)
    model = Wide()
    kept["state"] = {"model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), "rng": banyan.Rng(), "epoch": 0}
    loaded = banyan.load(kept["state"])
    kept["next"] = loaded.step + 1 if loaded else 0
    return loaded and loaded.step


def forward_backward(kept):
    loss = kept["state"]["model"](torch.randn(12, 8)).square().mean()
    kept["state"]["optimizer"].zero_grad()
    loss.backward()
    return loss.item()


def step(kept, overlap):
    """Ends one step, saves it, and runs the next forward and backward. What the step was, and whether the copy went on beside them."""
    kept["state"]["optimizer"].step()
    expected = (bits(kept), torch.get_rng_state().sum().item())
    kept["state"]["epoch"] = kept["next"]
    saved = banyan.save(kept["next"], kept["state"], overlap=overlap)
    assert saved, saved
    kept["state"]["epoch"] = -1
    was_beside = _overlap._beside is not None
    loss = forward_backward(kept)
    kept["next"] += 1
    return expected, was_beside, loss


def bits(kept):
    return models.digest(kept["state"])


def rng(kept):
    return torch.get_rng_state().sum().item()


@pytest.mark.parametrize("overlap", [True, False])
def test_what_is_sealed_is_one_step(lab, overlap):
    nodes = lab.daemons()
    nodes.open(7)
    rank = lab.ranks(nodes, 7)[0]
    assert rank.run(begin) is None
    rank.run(forward_backward)
    done = [rank.run(step, overlap) for _ in range(3)]
    assert all(was == overlap for _, was, _ in done)
    last, loss = done[-1][0], done[-1][2]
    assert str(rank.run(waited, 2)) == "step 2: ok"
    assert rank.run(bits) != last[0], "forward changed nothing: the test would pass without its subject"
    rank.kill()
    nodes.begin(7, 1)
    again = lab.ranks(nodes, 7)[0]
    assert again.run(begin, 5) == 2
    assert (again.run(bits), again.run(rng)) == last
    assert again.run(models_epoch) == 2
    assert again.run(forward_backward) == loss


def step_by_another(kept):
    """An optimizer that is not in the state steps while the copy of what it changes goes on."""
    another = torch.optim.SGD([kept["state"]["model"].last], lr=1.0)  # what is copied last
    kept["state"]["optimizer"].step()
    expected = bits(kept)
    saved = banyan.save(0, kept["state"], overlap=True)
    assert saved and _overlap._beside is not None
    another.step()
    return expected, bits(kept)


def test_an_optimizer_outside_of_the_state_waits(lab):
    nodes = lab.daemons()
    nodes.open(7)
    rank = lab.ranks(nodes, 7)[0]
    rank.run(begin)
    rank.run(forward_backward)
    sealed, after = rank.run(step_by_another)
    assert sealed != after
    assert str(rank.run(waited, 0)) == "step 0: ok"
    rank.kill()
    nodes.begin(7, 1)
    again = lab.ranks(nodes, 7)[0]
    assert again.run(begin, 5) == 0
    assert again.run(bits) == sealed


def models_epoch(kept):
    return kept["state"]["epoch"]


def waited(kept, number):
    return banyan.wait(number, "memory", 30)


class StepsAlone(torch.optim.SGD):
    """An optimizer whose step() calls no hook."""


StepsAlone.step = lambda self, closure=None: None
StepsAlone.step.hooked = True  # so that torch leaves it as it is ...


def refusals(kept):
    begin(kept)
    model = kept["state"]["model"]
    alone = StepsAlone(model.parameters(), lr=0.1)
    StepsAlone.step.hooked = False  # ... and we see what it is
    said = [refused({"model": model, "bare": alone}), refused({"model": model, "optimizer": kept["state"]["optimizer"].state_dict()})]
    inside = torch.optim.SGD([model.out.bias], lr=0.1)
    handle = model.out.bias.register_post_accumulate_grad_hook(lambda p: inside.step())
    assert banyan.save(1, {"model": model, "inside": inside}, overlap=True)
    forward_backward(kept)
    said.append(refused({"model": model, "inside": inside}))
    handle.remove()
    assert banyan.save(2, kept["state"], overlap=True)
    assert banyan.wait(2, timeout=30)
    return said


def refused(state):
    with pytest.raises(banyan.StateError) as caught:
        banyan.save(9, state, overlap=True)
    return caught.value.key, str(caught.value)


def test_optimizers_that_cannot_wait_are_named(lab):
    nodes = lab.daemons()
    nodes.open(7)
    bare, missing, inside = lab.ranks(nodes, 7)[0].run(refusals)
    assert bare[0] == "bare" and "pre-hook" in bare[1] and "StepsAlone" in bare[1]
    assert missing[0] == "" and "has no optimizer" in missing[1]
    assert inside[0] == "inside" and "inside backward" in inside[1]


def leave(kept, how):
    """Ends the process while a copy goes on."""
    import os
    import sys
    forward_backward(kept)
    kept["state"]["optimizer"].step()
    assert banyan.save(kept["next"], kept["state"], overlap=True)
    if how == "hard":
        os._exit(3)
    sys.exit(0)


def test_exit_while_a_copy_goes_on(lab):
    nodes = lab.daemons()
    nodes.open(7)
    rank = lab.ranks(nodes, 7)[0]
    rank.run(begin)
    rank.run(forward_backward)
    expected = rank.run(step, True)[0]
    assert rank.run(waited, 0)
    rank.say(leave, "hard")
    rank.process.join()
    nodes.begin(7, 1)
    again = lab.ranks(nodes, 7)[0]
    found = again.run(begin, 5)
    assert found in (0, 1)
    if found == 0:
        assert (again.run(bits), again.run(rng)) == expected


def beside_and_forked(kept):
    """A DataLoader's workers are forked while a copy goes on."""
    from torch.utils.data import DataLoader, TensorDataset
    forward_backward(kept)
    kept["state"]["optimizer"].step()
    data = DataLoader(TensorDataset(torch.arange(64.0)), batch_size=8, num_workers=2, multiprocessing_context="fork")
    assert banyan.save(kept["next"], kept["state"], overlap=True)
    total = sum(batch[0].sum().item() for batch in data)
    kept["next"] += 1
    assert banyan.save(kept["next"], kept["state"], overlap=True)
    assert banyan.wait(kept["next"], timeout=30)
    return total


def test_workers_forked_while_a_copy_goes_on(lab):
    nodes = lab.daemons()
    nodes.open(7)
    rank = lab.ranks(nodes, 7)[0]
    rank.run(begin)
    assert rank.run(beside_and_forked) == 64 * 63 / 2

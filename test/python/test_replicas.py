# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that hold the same, as in data parallel training: storage has one copy, and each rank still gets what is its own."""

import models
import torch

import banyan_ckpt as banyan


def begin(kept):
    import os
    banyan.init()
    kept["rank"] = int(os.environ["RANK"])
    kept["state"] = {"model": models.net(), "own": banyan.Rng(), "rank": None}
    kept["state"]["optimizer"] = torch.optim.AdamW(kept["state"]["model"].parameters(), lr=0.01)
    loaded = banyan.load(kept["state"])
    return loaded and (loaded.step, loaded.own, loaded.rank)


def train_and_save(kept):
    torch.manual_seed(1)
    state = kept["state"]
    state["model"](torch.randn(12, 8)).square().mean().backward()
    state["optimizer"].step()
    torch.manual_seed(100 + kept["rank"])
    state["rank"] = kept["rank"]
    assert banyan.save(1, state) and banyan.wait(1, "durable", 30)


def found(kept):
    return models.digest(kept["state"]), kept["state"]["rank"], torch.initial_seed(), torch.rand(1).item()


def test_each_rank_from_storage(lab):
    nodes = lab.daemons(2)
    out = lab.tmp / "out"
    out.mkdir(mode=0o777)
    nodes.open(7, 2, directory=out, flush=1)
    first = lab.ranks(nodes, 7, 2)
    assert first.run(begin) == [None] * 4
    first.run(train_and_save)
    expected = first.run(found)
    assert len({one[0] for one in expected}) == 1 and len({one[3] for one in expected}) == 4
    first.kill()
    for node in (1, 2):
        nodes.detach(7, node)
        nodes.close(7, node)
    nodes.open(8, 2, directory=out, flush=1)
    second = lab.ranks(nodes, 8, 2)
    assert second.run(begin) == [(1, True, rank) for rank in range(4)]
    assert second.run(found) == expected
    second.kill()
    for node in (1, 2):
        nodes.detach(8, node)
        nodes.close(8, node)
    nodes.open(9, 1, directory=out, flush=1)
    third = lab.ranks(nodes, 9)
    assert third.run(begin) == [(1, False, 0), (1, False, 1)]
    assert third.run(found) == expected[:2]

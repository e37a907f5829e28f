# SPDX-License-Identifier: BSD-3-Clause
"""FSDP2's sharded state: the same world, another one from storage, and outside of any job."""

import pytest
import sharded
import torch

import banyan_ckpt as banyan


@pytest.mark.parametrize("overlap", [False, True])
def test_same_world_from_memory(lab, overlap):
    nodes = lab.daemons(2)
    nodes.open(7)
    first = lab.ranks(nodes, 7)
    assert first.run(sharded.begin, lab.tmp / "a") == [None, None]
    first.run(sharded.go_on, 2, overlap)
    assert first.run(sharded.wait, "memory") == ["step 1: ok"] * 2
    expected = first.run(sharded.whole)
    first.kill()
    nodes.begin(7, 1)
    second = lab.ranks(nodes, 7)
    assert second.run(sharded.begin, lab.tmp / "b", 99) == [(1, True, 0, 2), (1, True, 1, 2)]
    assert second.run(sharded.whole) == expected
    assert second.run(sharded.note) == [0, 1]
    assert second.run(sharded.go_on, 1)


def load_alone(kept, directory):
    """Without a job: the model from its checkpoint directory."""
    model = sharded.Net()
    banyan.init()
    loaded = banyan.load({"model": model}, directory=directory)
    whole = banyan.load(directory=directory)
    assert torch.equal(whole.state["model"]["first.weight"], model.first.weight)
    return loaded.step, loaded.unused, loaded.own, {name: t.tolist() for name, t in model.state_dict().items()}, sorted(whole.state)


def test_any_world_from_a_directory(lab):
    nodes = lab.daemons(2)
    out = lab.tmp / "out"
    out.mkdir(mode=0o777)
    nodes.open(7, directory=out, flush=1)
    first = lab.ranks(nodes, 7)
    first.run(sharded.begin, lab.tmp / "a")
    first.run(sharded.go_on, 2)
    assert first.run(sharded.wait, "durable") == ["step 1: ok"] * 2
    expected = first.run(sharded.whole)[0]
    alone = lab.rank({"BANYAN_LIB": nodes.environment(7, 0, 1)["BANYAN_LIB"]})
    step, unused, own, found, keys = alone.run(load_alone, out)
    assert (step, unused, own) == (1, ("optimizer", "rng", "note"), False)
    assert keys == ["model", "note", "optimizer", "rng"]
    assert found == {name: value for name, value in expected.items() if name in found}
    three = [lab.rank({"RANK": str(r), "WORLD_SIZE": "3", "BANYAN_LIB": nodes.environment(7, 0, 1)["BANYAN_LIB"]}) for r in range(3)]
    for rank in three:
        rank.say(reshard, lab.tmp / "b", out)
    found = [rank.hear() for rank in three]
    assert [f[0] for f in found] == [(1, False, 0, 2), (1, False, 1, 2), (1, False, 0, 2)]
    assert all(f[1] == expected for f in found)
    assert [f[2] for f in found] == [0, 1, 0]


def reshard(kept, store, directory):
    sharded.begin(kept, store, 5)
    loaded = banyan.load(kept["state"], directory=directory)
    return (loaded.step, loaded.own, loaded.rank, loaded.world), sharded.whole(kept), kept["state"]["note"]


def test_without_a_job(lab):
    out = lab.tmp / "offline"
    pair = [lab.rank({"RANK": str(r), "WORLD_SIZE": "2"}, lab.tmp / "err") for r in range(2)]

    def both(function, *arguments):
        for rank in pair:
            rank.say(function, *arguments)
        return [rank.hear() for rank in pair]

    assert both(sharded.begin, lab.tmp / "a", 0, out) == [None, None]
    losses = both(sharded.go_on, 3)
    expected = both(sharded.whole)
    assert sorted(p.name for p in out.iterdir()) == ["step-000000000001", "step-000000000002"]
    assert (lab.tmp / "err").read_text().count("no banyan job here") == 1
    for rank in pair:
        rank.kill()
    pair = [lab.rank({"RANK": str(r), "WORLD_SIZE": "2"}) for r in range(2)]
    assert both(sharded.begin, lab.tmp / "b", 9, out) == [(2, True, 0, 2), (2, True, 1, 2)]
    assert both(sharded.whole) == expected and losses
    one = lab.rank({"RANK": "0", "WORLD_SIZE": "1"})
    assert one.run(sharded.begin, lab.tmp / "c", 9, out) == (2, False, 0, 2)
    assert one.run(sharded.whole) == expected[0]


def test_another_world_of_a_job_from_storage(lab):
    nodes = lab.daemons(3)
    out = lab.tmp / "out"
    out.mkdir(mode=0o777)
    nodes.open(7, 2, [1, 2], directory=out, flush=1)
    first = lab.ranks(nodes, 7, 2, [1, 2])
    assert first.run(sharded.begin, lab.tmp / "a") == [None] * 4
    first.run(sharded.go_on, 2)
    assert first.run(sharded.wait, "durable") == ["step 1: ok"] * 4
    expected = first.run(sharded.whole)[0]
    assert first.run(sharded.finish) == ["step 1: ok"] * 4
    first.kill()
    for node in (1, 2):
        nodes.detach(7, node)
    nodes.open(8, 1, [1, 2, 3], directory=out, flush=1)
    second = lab.ranks(nodes, 8)
    assert second.run(sharded.begin, lab.tmp / "b", 9) == [(1, False, rank, 4) for rank in range(3)]
    assert second.run(sharded.whole) == [expected] * 3
    assert second.run(sharded.note) == [0, 1, 2]
    second.run(sharded.go_on, 1)
    assert second.run(sharded.wait, "durable") == ["step 2: ok"] * 3


def test_fewer_nodes_from_memory(lab):
    nodes = lab.daemons(4)
    slots = [{"ranks": [i], "buddy": (i + 1) % 4} for i in range(4)]
    nodes.open(7, slots=slots, min_nodes=2, group=1)
    first = lab.ranks(nodes, 7)
    first.run(sharded.begin, lab.tmp / "a")
    first.run(sharded.go_on, 2)
    assert first.run(sharded.wait, "replicated") == ["step 1: ok"] * 4
    expected = first.run(sharded.whole)[0]
    first.kill()
    nodes.kill(3)
    left = [1, 2, 4]
    nodes.begin(7, 1, left)
    second = lab.ranks(nodes, 7, 1, left)
    assert second.run(sharded.begin, lab.tmp / "b", 9) == [(1, False, rank, 4) for rank in range(3)]
    assert second.run(sharded.whole) == [expected] * 3
    second.run(sharded.go_on, 1)
    assert second.run(sharded.wait, "replicated") == ["step 2: ok"] * 3

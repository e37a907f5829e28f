# SPDX-License-Identifier: BSD-3-Clause
"""dcp.save and dcp.load with banyan's writer and reader: the same layout, values without pickle, and what must not be taken for success."""

import pickle

import dcp_jobs
import pytest
import ranks
import torch
import torch.distributed.checkpoint as dcp

import banyan_ckpt as banyan
from banyan_ckpt.dcp import LoadPlanner, Reader, SavePlanner, Writer

NOTE = {"step": 3, "none": None, "list": [1, 2.5, "three"], "tuple": (1, 2), "bytes": b"\0\1"}


@pytest.mark.parametrize(("kind", "per_node"), [("fsdp", 1), ("ddp", 1), ("hsdp", 2), ("tp", 2)])
def test_the_same_layout_from_memory(lab, kind, per_node):
    nodes = lab.daemons(2)
    nodes.open(7, per_node)
    first = lab.ranks(nodes, 7, per_node)
    world = 2 * per_node
    first.run(dcp_jobs.make, lab.tmp / "a", kind)
    assert first.run(dcp_jobs.latest) == [None] * world
    first.run(dcp_jobs.train, 2)
    assert first.run(dcp_jobs.save, 2) == ["step 2: ok"] * world
    first.run(dcp_jobs.train, 1)
    assert first.run(dcp_jobs.save, 3) == ["step 3: ok"] * world
    assert first.run(dcp_jobs.wait, 3) == ["step 3: ok"] * world
    expected, rng, on = first.run(dcp_jobs.bits), first.run(dcp_jobs.rng), first.run(dcp_jobs.train, 2)
    first.kill()
    nodes.begin(7, 1)
    second = lab.ranks(nodes, 7, per_node)
    second.run(dcp_jobs.make, lab.tmp / "b", kind, 9)
    assert second.run(dcp_jobs.latest) == [3] * world
    assert second.run(dcp_jobs.load) == [(3, NOTE, rank) for rank in range(world)]
    assert second.run(dcp_jobs.bits) == expected
    assert second.run(dcp_jobs.rng) == rng and len(set(rng)) == world
    assert second.run(dcp_jobs.train, 2) == on
    assert second.run(dcp_jobs.save, 5) == ["step 5: ok"] * world


def no_pickle(*arguments, **named):
    raise AssertionError("something was pickled")


def alone(kept, planner):
    """Values of all kinds and odd tensors, by a rank without a process group; the planner is left to DCP, or is ours."""
    banyan.init()
    base = torch.arange(12.0).reshape(3, 4)
    made = {"t": base.t(), "half": base.bfloat16(), "double": base.to(torch.complex128), "one": torch.tensor(3, dtype=torch.complex128),
            "none": torch.empty(0, 3), "bool": base > 4, "n": {"deep": [{"lr": 0.1}, [1, 2]], "t": [torch.ones(2), torch.zeros(1)]}, "x": float("inf")}
    save, load = (SavePlanner(), LoadPlanner()) if planner else (None, None)
    pickle.loads = pickle.load = pickle.dumps = torch.load = torch.save = no_pickle
    dcp.save(made, storage_writer=Writer(1), planner=save)
    assert banyan.wait(1, timeout=30)
    into = {"t": torch.zeros(3, 4).t(), "half": torch.zeros(4, 3).t().bfloat16(), "double": torch.zeros(3, 4, dtype=torch.complex128),
            "one": torch.tensor(0, dtype=torch.complex128), "none": torch.ones(0, 3), "bool": torch.zeros(3, 4, dtype=torch.bool),
            "n": {"deep": [{"lr": 0}, [0, 0]], "t": [torch.zeros(2), torch.ones(1)]}, "x": 0}
    dcp.load(into, storage_reader=Reader(), planner=load)
    for key in ("t", "half", "double", "one", "none", "bool"):
        assert torch.equal(into[key], made[key]), key
    assert into["n"]["deep"] == [{"lr": 0.1}, [1, 2]] and into["x"] == float("inf")
    assert [t.tolist() for t in into["n"]["t"]] == [[1, 1], [0]]
    cast = {"half": torch.zeros(3, 4)}  # DCP converts where the state has another dtype
    dcp.load(cast, storage_reader=Reader())
    assert torch.equal(cast["half"], base)
    return [fails(kept, {"missing": torch.ones(1)}), fails(kept, {"t": torch.ones(5)})]


def fails(kept, into):
    with pytest.raises(BaseException) as caught:  # noqa: PT011 DCP wraps it
        dcp.load(into, storage_reader=Reader())
    return f"{caught.value} {caught.value.__cause__}"


@pytest.mark.parametrize("planner", [False, True])
def test_values_and_odd_tensors(lab, planner):
    nodes = lab.daemons()
    nodes.open(7)
    missing, other = lab.ranks(nodes, 7)[0].run(alone, planner)
    assert "missing" in missing and "Size mismatch" in other


def one_writer(kept):
    """What stage() has copied is not taken for the next save of the same writer."""
    banyan.init()
    writer = Writer(1)
    writer.stage({"t": torch.ones(2), "n": 1})
    writer.step = 2
    dcp.save({"t": torch.zeros(2), "n": 2}, storage_writer=writer)
    writer.step = 3
    dcp.async_save({"t": torch.full((2,), 3.0)}, storage_writer=writer).result()
    assert banyan.wait(3, timeout=30)
    into = {"t": torch.ones(2)}
    dcp.load(into, storage_reader=Reader())
    writer.step = 4
    dcp.save({"t": torch.full((2,), 4.0), "n": 4}, storage_writer=writer)
    assert banyan.wait(4, timeout=30)
    last = {"t": torch.ones(2), "n": 0}
    dcp.load(last, storage_reader=Reader())
    return into["t"].tolist(), last["t"].tolist(), last["n"]


def test_one_writer_for_several_saves(lab):
    nodes = lab.daemons()
    nodes.open(7)
    assert lab.ranks(nodes, 7)[0].run(one_writer) == ([3, 3], [4, 4], 4)


class Evil:
    def __reduce__(self):
        return (open, ("/tmp/banyan-was-here", "w"))


def refusals(kept):
    banyan.init()
    with pytest.raises(BaseException, match="cannot be saved") as caught:
        dcp.save({"a": {"evil": Evil()}, "t": torch.ones(1)}, storage_writer=Writer(1))
    assert "a.evil" in str(caught.value)
    with pytest.raises(banyan.Error, match="Writer\\(step\\)"):
        dcp.async_save({"t": torch.ones(1)}, storage_writer=Writer())
    with pytest.raises(banyan.StateError, match="meta"):
        dcp.async_save({"t": torch.ones(1, device="meta")}, storage_writer=Writer(1))
    with pytest.raises(BaseException, match="no step ends"):
        dcp.save({"t": torch.ones(1)}, storage_writer=Writer(), checkpoint_id="run/last")
    dcp.save({"t": torch.ones(1)}, storage_writer=Writer(4))
    with pytest.raises(BaseException, match="not above step 4"):
        dcp.save({"t": torch.ones(1)}, storage_writer=Writer(4))
    assert banyan.wait(4, timeout=30)
    text = fails_at(kept, "run/step-3")
    assert "goes on from step 4" in text and "asks for 3" in text
    writer = Writer(5)
    dcp.save({"t": torch.ones(1)}, storage_writer=writer)  # the failed load holds it back
    return writer.outcome


def fails_at(kept, checkpoint_id):
    with pytest.raises(BaseException) as caught:  # noqa: PT011
        dcp.load({"t": torch.ones(1)}, storage_reader=Reader(), checkpoint_id=checkpoint_id)
    return str(caught.value)


def test_what_cannot_be_saved_or_loaded_is_named(lab):
    nodes = lab.daemons()
    nodes.open(7)
    with pytest.raises(ranks.Failed, match="nothing is saved, since load"):
        lab.ranks(nodes, 7)[0].run(refusals)


def lost(kept):
    """The daemon is gone: a load must not look like a beginning."""
    banyan.init()
    with pytest.raises(banyan.Error):
        banyan.latest()
    text = fails_at(kept, None)
    writer = Writer(1)
    with pytest.raises(BaseException, match="nothing is saved"):
        dcp.save({"t": torch.ones(1)}, storage_writer=writer)
    return text


def without_a_daemon(kept):
    banyan.init()
    writer = Writer(1)
    dcp.save({"t": torch.ones(1)}, storage_writer=writer)
    return writer.outcome.code


def test_a_daemon_that_is_gone(lab):
    nodes = lab.daemons()
    nodes.open(7)
    away = {**nodes.environment(7, 0, 1), "BANYAN_CKPT_SOCKET": str(lab.tmp / "none.sock")}
    assert "cannot be had" in lab.rank(away).run(lost)
    assert lab.rank(away).run(without_a_daemon) == -2
    assert "no banyan job here" in lab.rank({}).run(outside)


def outside(kept):
    banyan.init()
    writer = Writer(1)
    dcp.save({"t": torch.ones(1)}, storage_writer=writer)
    assert writer.outcome.code == -2
    return fails_at(kept, None)


def one_that_cannot(kept):
    """Rank 1 has what cannot be saved; both are told, and the next step is complete again."""
    made = dcp_jobs.state(kept)
    with pytest.raises(BaseException, match="rank 1: 'odd'"):
        dcp.save({**made, "odd": Evil() if kept["rank"] else 0}, storage_writer=Writer(1))
    return dcp_jobs.save(kept, 2), dcp_jobs.wait(kept, 2)


def not_loaded(kept):
    with pytest.raises(BaseException, match="cannot be had"):
        dcp_jobs.load(kept)
    with pytest.raises(BaseException, match="nothing is saved"):
        dcp_jobs.save(kept, 9)


def test_trouble_of_one_rank_is_told_to_all(lab):
    nodes = lab.daemons(2)
    nodes.open(7)
    first = lab.ranks(nodes, 7)
    first.run(dcp_jobs.make, lab.tmp / "a", "fsdp")
    assert first.run(one_that_cannot) == [("step 2: ok", "step 2: ok")] * 2
    first.kill()
    nodes.begin(7, 1)
    away = {**nodes.environment(7, 1, 2, 2), "BANYAN_CKPT_SOCKET": str(lab.tmp / "none.sock")}
    pair = [lab.rank(nodes.environment(7, 0, 2, 1)), lab.rank(away)]
    for function, *arguments in ((dcp_jobs.make, lab.tmp / "b", "fsdp"), (not_loaded,)):
        for rank in pair:
            rank.say(function, *arguments)
        assert [rank.hear() for rank in pair] == [None, None]

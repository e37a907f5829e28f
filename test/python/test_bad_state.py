# SPDX-License-Identifier: BSD-3-Clause
"""A state that cannot be saved, or does not fit what was saved, is told by key and rank; the earlier step still loads."""

import pytest
import torch
from states import good, refused, saved

import banyan_ckpt as banyan


WRONG = {
    "model.c": lambda s: s["model"].update(c=torch.ones(1)),
    "model.b": lambda s: s["model"].pop("b"),
    "model.a": lambda s: s["model"].update(a=torch.zeros(5)),
    "model.a ": lambda s: s["model"].update(a=torch.zeros(6, dtype=torch.float64)),
    "model.a  ": lambda s: s["model"].update(a=torch.zeros(6, device="meta")),
    "model.a   ": lambda s: s["model"].update(a={"x": torch.zeros(6)}),
    "n": lambda s: s.update(n=torch.zeros(1)),
    "other": lambda s: s.update(other=1),
    "model": lambda s: s.update(model=torch.zeros(1)),
}


def wrong_loads(kept):
    """Each refusal; then whether nothing was changed, saves are held back, and a right load works."""
    banyan.init()
    out = {}
    for key, spoil in WRONG.items():
        state = good()
        for tensor in state["model"].values():
            tensor.fill_(-1)
        spoil(state)
        out[key] = refused(banyan.load, state)
        left = state["model"].values() if isinstance(state["model"], dict) else []
        assert all(isinstance(t, dict) or t.is_meta or (t == -1).all() or (t == 0).all() or t.numel() == 1 for t in left), key
    with pytest.raises(banyan.Error, match=r"rank \d: nothing is saved, since load\(\) failed"):
        banyan.save(4, good())
    state = good()
    state["model"]["a"].zero_()
    state["model"]["c"] = torch.full((1,), 7.0)
    del state["model"]["b"]
    loaded = banyan.load(state, strict=False)
    assert (loaded.missing, loaded.unused) == (("model.c",), ("model.b",))
    assert state["model"]["a"].tolist() == list(range(6)) and state["model"]["c"] == 7
    assert banyan.save(4, good())
    return out


def test_a_state_that_does_not_fit_is_named(lab):
    nodes = lab.daemons(2)
    nodes.open(7)
    first = lab.ranks(nodes, 7)
    first.run(saved)
    first.kill()
    nodes.begin(7, 1)
    for rank, found in enumerate(lab.ranks(nodes, 7).run(wrong_loads)):
        for key, (named, of, text) in found.items():
            assert (named.split(".x")[0], of) == (key.strip(), rank), text
            assert f"rank {rank}: " in text and ("step 3" in text or "meta" in text)


def wrong_saves(kept):
    saved(kept)
    from torch.nn.parameter import UninitializedParameter
    w = torch.ones(4)
    bad = {
        "m.w": {"m": {"w": torch.empty(3, device="meta")}},
        "s": {"s": torch.eye(3).to_sparse()},
        "q": {"q": torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)},
        "l": {"l": UninitializedParameter()},
        "f.1": {"f": [torch.ones(1), lambda: 1]},
        "o.x": {"o": {"x": object(), "t": torch.ones(1)}},
        "d.inner": {"d": {"inner": torch.nn.Linear(1, 1), "t": w}},
        "a.b.c": {"a": {"b.c": w}, "a.b": {"c": torch.zeros(4)}},
        "x" * 600: {"x" * 600: w},
        "__x": {"__x": w},
        "7": {7: w},
        "": [w],
    }
    for key, state in bad.items():
        named, rank, text = refused(banyan.save, 4, state)
        assert named == key and rank == 0 and text.startswith("rank 0: "), (key, text)
    for step in (-1, 3.0, "4", True, 10**13, None):
        assert "step" in refused(banyan.save, step, good())[2]
    assert "not above step 3" in refused(banyan.save, 3, good())[2]
    with pytest.raises(ValueError, match="no level"):
        banyan.wait(3, "safe")
    assert banyan.wait(4, timeout=-1).code == -4, "a time that has run out is no endless wait"
    assert banyan.save(4, good()), "what was refused has spoiled nothing"


def test_a_state_that_cannot_be_saved_is_named(lab):
    nodes = lab.daemons()
    nodes.open(7)
    lab.ranks(nodes, 7)[0].run(wrong_saves)


def tied(kept):
    banyan.init()
    banyan.load(None)
    embedding, out = torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False)
    out.weight = embedding.weight
    model = torch.nn.ModuleDict({"in": embedding, "out": out})
    assert banyan.save(1, {"model": model}) and banyan.wait(1, timeout=30)
    fresh = torch.nn.ModuleDict({"in": torch.nn.Embedding(5, 3), "out": torch.nn.Linear(3, 5, bias=False)})
    assert banyan.load({"model": fresh}).step == 1
    assert torch.equal(fresh["in"].weight, embedding.weight) and torch.equal(fresh["out"].weight, embedding.weight)
    size = embedding.weight.numel() * 4
    a, b = torch.ones(4), torch.zeros(4)
    assert banyan.save(2, {"t": {"a": a, "b": b}}) and banyan.wait(2, timeout=30)
    shared = torch.empty(4)
    named = refused(banyan.load, {"t": {"a": shared, "b": shared}})
    assert named[0] == "t.b" and "t.a" in named[2] and "differ" in named[2]
    same = {"t": {"a": torch.empty(4), "b": torch.empty(4)}}
    assert banyan.load(same).step == 2 and same["t"]["b"].tolist() == [0] * 4
    return size


def test_tied_weights(lab):
    nodes = lab.daemons()
    nodes.open(7)
    lab.ranks(nodes, 7)[0].run(tied)


def changing(kept):
    banyan.init()
    banyan.load(None)
    for step in range(1, 30):
        state = {f"t{i}": torch.full((step % 5 + 1,), float(step)) for i in range(step % 7)} | {"text": "x" * (step * 700), "n": step}
        assert banyan.save(step, state)
    assert banyan.wait(29, timeout=30)
    found = banyan.load().state
    assert found["n"] == 29 and found["t0"].tolist() == [29.0] * 5 and len(found["text"]) == 29 * 700 and "t1" not in found


def test_names_and_shapes_that_change(lab):
    nodes = lab.daemons()
    nodes.open(7)
    lab.ranks(nodes, 7)[0].run(changing)


def too_large(kept):
    saved(kept)
    said = banyan.save(4, {"w": torch.zeros(100 << 20)})
    assert not said and said.code == -7 and said.reason, said
    assert banyan.reserve({"w": torch.zeros(100 << 20)}).code == -7
    assert banyan.save(5, good())
    assert banyan.wait(5, timeout=30)
    return said.reason


def test_a_state_beyond_the_budget(lab):
    nodes = lab.daemons(extra='memory_limit = "300M"\n')
    nodes.open(7)
    assert "memory" in lab.ranks(nodes, 7)[0].run(too_large)

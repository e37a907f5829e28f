# SPDX-License-Identifier: BSD-3-Clause
"""What cannot work is told by key and rank, and the earlier step still loads."""

import json
import os
import threading

import pytest
import ranks
import torch

import banyan_ckpt as banyan


def good():
    return {"model": {"a": torch.arange(6.0), "b": torch.ones(2, 3)}, "n": 5}


def saved(kept):
    banyan.init()
    assert banyan.load(good()) is None
    assert banyan.save(3, good()) and banyan.wait(3, timeout=30)


def refused(call, *arguments, **named):
    with pytest.raises(banyan.StateError) as caught:
        call(*arguments, **named)
    return caught.value.key, caught.value.rank, str(caught.value)


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


def save_unasked(kept):
    banyan.init()
    try:
        banyan.save(9, good())
    except banyan.Error as error:
        return error.code, str(error), banyan.latest(), banyan.load(good()).step, bool(banyan.save(9, good()))
    return None


def test_a_save_before_a_load_is_refused(lab):
    nodes = lab.daemons()
    nodes.open(7)
    first = lab.ranks(nodes, 7)
    first.run(saved)
    first.kill()
    nodes.begin(7, 1)
    code, text, latest, step, ok = lab.ranks(nodes, 7)[0].run(save_unasked)
    assert (code, latest, step, ok) == (-10, 3, 3, True) and "rank 0: save() before load()" in text and "step 3" in text


def without_daemon(kept):
    banyan.init()
    with pytest.raises(banyan.Error, match="rank 0: .*does not begin anew") as caught:
        banyan.load(good())
    with pytest.raises(banyan.Error, match="nothing is saved"):
        banyan.save(1, good())
    return caught.value.code


def test_a_job_whose_daemon_is_gone(lab):
    nodes = lab.daemons()
    nodes.open(7)
    lost = {**nodes.environment(7, 0, 1), "BANYAN_CKPT_SOCKET": str(lab.tmp / "none.sock")}
    assert lab.rank(lost).run(without_daemon) == -2
    unset = {key: value for key, value in lost.items() if key != "BANYAN_CKPT_SOCKET"}
    assert lab.rank(unset).run(without_daemon) == -2
    rank = lab.ranks(nodes, 7)[0]
    rank.run(saved)
    nodes.kill(1)
    said = rank.run(save_four)
    assert said.code == -2 and said.reason


def save_four(kept):
    return banyan.save(4, good())


def off(kept):
    me = banyan.init()
    assert banyan.load(good()) is None
    return me.mode, banyan.save(1, good()).code


def test_a_node_without_checkpoints_says_so(lab):
    rank = lab.rank({"BANYAN_JOB": "7", "BANYAN_CKPT_OFF": "no room"}, lab.tmp / "err")
    assert rank.run(off) == ("off", -2)
    assert "this node has no checkpoints: no room" in (lab.tmp / "err").read_text()


def forked(kept):
    saved(kept)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            banyan.save(4, good())
        except banyan.Error as error:
            os.write(writing, str(error).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    assert banyan.save(4, good())
    return os.read(reading, 4096).decode()


def test_a_forked_child_is_told(lab):
    nodes = lab.daemons()
    nodes.open(7)
    said = lab.ranks(nodes, 7)[0].run(forked)
    assert "forked from rank 0 of job 7" in said and "init()" in said


def threads(kept):
    """Two threads save what each counts itself; a step that comes too late is refused, and the newest holds what it should."""
    saved(kept)
    taken, late, number, lock = [], [], iter(range(10, 200)), threading.Lock()

    def work():
        while True:
            with lock:
                step = next(number, None)
            if step is None:
                return
            state = {"w": torch.full((1000,), float(step)), "step": step}
            try:
                (taken if banyan.save(step, state) else late).append(step)
            except banyan.StateError:
                late.append(step)

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert banyan.wait(max(taken), timeout=30)
    found = banyan.load().state
    assert found["step"] == max(taken) and (found["w"] == max(taken)).all()
    return len(taken), len(late)


def test_two_threads_that_save(lab):
    nodes = lab.daemons()
    nodes.open(7)
    taken, late = lab.ranks(nodes, 7)[0].run(threads)
    assert taken + late == 190 and taken > 0


def durable(kept):
    banyan.init()
    loaded = banyan.load(None)
    for step in (1, 2):
        assert banyan.save(step, good())
        said = banyan.wait(step, "durable", 30)
        assert said, said
    return loaded


def read_damaged(kept, directory):
    banyan.init()
    with pytest.raises(banyan.Error) as caught:
        banyan.load(good(), directory=directory)
    state = good()
    state["model"]["a"].zero_()
    assert banyan.load(state, directory=directory, step=1).step == 1
    assert state["model"]["a"].tolist() == list(range(6))
    return str(caught.value)


def test_a_damaged_shard(lab):
    nodes = lab.daemons()
    out = lab.tmp / "out"
    out.mkdir(mode=0o777)
    nodes.open(7, directory=out, flush=1)
    lab.ranks(nodes, 7)[0].run(durable)
    shard = max(out.glob("*/rank-000000.safetensors"))
    with open(shard, "r+b") as file:
        file.seek(-3000, os.SEEK_END)
        file.write(b"\xff" * 2000)
    alone = lab.rank({"BANYAN_LIB": nodes.environment(7, 0, 1)["BANYAN_LIB"]})
    said = alone.run(read_damaged, out)
    assert "rank 0" in said and "step" in said


class Told:
    """A source whose tree is the test's."""

    step, world, rank, own, kind = 1, 1, 0, True, "test"

    def __init__(self, text):
        self.text = text

    def find(self, name):
        from banyan_ckpt._sources import Region
        return Region(name, "U8", len(self.text), (len(self.text),), None, None)

    def fill(self, targets):
        for one in targets:
            one.piece.local.copy_(torch.frombuffer(bytearray(self.text), dtype=torch.uint8))


@pytest.mark.parametrize("text", [
    b"{", b"[]", b"null", b'{"format":2}', b'{"format":1,"tree":["v"],"values":[]}', b'{"format":1,"tree":["x"],"values":[]}',
    b'{"format":1,"tree":["d","dict",[[["a"],["v"]]]],"values":[1]}', b'{"format":1,"tree":["v"],"values":[{"!":"os.system","v":"x"}]}',
    b'{"format":1,"tree":' + b'["l",[' * 5000, b"[" * 100000, b'{"format":1,"tree":["v"],"values":[3]}', b"\xff\xfe"], ids=repr)
def test_a_tree_that_somebody_else_wrote(text):
    from banyan_ckpt._load import saved_tree
    with pytest.raises(banyan.Error):
        saved_tree(Told(text))


def test_metadata_that_would_run_code(lab):
    import pickle
    step = lab.tmp / "step-000000000001"
    step.mkdir()
    proof = lab.tmp / "ran"
    step.joinpath(".metadata").write_bytes(
        b"cposix\nsystem\n(S'touch " + str(proof).encode() + b"'\ntR.")
    with pytest.raises(FileNotFoundError):
        proof.stat()
    rank = lab.rank({})
    assert "no part of a checkpoint" in rank.run(read_hostile, lab.tmp)
    assert not proof.exists()
    pickle.loads(step.joinpath(".metadata").read_bytes())
    assert proof.exists(), "the test's own pickle runs nothing"


def read_hostile(kept, directory):
    banyan.init(directory=directory)
    with pytest.raises(banyan.Error) as caught:
        banyan.load(good())
    return str(caught.value)


assert json and ranks

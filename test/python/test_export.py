# SPDX-License-Identifier: BSD-3-Clause
"""A committed step as what other programs read, while the training goes on; and what others have written, into a state."""

import contextlib
import io
import os
import sys

import dcp_jobs
import pytest
import torch
import torch.distributed.checkpoint as dcp

import banyan_ckpt as banyan
from banyan_ckpt.dcp import import_from


def exported(kept, *words):
    """python -m banyan_ckpt export, without the time that starting Python takes."""
    from banyan_ckpt.__main__ import main
    sys.argv = ["banyan_ckpt", "export", *map(str, words)]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = main()
    return code, said.getvalue()


def whole(kept):
    """The model's tensors, put together."""
    model = dcp_jobs.state(kept)["model"]
    return {name: (t.full_tensor() if hasattr(t, "full_tensor") else t).tolist() for name, t in model.items()}


def test_while_the_training_goes_on(lab):
    nodes = lab.daemons(2)
    out = lab.tmp / "out"
    out.mkdir(mode=0o777)
    nodes.open(7, directory=out, flush=1)
    ranks = lab.ranks(nodes, 7)
    ranks.run(dcp_jobs.make, lab.tmp / "a", "fsdp")
    ranks.run(dcp_jobs.train, 2)
    ranks.run(dcp_jobs.save, 2)
    assert ranks.run(dcp_jobs.wait, 2, "durable") == ["step 2: ok"] * 2
    expected = ranks.run(whole)[0]
    ranks.run(dcp_jobs.train, 1)
    for rank in ranks.all:
        rank.say(dcp_jobs.save, 3)
    alone = lab.rank({"BANYAN_LIB": nodes.environment(7, 0, 1)["BANYAN_LIB"]})
    said = {to: alone.run(exported, out, lab.tmp / to, "--to", to, "--step", "2", *more)
            for to, more in {"dcp": (), "safetensors": ("--part", "model"), "hf": ()}.items()}
    assert [rank.hear() for rank in ranks.all] == ["step 3: ok"] * 2
    assert all(code == 0 and text.startswith("step 2: ") for code, text in said.values()), said
    from safetensors.torch import load_file
    for file in ("safetensors/state.safetensors", "hf/model.safetensors"):
        assert {name: t.tolist() for name, t in load_file(lab.tmp / file).items()} == expected
    stock = {f"model.{name}": torch.zeros_like(t) for name, t in dcp_jobs.Net().state_dict().items()}
    dcp.load(stock, checkpoint_id=lab.tmp / "dcp", no_dist=True)
    assert {name.removeprefix("model."): t.tolist() for name, t in stock.items()} == expected
    again = {"model": dcp_jobs.Net().state_dict(), "note": {"step": 0}}
    import_from(again, lab.tmp / "dcp")
    assert {name: t.tolist() for name, t in again["model"].items()} == expected and again["note"]["step"] == 2
    weights = dcp_jobs.Net().state_dict()
    import_from(weights, lab.tmp / "hf")
    assert {name: t.tolist() for name, t in weights.items()} == expected
    code, text = alone.run(exported, out, lab.tmp / "hf", "--to", "hf")
    assert code == 1 and "is there already" in text
    code, text = alone.run(exported, out, lab.tmp / "none", "--to", "hf", "--part", "weights")
    assert code == 1 and "--part names one" in text and "model" in text and not (lab.tmp / "none").exists()
    code, text = alone.run(exported, lab.tmp / "nowhere", lab.tmp / "none", "--to", "dcp")
    assert code == 1 and "nowhere" in text
    targets(alone, out, lab.tmp)


def targets(alone, out, tmp):
    """Nothing but the target is written, and nothing is left of an export that failed."""
    mine = tmp / "named.part" / "mine"
    mine.parent.mkdir()
    mine.touch()
    (tmp / "link").symlink_to(tmp / "nothing")
    before = set(tmp.iterdir())
    assert alone.run(exported, out, tmp / "link", "--to", "hf")[0] == 1
    assert alone.run(exported, out, tmp / "none", "--to", "hf", "--config", tmp / "nothing")[0] == 1
    assert set(tmp.iterdir()) == before
    for target in (f"{tmp}/slash/", f"{tmp}/named"):
        code, text = alone.run(exported, out, target, "--to", "hf")
        assert code == 0, text
    assert mine.exists() and set(tmp.iterdir()) - before == {tmp / "slash", tmp / "named"}


def other_dtype(kept):
    banyan.init()
    banyan.load(None)
    assert banyan.save(1, {"model": {"c": torch.zeros(2, dtype=torch.complex128)}}) and banyan.wait(1, "durable", 30)


def test_a_dtype_that_safetensors_has_not(lab):
    nodes = lab.daemons()
    out = lab.tmp / "out"
    out.mkdir(mode=0o777)
    nodes.open(7, directory=out, flush=1)
    rank = lab.ranks(nodes, 7)[0]
    rank.run(other_dtype)
    code, text = rank.run(exported, out, lab.tmp / "hf", "--to", "hf")
    assert code == 1 and "c is torch.complex128" in text and os.listdir(lab.tmp) == ["out"]
    assert rank.run(exported, out, lab.tmp / "dcp", "--to", "dcp")[0] == 0


class Evil:
    def __reduce__(self):
        return (os.mkdir, (str(Evil.folder),))


def test_what_others_have_written_runs_nothing(tmp_path):
    Evil.folder = tmp_path / "was-here"
    dcp.save({"t": torch.ones(2), "evil": Evil()}, checkpoint_id=tmp_path / "stock", no_dist=True)
    with pytest.raises(BaseException, match="evil is pickled with more than values"):
        import_from({"t": torch.zeros(2), "evil": 0}, tmp_path / "stock")
    into = {"t": torch.zeros(2)}
    import_from(into, tmp_path / "stock")
    assert into["t"].tolist() == [1, 1]
    import pickle
    (tmp_path / "stock" / ".metadata").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(banyan.Error, match="no part of a checkpoint's metadata"):
        import_from(into, tmp_path / "stock")
    assert not Evil.folder.exists()
    with pytest.raises(banyan.Error, match="has neither"):
        import_from(into, tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 8)
    with pytest.raises(banyan.Error, match=f"{tmp_path} has a file of safetensors that cannot be read: SafetensorError"):
        import_from(into, tmp_path)

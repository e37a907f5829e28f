# SPDX-License-Identifier: BSD-3-Clause
"""Outside a banyan job the same script runs: into a directory, or nowhere."""

import models
import pytest

import banyan_ckpt as banyan


def begin(kept, directory, seed=0):
    kept["mode"] = banyan.init(directory=directory).mode
    kept["state"] = models.training(seed)
    loaded = banyan.load(kept["state"])
    kept["next"] = loaded.step + 1 if loaded else 0
    return loaded and loaded.step


def latest(kept):
    return banyan.latest(), str(banyan.wait(kept["next"] - 1, "durable")), str(banyan.finish())


def test_into_a_directory_bit_for_bit(lab):
    first = lab.rank({})
    assert first.run(begin, lab.tmp / "out") is None
    first.run(models.go_on, 3)
    middle = lab.rank({})
    expected = first.run(models.go_on, 2)
    bits = first.run(models.bits)
    assert first.run(latest) == (4, "step 4: ok", "step 4: ok")
    lab.tmp.joinpath("out", "step-000000000004").rename(lab.tmp / "newest")
    assert middle.run(begin, lab.tmp / "out", 9) == 3
    assert middle.run(models.go_on, 1) == expected[1:]
    assert middle.run(models.bits) == bits


def unasked(kept, directory):
    banyan.init(directory=directory)
    with pytest.raises(banyan.Error, match="save.. before load"):
        banyan.save(1, models.training())
    with pytest.raises(banyan.Error, match="has no step 77"):
        banyan.load(models.training(), directory=directory, step=77)
    with pytest.raises(banyan.Error, match="mistyped is not there"):
        banyan.load(models.training(), directory=directory / "mistyped")
    assert banyan.load(models.training()).step == 0


def test_what_is_there_is_not_overwritten(lab):
    first = lab.rank({})
    first.run(begin, lab.tmp / "out")
    first.run(models.go_on, 1)
    lab.rank({}).run(unasked, lab.tmp / "out")


def failed(kept, directory):
    banyan.init(directory=directory)
    with pytest.raises(banyan.StateError, match="is not in step 2"):
        banyan.load({"unknown": 0})
    with pytest.raises(banyan.Error, match=r"nothing is saved, since load\(\) failed"):
        banyan.save(9, {"unknown": 0})
    with pytest.raises(banyan.Error, match="step= goes with directory="):
        banyan.load(models.training(), step=1)  # step 2 would stay the newest, whatever followed
    assert banyan.load(models.training()).step == 2
    with pytest.raises(banyan.StateError, match="step 2 is saved already"):
        banyan.save(2, models.training())


def test_a_step_that_was_not_loaded_is_not_replaced(lab):
    first = lab.rank({})
    first.run(begin, lab.tmp / "out")
    first.run(models.go_on, 3)
    lab.rank({}).run(failed, lab.tmp / "out")
    assert lab.rank({}).run(begin, lab.tmp / "out") == 2


def test_nowhere(lab):
    rank = lab.rank({}, lab.tmp / "err")
    assert rank.run(begin, None) is None
    said = [text for _, text in rank.run(models.go_on, 3)]
    assert all("no daemon: no banyan job, and no directory" in text for text in said)
    assert (lab.tmp / "err").read_text().count("saves go nowhere") == 1


def full(kept, directory):
    banyan.init(directory=directory)
    state = models.training()
    assert banyan.load(state) is None
    said = banyan.save(0, state)
    return bool(said), said.reason, banyan.load(models.training()) is None


def test_a_directory_that_does_not_take_it(lab):
    (lab.tmp / "file").write_text("in the way")
    ok, reason, none = lab.rank({}).run(full, lab.tmp / "file")
    assert not ok and none and str(lab.tmp / "file") in reason

# SPDX-License-Identifier: BSD-3-Clause
"""A step with a name stays, in a job's storage and in a directory, and is loaded by its name."""

import daemons
import models
import pytest

import banyan_ckpt as banyan


def call(kept, step, name):
    return str(banyan.milestone(step, name))


def refused(kept, step, name):
    with pytest.raises(banyan.StateError, match=f"rank 0.*step {step} cannot be a milestone"):
        banyan.milestone(step, name)


def from_name(kept, place):
    banyan.init()
    state = models.training(5)
    return banyan.load(state, directory=place).step


def steps(folder):
    return {int(entry.name[5:]) for entry in folder.iterdir() if entry.name.startswith("step-")}


def test_in_a_job(lab):
    nodes = lab.daemons(2)
    out = lab.tmp / "out"
    out.mkdir(mode=0o777)
    nodes.open(7, directory=out, flush=1000)
    ranks = lab.ranks(nodes, 7)
    ranks.run(models.begin)
    ranks.run(models.go_on, 3)
    assert ranks[0].run(call, 2, "best") == "step 2: ok"
    # Where the machine is slow step 0 has had its turn before.
    daemons.until(lambda: 2 in steps(out), "step 2 is in storage")
    ranks[0].run(refused, 2, "Best of all")
    assert lab.rank({"BANYAN_LIB": nodes.environment(7, 0, 1)["BANYAN_LIB"]}).run(from_name, out / "milestones" / "best") == 2


def begin(kept, directory):
    banyan.init(directory=directory)
    kept["state"], kept["next"] = models.training(0), 0
    assert banyan.load(kept["state"]) is None


def test_in_a_directory(lab):
    rank, out = lab.rank({}), lab.tmp / "out"
    rank.run(begin, out)
    rank.run(models.go_on, 2)
    assert rank.run(call, 0, "best") == "step 0: ok"
    rank.run(refused, 7, "best")
    rank.run(refused, 1, "Best of all")
    rank.run(models.go_on, 3)
    assert steps(out) == {0, 3, 4}
    assert rank.run(call, 4, "best") == "step 4: ok"
    rank.run(models.go_on, 1)
    assert steps(out) == {4, 5}


def nowhere(kept):
    banyan.init()
    return str(banyan.milestone(1, "best"))


def test_nowhere(lab):
    assert "no banyan job here" in lab.rank({}).run(nowhere)

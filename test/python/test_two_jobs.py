# SPDX-License-Identifier: BSD-3-Clause
"""Two jobs with one checkpoint directory."""

import pytest
from states import durable, good

import banyan_ckpt as banyan


def in_the_same_directory(kept):
    banyan.init()
    with pytest.raises(banyan.Error) as caught:
        banyan.load(good())
    return str(caught.value)


def test_two_jobs_with_one_directory(lab):
    nodes = lab.daemons(2)
    out = lab.tmp / "out"
    out.mkdir(mode=0o777)
    nodes.open(7, nodes=[1], directory=out, flush=1)
    first = lab.ranks(nodes, 7, over=[1])[0]
    first.run(durable)
    nodes.open(8, nodes=[2], directory=out, flush=1)
    said = lab.ranks(nodes, 8, over=[2])[0].run(in_the_same_directory)
    assert "rank 0" in said and "belongs to job 7" in said
    first.run(again)


def again(kept):
    assert banyan.save(3, good()) and banyan.wait(3, "durable", 30)

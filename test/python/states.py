# SPDX-License-Identifier: BSD-3-Clause
"""A small state, and what ranks of several tests do with it."""

import pytest
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


def durable(kept):
    banyan.init()
    loaded = banyan.load(None)
    for step in (1, 2):
        assert banyan.save(step, good())
        said = banyan.wait(step, "durable", 30)
        assert said, said
    return loaded

# SPDX-License-Identifier: BSD-3-Clause
"""Tensors of each kind, and values of each kind, come back as they were."""

import collections
import math
from pathlib import Path

import numpy
import pytest
import torch

import banyan_ckpt as banyan
from banyan_ckpt._tensors import DTYPES
from banyan_ckpt._tree import NotAValue, decode, encode


def every_kind():
    weight = torch.arange(24.0).reshape(4, 6)
    out = {str(d): (torch.arange(6) % 2).to(d) for d in [*DTYPES, torch.complex128]}
    out |= {"scalar": torch.tensor(3.5), "complex_scalar": torch.tensor(1 + 2j, dtype=torch.complex128), "empty": torch.zeros(0, 4),
            "transposed": weight.t(), "expanded": torch.ones(1, 4).expand(3, 4), "strided": torch.arange(20)[::2],
            "channels_last": torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last), "conj": torch.randn(3, dtype=torch.complex64).conj(),
            "negative": torch.randn(3, dtype=torch.complex64).conj().imag, "many": torch.ones([1] * 16), "weight": weight, "tied": weight,
            "parameter": torch.nn.Parameter(torch.randn(3)), "list": [torch.ones(2), 5, (torch.zeros(3), "other")]}
    return {"kinds": out}


def emptied(state):
    """The same, with other contents."""
    out = {}
    for key, value in state["kinds"].items():
        if isinstance(value, torch.Tensor):
            value = value.detach().clone() if key != "expanded" else torch.zeros(3, 4)
            out[key] = torch.zeros_like(value)
        else:
            out[key] = [torch.zeros(2), 0, (torch.zeros(3), "y")]
    return {"kinds": out}


def save_kinds(kept):
    banyan.init()
    assert banyan.load(None) is None
    torch.manual_seed(1)
    state = every_kind()
    for step in (1, 2):
        assert banyan.save(step, state), banyan.save(step, state)
    assert banyan.wait(2, timeout=30)


def load_kinds(kept):
    banyan.init()
    torch.manual_seed(1)
    expected, state = every_kind()["kinds"], emptied(every_kind())
    places = {key: value.data_ptr() for key, value in state["kinds"].items() if isinstance(value, torch.Tensor)}
    loaded = banyan.load(state)
    assert loaded.step == 2 and loaded.own and not loaded.missing and not loaded.unused
    for key, value in state["kinds"].items():
        if key == "list":
            assert value[0].tolist() == [1, 1] and value[1] == 5 and value[2][0].tolist() == [0, 0, 0] and value[2][1] == "other"
            continue
        assert places[key] == value.data_ptr(), key
        assert same(value, expected[key]), (key, value, expected[key])
    whole = banyan.load().state["kinds"]
    assert whole["weight"] is whole["tied"]
    for key in expected:
        assert key == "list" or same(whole[key], expected[key]), key


def same(a, b):
    a, b = (x.detach().contiguous().resolve_conj().resolve_neg() for x in (a, b))
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.reshape(-1).view(torch.uint8), b.reshape(-1).view(torch.uint8))


def test_every_kind_of_tensor(lab):
    nodes = lab.daemons()
    nodes.open(7)
    first = lab.ranks(nodes, 7)
    first.run(save_kinds)
    first.kill()
    nodes.begin(7, 1)
    lab.ranks(nodes, 7).run(load_kinds)


VALUES = [None, True, 3, 10**30, 2.5, math.inf, -0.0, "text \ud800 \0", [1, [2.5, "x"]], (1, 2), {1, 2}, frozenset({"a"}), b"\0\xff", bytearray(b"z"),
          1 + 2j, range(3, 9, 2), {"a": {"b": 1}}, {1: "x", None: 2, (1, 2): 3}, {"!": "tuple", "v": []}, collections.Counter({2: 1}),
          collections.OrderedDict([("b", 1), ("a", 2)]), collections.deque([1, 2], 5), torch.Size([2, 3]), torch.bfloat16, torch.device("cpu"),
          numpy.float32(2.5), numpy.int64(7)]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: type(v).__name__ + "-" + repr(v)[:20].encode("ascii", "replace").decode())
def test_values_come_back(value):
    import json
    back = decode(json.loads(json.dumps(encode(value))))
    assert type(back) is type(value) and back == value
    if isinstance(value, dict):
        assert list(back) == list(value)


def test_values_that_equal_nothing():
    import json
    assert math.isnan(decode(json.loads(json.dumps(encode(math.nan)))))
    array = numpy.arange(6, dtype=">i2").reshape(2, 3)
    back = decode(json.loads(json.dumps(encode(array))))
    assert back.dtype == array.dtype and (back == array).all()
    made = collections.defaultdict(list, {"a": [1]})
    assert decode(encode(made))["b"] == []


def test_what_is_no_value_is_named():
    loop = []
    loop.append(loop)
    for bad in (lambda: 1, object(), numpy.array([object()]), loop, Path("/x"), {"a": torch.ones(1)}):
        with pytest.raises(NotAValue):
            encode(bad)


def test_nothing_that_was_not_encoded_is_made():
    for bad in ({"!": "posix.system", "v": "true"}, {"!": "array", "dtype": "|O", "shape": [1], "v": "AAAAAAAAAAA="}, {"!": "dtype", "v": "load"}):
        with pytest.raises(ValueError):
            decode(bad)

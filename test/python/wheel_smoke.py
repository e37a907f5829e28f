# SPDX-License-Identifier: BSD-3-Clause
"""Run by each Python that has a wheel, without torch, in a job: the native module saves and brings back, and values come back."""

import ctypes
import json
import sys

import banyan_ckpt as banyan
from banyan_ckpt import _native
from banyan_ckpt._tree import decode, encode


class Tensor:
    """As much of a torch.Tensor as the native module asks for: named so since there is no torch here."""

    def __init__(self, size):
        self.memory = (ctypes.c_float * size)(*range(size))
        self.shape, self.dtype = (size,), Dtype

    def data_ptr(self):
        return ctypes.addressof(self.memory)

    def is_contiguous(self):
        return True

    def is_neg(self):
        return False


class Dtype:
    is_complex = False


def plan_of(state):
    plan = _native.Plan(Tensor, None)
    plan.add_dict(dict, tuple(state))
    for key, value in state.items():
        if isinstance(value, Tensor):
            region = plan.add_region(key, "F32", 4 * len(value.memory), [len(value.memory)], [len(value.memory)], [0])
            plan.add_tensor(region, value.dtype, value.shape, None)
        else:
            plan.add_value()
    plan.add_tree("banyan.tree")
    return plan


def main():
    me = banyan.init()
    assert me.mode == "job" and banyan.latest() is None
    state = {"a": Tensor(1000), "n": {"x": (1, 2)}, "b": Tensor(3)}
    plan = plan_of(state)
    assert plan.match({**state, "b": Tensor(4)}) is None and plan.match({"a": state["a"]}) is None
    for step in range(1, 4):
        values = plan.match(state)
        assert values == [{"x": (1, 2)}]
        plan.set_tree(json.dumps([encode(v) for v in values]).encode())
        assert plan.save(step) == (0, ""), plan.save(step)
    pending = plan.begin(4, 0)
    assert pending.begun() == (0, "") and pending.end() == (0, "")
    assert banyan.wait(4, timeout=30)
    assert _native.restart(_native.Regions())[:1] == (0,)
    code, error, step, listed = _native.contents()
    assert (code, step, [entry[0] for entry in listed]) == (0, 4, ["a", "b", "banyan.tree"]), error
    into, text = (ctypes.c_float * 1000)(), ctypes.create_string_buffer(listed[2][2])
    regions = _native.Regions()
    regions.add("a", "F32", 4000, [1000], [1000], [0], ctypes.addressof(into))
    regions.add("banyan.tree", "U8", len(text), [len(text)], None, None, ctypes.addressof(text))
    assert _native.restart(regions)[0] == 0 and list(into) == list(map(float, range(1000)))
    assert decode(json.loads(text.raw)) == [{"x": (1, 2)}]
    assert banyan.finish()
    print("saved and brought back by", sys.version.split()[0], _native.__file__.rsplit("/", 1)[1])


main()

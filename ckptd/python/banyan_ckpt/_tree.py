# SPDX-License-Identifier: BSD-3-Clause
"""Values that are no tensors, as JSON and back: no pickle, so reading them runs nobody's code.

JSON's own types stand for themselves. All others are an object with the one key "!" for its kind."""

from __future__ import annotations

import base64
import collections
import math
import sys
from collections.abc import Callable
from typing import Any

SCALARS = {type(None), bool, int, float, str}
TAG = "!"
MAX_DEPTH = 200

_FACTORIES: dict[str, Callable[[], Any]] = {"int": int, "float": float, "list": list, "dict": dict, "set": set, "str": str, "bool": bool}


class NotAValue(TypeError):
    """What has no form in JSON; `path` says where in the value it lies."""

    def __init__(self, path: tuple[Any, ...], what: str) -> None:
        super().__init__(what)
        self.path = path


def encode(value: Any, path: tuple[Any, ...] = ()) -> Any:
    """The value as what json.dumps takes. Raises NotAValue."""
    kind = type(value)
    if kind in SCALARS:
        return value if kind is not float or math.isfinite(value) else {TAG: "float", "v": repr(value)}
    if len(path) > MAX_DEPTH:
        raise NotAValue(path[:8] + ("...",), "is nested too deep, or in itself")
    if kind is list:
        return _items(value, path)
    if kind is dict and TAG not in value and set(map(type, value)) <= {str}:
        return {k: encode(v, (*path, k)) for k, v in value.items()}
    if kind in (tuple, set, frozenset, collections.deque):
        return _tagged_items(kind.__name__, value, path)
    if isinstance(value, dict):
        return _tagged_dict(value, path)
    if kind in (bytes, bytearray):
        return {TAG: kind.__name__, "v": base64.b64encode(value).decode()}
    if kind is complex:
        return {TAG: "complex", "v": [repr(value.real), repr(value.imag)]}
    if kind is range:
        return {TAG: "range", "v": [value.start, value.stop, value.step]}
    return _foreign(value, path)


def _items(values: Any, path: tuple[Any, ...]) -> list[Any]:
    if set(map(type, values)) <= {int, str}:
        return list(values)
    return [encode(v, (*path, i)) for i, v in enumerate(values)]


def _tagged_items(kind: str, values: Any, path: tuple[Any, ...]) -> dict[str, Any]:
    out: dict[str, Any] = {TAG: kind, "v": _items(list(values), path)}
    if kind == "deque" and values.maxlen is not None:
        out["maxlen"] = values.maxlen
    return out


def _tagged_dict(value: dict[Any, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    pairs = [[encode(k, path), encode(v, (*path, k))] for k, v in value.items()]
    kind = type(value)
    if kind in (collections.Counter, collections.OrderedDict):
        return {TAG: kind.__name__, "v": pairs}
    if kind is collections.defaultdict:
        factory = getattr(value.default_factory, "__name__", "")  # type: ignore[attr-defined]
        return {TAG: "defaultdict", "v": pairs, "of": factory if factory in _FACTORIES else ""}
    return {TAG: "dict", "v": pairs}


def _foreign(value: Any, path: tuple[Any, ...]) -> dict[str, Any]:
    """What is numpy's or torch's, as far as they are loaded."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None:
        if isinstance(value, torch.Size):
            return {TAG: "Size", "v": list(value)}
        if isinstance(value, torch.dtype):
            return {TAG: "dtype", "v": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {TAG: "device", "v": str(value)}
    if numpy is not None and (type(value) is numpy.ndarray or isinstance(value, numpy.generic)) and not value.dtype.hasobject \
            and value.dtype.names is None and numpy.dtype(value.dtype.str) == value.dtype:
        kind = "array" if isinstance(value, numpy.ndarray) else "scalar"
        return {TAG: kind, "dtype": value.dtype.str, "shape": list(value.shape), "v": base64.b64encode(value.tobytes()).decode()}
    for base in (bool, int, float, str):  # an enum's member, or a subclass: what it stands for
        if isinstance(value, base) and not hasattr(value, "__dict__"):
            return encode(base(value), path)  # type: ignore[no-any-return]
    raise NotAValue(path, f"is a {kind_of(value)}, which cannot be saved: tensors, numbers, text, bytes, lists, tuples, sets, dictionaries "
                          "and numpy arrays can, and objects with state_dict() and load_state_dict()")


def kind_of(value: Any) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def decode(value: Any) -> Any:
    """The value that encode() was given. Raises ValueError where it was not made by encode()."""
    if isinstance(value, list):
        return [decode(v) for v in value]
    if not isinstance(value, dict):
        return value
    if TAG not in value:
        return {k: decode(v) for k, v in value.items()}
    known = _DECODERS.get(value[TAG])
    if known is None:
        raise ValueError(f"a value of kind {value[TAG]!r} is not known here")
    return known(value)


def _pairs(value: Any) -> list[tuple[Any, Any]]:
    return [(decode(k), decode(v)) for k, v in value["v"]]


def _array(value: Any) -> Any:
    import numpy
    dtype = numpy.dtype(value["dtype"])
    if dtype.hasobject:
        raise ValueError("an array of Python objects is not read")
    if dtype.itemsize == 0:  # an empty text: frombuffer() takes none
        out = numpy.zeros(value["shape"], dtype)
    else:
        out = numpy.frombuffer(base64.b64decode(value["v"]), dtype=dtype).reshape(value["shape"]).copy()
    return out[()] if value[TAG] == "scalar" else out


def _torch(value: Any) -> Any:
    import torch
    if value[TAG] == "Size":
        return torch.Size(value["v"])
    if value[TAG] == "device":
        return torch.device(value["v"])
    dtype = getattr(torch, value["v"], None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"torch has no dtype {value['v']!r}")
    return dtype


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "float": lambda v: float(v["v"]),
    "tuple": lambda v: tuple(decode(v["v"])),
    "set": lambda v: set(decode(v["v"])),
    "frozenset": lambda v: frozenset(decode(v["v"])),
    "deque": lambda v: collections.deque(decode(v["v"]), v.get("maxlen")),
    "dict": lambda v: dict(_pairs(v)),
    "Counter": lambda v: collections.Counter(dict(_pairs(v))),
    "OrderedDict": lambda v: collections.OrderedDict(_pairs(v)),
    "defaultdict": lambda v: collections.defaultdict(_FACTORIES.get(v["of"]), _pairs(v)),
    "bytes": lambda v: base64.b64decode(v["v"]),
    "bytearray": lambda v: bytearray(base64.b64decode(v["v"])),
    "complex": lambda v: complex(float(v["v"][0]), float(v["v"][1])),
    "range": lambda v: range(*v["v"]),
    "array": _array, "scalar": _array,
    "Size": _torch, "dtype": _torch, "device": _torch,
}

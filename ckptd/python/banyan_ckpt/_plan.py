# SPDX-License-Identifier: BSD-3-Clause
"""The layout of a state: walked once, then only compared. See src/native/plan.hpp."""

from __future__ import annotations

import json
from typing import Any

import torch

from . import _native
from ._errors import StateError
from ._state import Expanded, clean
from ._tensors import NoPiece, dtensor_type, dtype_name, is_dtensor, piece_of
from ._tree import NotAValue, encode

TREE = "banyan.tree"
FORMAT = 1
MAX_NAME = 512
_DICTS = ("dict", "OrderedDict", "defaultdict", "Counter")


class Plan:
    """The native plan, and the text of the tree around the values. In that text a node is ["r", region, dtype] for a tensor, ["v"] for the
    next value, ["d", class, [[key, node], ...]] for a dictionary, ["l", [node, ...]] and ["t", [node, ...]] for lists and tuples."""

    def __init__(self, what: Expanded, rank: int, world: int) -> None:
        self.own = what.own
        self.native = _native.Plan(torch.Tensor, dtensor_type())
        self.keys: list[str] = []  # by region: its name, and where its tensor lies in the state
        self.paths: list[tuple[Any, ...]] = []
        self.text = b""            # the tree, as it was matched last
        self._rank = rank
        self._world = world
        self._seen: dict[tuple[Any, ...], int] = {}
        self._used: set[str] = {TREE}
        self._with_tensors: set[int] = set()
        _find_tensors(what.tree, self._with_tensors)
        skeleton = self._walk(what.tree, ())
        self.native.add_tree(TREE)
        self._head = json.dumps({"format": FORMAT, "rank": rank, "world": world, "torch": torch.__version__, "tree": skeleton},
                                separators=(",", ":"))[:-1] + ',"values":'

    def match(self, what: Expanded) -> bool:
        """Whether `what` has this layout; then save() would save what it holds now."""
        if what.own != self.own:
            return False
        values = self.native.match(what.tree)
        if values is None:
            return False
        try:
            encoded = [encode(value) for value in values]
        except NotAValue:
            return False  # a tensor where there was none: the walk says where
        self.text = (self._head + json.dumps(encoded, separators=(",", ":")) + "}").encode()
        self.native.set_tree(self.text)
        return True

    def _wrong(self, path: tuple[Any, ...], what: str) -> StateError:
        return StateError(".".join(map(str, path)), self._rank, what)

    def _walk(self, at: Any, path: tuple[Any, ...]) -> list[Any]:
        if isinstance(at, torch.Tensor):
            return self._tensor(at, path)
        if id(at) not in self._with_tensors:
            self._check_value(at, path)
            self.native.add_value()
            return ["v"]
        if isinstance(at, dict):
            self.native.add_dict(type(at), tuple(at))
            kind = type(at).__name__ if type(at).__name__ in _DICTS else "dict"
            return ["d", kind, [[self._key(k, path), self._walk(v, (*path, k))] for k, v in at.items()]]
        self.native.add_sequence(type(at), len(at))
        return ["l" if type(at) is list else "t", [self._walk(v, (*path, i)) for i, v in enumerate(at)]]

    def _key(self, key: Any, path: tuple[Any, ...]) -> Any:
        try:
            return encode(clean(key) if isinstance(key, str) else key)
        except NotAValue as error:
            raise self._wrong(path, f"has the key {key!r}, which {error}") from None

    def _check_value(self, at: Any, path: tuple[Any, ...]) -> None:
        try:
            encode(at)
        except NotAValue as error:
            hint = ": put it at the top of the state" if hasattr(at, "state_dict") else ""
            raise self._wrong((*path, *error.path), f"{error}{hint}") from None

    def _tensor(self, tensor: torch.Tensor, path: tuple[Any, ...]) -> list[Any]:
        try:
            piece = piece_of(tensor)
        except NoPiece as error:
            raise self._wrong(path, str(error)) from None
        local = piece.local
        # Tied weights: two names of the same memory are one region.
        same = (local.data_ptr(), piece.code, piece.shape, piece.global_shape, piece.offset)
        is_new = not piece.is_direct or piece.bytes == 0 or same not in self._seen
        if is_new:
            name = self._name(path)
            own = bool(self.own) and path[0] in self.own and not is_dtensor(tensor)
            where = (None, None) if own else (list(piece.global_shape), list(piece.offset))
            self._seen[same] = self.native.add_region(name, piece.code, piece.bytes, list(piece.shape), *where)
            self.keys.append(name)
            self.paths.append(path)
        region = self._seen[same]
        self.native.add_tensor(region, local.dtype, local.shape, getattr(tensor, "_spec", None) if is_dtensor(tensor) else None)
        return ["r", self.keys[region], dtype_name(local)]

    def _name(self, path: tuple[Any, ...]) -> str:
        name = ".".join(clean(str(k)) for k in path)
        if name in self._used:
            raise self._wrong(path, f"has the same name as another tensor of the state, {name!r}: give one of them another key")
        if len(name.encode()) > MAX_NAME or "\0" in name:
            raise self._wrong(path, f"is too long a name, or none: {len(name.encode())} bytes, {MAX_NAME} at most")
        self._used.add(name)
        return name


def at_path(tree: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def _find_tensors(at: Any, found: set[int]) -> bool:
    """Notes the containers that have a tensor somewhere in them."""
    if isinstance(at, torch.Tensor):
        return True
    inner = at.values() if isinstance(at, dict) else at if type(at) in (list, tuple) else ()
    has = [_find_tensors(one, found) for one in inner]
    if any(has):
        found.add(id(at))
    return any(has)


class Plans:
    """The plans of the last few states: a program may save more than one."""

    def __init__(self) -> None:
        self._recent: list[Plan] = []

    def of(self, what: Expanded, rank: int, world: int) -> Plan:
        for i, plan in enumerate(self._recent):
            if plan.match(what):
                self._recent.insert(0, self._recent.pop(i))
                return plan
        plan = Plan(what, rank, world)
        if not plan.match(what):
            raise StateError("", rank, "changed while it was looked at: another thread works on it")
        self._recent = [plan, *self._recent[:3]]
        return plan


# SPDX-License-Identifier: BSD-3-Clause
"""What torch.distributed.checkpoint saves, as regions: a tensor's part under the name that DCP knows it by, and one text with the values.

The text is that of _plan.py, of a dictionary without levels. Where a rank has several parts of one tensor, the names of all but the first
end in ~1, ~2, ...; "parts" of the text says which tensor each belongs to."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from . import _native
from ._errors import StateError
from ._plan import FORMAT, MAX_NAME, TREE
from ._tensors import DTYPES, NoPiece, Piece, _check_local, _in_bytes, dtype_name
from ._tree import NotAValue, encode

PAGE = 4096


@dataclass(frozen=True)
class Part:
    """A rank's part of the tensor `fqn`. `whole` and `offset` are in elements."""

    fqn: str
    local: torch.Tensor
    whole: tuple[int, ...]
    offset: tuple[int, ...]


def piece_at(local: torch.Tensor, whole: Sequence[int], offset: Sequence[int]) -> Piece:
    """Raises NoPiece for a tensor without bytes."""
    _check_local(local)
    shape, size = tuple(local.shape), local.element_size()
    # An empty part may begin beyond the end.
    at = tuple(min(begin, extent) for begin, extent in zip(offset, whole, strict=True))
    code = DTYPES.get(local.dtype)
    if code is not None:
        return Piece(local, code, shape, tuple(whole), at, local.numel() * size)
    scaled = (*at[:-1], at[-1] * size) if at else (0,)
    return Piece(local, "U8", _in_bytes(shape, size), _in_bytes(tuple(whole), size), scaled, local.numel() * size)


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """As its bytes will be read."""
    return tensor.detach().contiguous().resolve_conj().resolve_neg()


def value_of(fqn: str, value: Any, rank: int) -> Any:
    try:
        return encode(value)
    except NotAValue as error:
        raise StateError(".".join(map(str, (fqn, *error.path))), rank, str(error)) from None


class Layout:
    """The regions of one list of parts, made once: a save only says where they lie. `keys` name the values, in their order."""

    def __init__(self, parts: Sequence[Part], keys: Sequence[str], rank: int, world: int) -> None:
        self._rank = rank
        self._pieces = [self._piece(part) for part in parts]
        self._names = self._named(parts, set(keys) | {TREE})
        nodes: dict[str, list[Any]] = {key: ["v"] for key in keys}
        for name, part in zip(self._names, parts, strict=True):
            nodes.setdefault(part.fqn, ["r", name, dtype_name(part.local)])
        self._head = json.dumps({
            "format": FORMAT, "rank": rank, "world": world, "torch": torch.__version__, "tree": ["d", "dict", [[k, n] for k, n in nodes.items()]],
            "parts": {name: part.fqn for name, part in zip(self._names, parts, strict=True) if name != part.fqn},
        }, separators=(",", ":"))[:-1] + ',"values":'
        self._text = torch.empty(0, dtype=torch.uint8)
        self._native = _native.Regions()

    def _piece(self, part: Part) -> Piece:
        try:
            return replace(piece_at(part.local, part.whole, part.offset), local=torch.empty(0))  # it lies elsewhere each time
        except NoPiece as error:
            raise StateError(part.fqn, self._rank, str(error)) from None

    def _named(self, parts: Sequence[Part], used: set[str]) -> list[str]:
        names, count = [], dict.fromkeys((part.fqn for part in parts), 0)
        for part in parts:
            name = part.fqn if count[part.fqn] == 0 else f"{part.fqn}~{count[part.fqn]}"
            count[part.fqn] += 1
            if name in used or (name != part.fqn and name in count):
                raise StateError(part.fqn, self._rank, f"needs the name {name!r}, which another part of the state has: give one another key")
            if not 0 < len(name.encode()) <= MAX_NAME or "\0" in name or name.startswith("__"):
                raise StateError(part.fqn, self._rank, f"is no name for a tensor: 1 to {MAX_NAME} bytes that do not begin with __")
            used.add(name)
            names.append(name)
        return names

    def _lay(self, room: int) -> None:
        self._text = torch.empty(room, dtype=torch.uint8)
        self._native = _native.Regions()
        for name, piece in zip(self._names, self._pieces, strict=True):
            self._native.add(name, piece.code, piece.bytes, list(piece.shape), list(piece.global_shape), list(piece.offset), 0)
        self._native.add(TREE, "U8", room, [room], None, None, self._text.data_ptr())

    def save(self, step: int, tensors: Sequence[torch.Tensor], values: Sequence[Any]) -> tuple[int, str]:
        """`tensors` in the order of the parts, `values` encoded."""
        text = (self._head + json.dumps(list(values), separators=(",", ":")) + "}").encode()
        room = self._text.numel()
        if len(text) > room or 2 * len(text) + PAGE < room:  # some is left, so that a digit more changes no layout
            self._lay(-(-(len(text) + len(text) // 8) // PAGE) * PAGE)
        ctypes.memmove(self._text.data_ptr(), text, len(text))
        ctypes.memset(self._text.data_ptr() + len(text), ord(" "), self._text.numel() - len(text))
        lying = [plain(tensor) for tensor in tensors]
        for region, tensor in enumerate(lying):
            if tensor.numel():
                self._native.place(region, tensor.data_ptr())
        return _native.save(step, self._native)

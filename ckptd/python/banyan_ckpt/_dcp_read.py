# SPDX-License-Identifier: BSD-3-Clause
"""A step as torch.distributed.checkpoint sees it: its metadata is put together from what each rank says that it has saved."""

from __future__ import annotations

import ctypes
import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch.distributed.checkpoint._traverse import traverse_state_dict
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)

from . import _native
from ._bind import Saved
from ._dcp_layout import piece_at
from ._errors import LAYOUT, Error
from ._load import saved_tree
from ._plan import TREE
from ._sources import Region, check
from ._tensors import SCALAR, TORCH_DTYPES
from ._tree import encode

AT_ONCE = 64 << 20  # bytes of copies that may lie beside the state


class Place(NamedTuple):
    """Where a part of a tensor was saved, in elements of its dtype. `is_own`: it is to come from that rank, which may have another there
    than the others; else from whoever has it."""

    rank: int
    name: str
    dtype: torch.dtype
    whole: tuple[int, ...]
    offset: tuple[int, ...]
    shape: tuple[int, ...]
    is_own: bool


@dataclass
class Wanted:
    """A part of a Place, beginning at `offset` of the whole tensor, and where it goes."""

    place: Place
    offset: tuple[int, ...]
    into: torch.Tensor

    @property
    def is_direct(self) -> bool:
        """Whether bytes may be written where it lies."""
        into = self.into
        return into.dtype == self.place.dtype and into.is_contiguous() and not into.is_conj() and not into.is_neg() \
            and (not self.place.is_own or tuple(into.shape) == self.place.shape)


class Step:
    """An open step. `rank`: who reads; what that rank has saved itself comes before what others have."""

    def __init__(self, reader: _native.Reader, rank: int) -> None:
        self.reader, self._rank = reader, rank
        self.step, self.world = reader.step(), reader.world()
        self.places: dict[MetadataIndex, Place] = {}
        self.values: dict[str, Any] = {}
        self._metadata: dict[str, Any] = {}
        first = rank % self.world
        left = [one for one in (first, *(r for r in range(self.world) if r != first)) if self._add(one)]
        if not left:
            raise Error(f"rank {rank}: no rank's part of step {self.step} is left", LAYOUT)
        self._any_rank = left[0]

    def metadata(self) -> Metadata:
        return Metadata(dict(self._metadata))

    def _add(self, rank: int) -> bool:
        """What the rank has saved; false where nobody has that any more."""
        code, error, _, listed = self.reader.contents(rank)
        if code == LAYOUT:
            return False
        check((code, error), self._rank, f"rank {rank}'s part of step {self.step} cannot be read")
        regions = {entry[0]: Region(*entry) for entry in listed}
        tree = regions.pop(TREE, None)
        text = None if tree is None else Text(self.step, rank, self._text(rank, tree))
        dtypes: dict[str, str] = {}
        for fqn, leaf in leaves(text) if text else ((name, Saved(name, "")) for name in regions):
            if isinstance(leaf, Saved):
                dtypes[fqn] = leaf.dtype
                self._add_tensor(rank, fqn, leaf, regions)
            elif fqn not in self._metadata:
                self.values[fqn], self._metadata[fqn] = leaf, BytesStorageMetadata()
        for name, fqn in parts(text).items() if text else ():
            self._add_tensor(rank, fqn, Saved(name, dtypes.get(fqn, "")), regions)
        return True

    def _text(self, rank: int, tree: Region) -> bytes:
        text = torch.empty(tree.bytes, dtype=torch.uint8)
        regions = _native.Regions()
        regions.add(TREE, "U8", tree.bytes, list(tree.shape), None, None, text.data_ptr())
        check(self.reader.fill(rank, regions), self._rank, f"the values of rank {rank} in step {self.step} cannot be read")
        return ctypes.string_at(text.data_ptr(), tree.bytes)

    def _add_tensor(self, rank: int, fqn: str, saved: Saved, regions: dict[str, Region]) -> None:
        region = regions.get(saved.name)
        dtype = getattr(torch, saved.dtype.removesuffix(SCALAR), None) if saved.dtype else TORCH_DTYPES.get(region.dtype) if region else None
        if region is None or not isinstance(dtype, torch.dtype):
            what = f"has no region {saved.name!r}" if region is None else f"is of a dtype that torch {torch.__version__} has not"
            raise Error(f"rank {self._rank}: {fqn} of rank {rank} in step {self.step} {what}", LAYOUT)
        whole, at, shape = (in_elements(of, saved.dtype, dtype) for of in (region.whole, region.offset or (0,) * len(region.shape), region.shape))
        place = Place(rank, saved.name, dtype, whole, at, shape, region.global_shape is None or rank == self._rank % self.world)
        known = self._metadata.setdefault(fqn, TensorStorageMetadata(TensorProperties(dtype), torch.Size(place.whole), []))
        index = MetadataIndex(fqn, torch.Size(place.offset))
        if not isinstance(known, TensorStorageMetadata) or known.size != place.whole or known.properties.dtype != dtype or index in self.places:
            return  # a replica, or another rank's own of the same name
        if region.bytes or 0 in place.whole:
            self.places[index] = place
            known.chunks.append(ChunkStorageMetadata(torch.Size(place.offset), torch.Size(place.shape)))

    def read(self, wanted: list[Wanted]) -> None:
        """Raises Error; then some may be filled."""
        left = [one for one in wanted if one.into.numel()]
        while left:
            batch, left = _batch(left)
            self._fill(batch)

    def _fill(self, batch: list[Wanted]) -> None:
        regions, copies = _native.Regions(), []
        for one in batch:
            place, local = one.place, one.into
            if not one.is_direct:
                local = torch.empty(place.shape if place.is_own else local.shape, dtype=place.dtype, device=local.device)
                copies.append((one, local))
            piece = piece_at(local, place.whole, place.offset if place.is_own else one.offset)
            whole, at = (None, None) if place.is_own else (list(piece.global_shape), list(piece.offset))
            regions.add(place.name, piece.code, piece.bytes, list(piece.shape), whole, at, local.data_ptr())
        rank = batch[0].place.rank if batch[0].place.is_own else self._any_rank
        check(self.reader.fill(rank, regions), self._rank, f"step {self.step} cannot be loaded")
        for one, copy in copies:
            for dim, begin in enumerate(one.offset) if one.place.is_own else ():
                copy = copy.narrow(dim, begin - one.place.offset[dim], one.into.shape[dim])
            one.into.copy_(copy)


def _batch(left: list[Wanted]) -> tuple[list[Wanted], list[Wanted]]:
    """What one call of the library can fill: each name once, and not too much beside the state. And the others."""
    names: set[str] = set()
    size, batch, others = 0, [], []
    of = left[0].place
    for one in left:
        beside = 0 if one.is_direct else one.into.numel() * one.place.dtype.itemsize
        fits = one.place.is_own == of.is_own and (not of.is_own or one.place.rank == of.rank) and (not size or size + beside <= AT_ONCE)
        if fits and one.place.name not in names:
            names.add(one.place.name)
            size += beside
            batch.append(one)
        else:
            others.append(one)
    return batch, others


@dataclass(frozen=True)
class Text:
    """A rank's values, as _plan.py or _dcp_layout.py wrote them."""

    step: int
    rank: int
    tree: bytes


def leaves(text: Text) -> list[tuple[str, Any]]:
    """By the names that DCP gives them: Saved for a tensor, else the value, encoded."""
    out: list[tuple[str, Any]] = []

    def visit(path: tuple[Any, ...], value: Any) -> None:
        out.append((".".join(map(str, path)), value if isinstance(value, Saved) else encode(value)))

    traverse_state_dict(saved_tree(text), visit, lambda value: isinstance(value, Saved))  # type: ignore[arg-type]
    return out


def parts(text: Text) -> dict[str, str]:
    """By region: the tensor that it is a further part of."""
    found = json.loads(text.tree).get("parts", {})
    if not isinstance(found, dict) or not all(isinstance(fqn, str) for fqn in found.values()):
        raise Error(f"the values of rank {text.rank} in step {text.step} make no sense: parts", LAYOUT)
    return found


def in_elements(of: tuple[int, ...], name: str, dtype: torch.dtype) -> tuple[int, ...]:
    """Extents or offsets of a region; `name` is what dtype_name() said of its tensor, "" where they count elements already."""
    if not name:
        return of
    return () if name.endswith(SCALAR) else (*of[:-1], of[-1] // dtype.itemsize)

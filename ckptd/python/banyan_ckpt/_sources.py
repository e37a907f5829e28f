# SPDX-License-Identifier: BSD-3-Clause
"""Where a saved step is read from: the job's memory, or a checkpoint directory in any layout."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch

from . import _native
from ._errors import LAYOUT, NOTFOUND, OK, REFUSED, Error
from ._plan import TREE
from ._session import World
from ._tensors import Piece

SOURCES = {0: "none", 1: "local", 2: "peer", 3: "storage"}


class Region(NamedTuple):
    """A region as it was saved. `global_shape` and `offset` are None where it is its rank's own."""

    name: str
    dtype: str
    bytes: int
    shape: tuple[int, ...]
    global_shape: tuple[int, ...] | None
    offset: tuple[int, ...] | None

    @property
    def whole(self) -> tuple[int, ...]:
        return self.shape if self.global_shape is None else self.global_shape


@dataclass(frozen=True)
class Target:
    """A piece to be filled with what was saved under `name`. Its memory has no gaps."""

    name: str
    piece: Piece
    own: bool


class Source(Protocol):
    """One step. `rank`: whose values this rank takes; `own`: whether that is itself, in a world of the same size. `tree`: the text of the
    values, as _plan.py wrote it."""

    step: int
    world: int
    rank: int
    own: bool
    kind: str
    tree: bytes

    def find(self, name: str) -> Region | None: ...

    def fill(self, targets: Iterable[Target]) -> None:
        """Raises Error. Each name once."""

    def accept(self) -> None:
        """This process goes on from here."""

    def close(self) -> None: ...


def check(said: tuple[int, str], rank: int, what: str) -> None:
    if said[0] != OK:
        raise Error(f"rank {rank}: {what}: {said[1]}", said[0])


def _add(regions: _native.Regions, one: Target, *, as_piece: bool) -> None:
    piece = one.piece
    regions.add(one.name, piece.code, piece.bytes, list(piece.shape), list(piece.global_shape) if as_piece else None,
                list(piece.offset) if as_piece else None, piece.local.data_ptr())


class JobSource:
    """The newest complete step of this job, of this rank, which the node's daemon brings."""

    def __init__(self, me: World, step: int, regions: list[Region]) -> None:
        self.step, self.world, self.rank, self.own, self.kind = step, me.world, me.rank, True, "none"
        self._regions = {region.name: region for region in regions}
        self.tree = read_tree(self)

    def find(self, name: str) -> Region | None:
        return self._regions.get(name)

    def fill(self, targets: Iterable[Target]) -> None:
        regions = _native.Regions()
        for one in targets:
            _add(regions, one, as_piece=self._regions[one.name].global_shape is not None)
        code, error, step, source = _native.restart(regions)
        check((code, error), self.rank, f"step {self.step} cannot be loaded")
        if step != self.step:
            raise Error(f"rank {self.rank}: the ranks went on from step {self.step} to step {step} meanwhile: call load() again", REFUSED)
        self.kind = SOURCES.get(source, "none")

    def accept(self) -> None:
        """fill() has said so."""

    def close(self) -> None:
        """Nothing is open."""


class ReaderSource:
    """A step in any layout: of a directory, or of the job in another number of ranks."""

    def __init__(self, me: World, reader: _native.Reader, kind: str) -> None:
        self.step, self.world, self.kind = reader.step(), reader.world(), kind
        self._me, self._reader = me, reader
        self._of_any: dict[str, Region] | None = None
        first = me.rank % self.world
        order = (*range(first, self.world), *range(first))
        found = next(((rank, its) for rank in order if (its := self._stat(rank)) is not None), None)
        if found is None:
            raise Error(f"rank {me.rank}: no rank's part of step {self.step} is left", LAYOUT)
        self.rank, self._of_rank = found
        self.own = (self.rank, self.world) == (me.rank, me.world)
        self.tree = read_tree(self)

    def _stat(self, rank: int) -> dict[str, Region] | None:
        """What the rank has saved; None where nobody has that any more."""
        code, error, _, listed = self._reader.contents(rank)
        if code == LAYOUT:
            return None
        check((code, error), self._me.rank, f"rank {rank}'s part of step {self.step} cannot be read")
        return {entry[0]: Region(*entry) for entry in listed}

    def find(self, name: str) -> Region | None:
        found = self._of_rank.get(name)
        if found is None and self._of_any is None:
            self._of_any = {}
            for rank in range(self.world):
                parts = {n: r for n, r in (self._stat(rank) or {}).items() if r.global_shape is not None}
                self._of_any = {**parts, **self._of_any}
        return found if found is not None or self._of_any is None else self._of_any.get(name)

    def fill(self, targets: Iterable[Target]) -> None:
        regions = _native.Regions()
        for one in targets:
            piece, saved = one.piece, self._of_rank.get(one.name)
            # What the rank has itself is taken as it is: a replica that differs between ranks stays what it was.
            mine = saved is not None and saved.shape == piece.shape and saved.offset in (None, piece.offset)
            _add(regions, one, as_piece=not mine)
        check(self._reader.fill(self.rank, regions), self._me.rank, f"step {self.step} cannot be loaded")

    def accept(self) -> None:
        if self.kind != "job":
            return
        code, error, step, _ = _native.restart(_native.Regions())
        check((code, error), self._me.rank, f"step {self.step} cannot be gone on from")
        if step != self.step:
            raise Error(f"rank {self._me.rank}: the ranks went on from step {self.step} to step {step} meanwhile: call load() again", REFUSED)

    def close(self) -> None:
        self._reader.close()


def read_tree(source: Source) -> bytes:
    region = source.find(TREE)
    if region is None or region.dtype != "U8":
        raise Error(f"step {source.step} has no region {TREE!r}: it was not saved by this package (bck_checkpoint, or banyan-ckpt export "
                    "reads it)", LAYOUT)
    text = torch.empty(region.bytes, dtype=torch.uint8)
    source.fill([Target(TREE, Piece(text, "U8", region.shape, region.whole, region.offset or (0,), region.bytes), own=True)])
    return ctypes.string_at(text.data_ptr(), region.bytes)


def open_directory(me: World, directory: str, step: int | None) -> ReaderSource | None:
    """The step of a checkpoint directory, by default the newest that is committed; None where there is none."""
    reader = _native.Reader()
    said = reader.open(directory, step)
    if said[0] == NOTFOUND and step is None:
        return None
    check(said, me.rank, f"{directory} cannot be read")
    return ReaderSource(me, reader, "directory")


def open_job(me: World) -> Source | None:
    """The step that this job goes on from; None where there is none, and never where nobody could say."""
    code, error, step, listed = _native.contents()
    if code == NOTFOUND:
        return None
    if code == OK:
        try:
            return JobSource(me, step, [Region(*entry) for entry in listed])
        except Error as refused:
            code, error = refused.code, str(refused)
    if code != LAYOUT:
        check((code, error), me.rank, "the state to go on from cannot be had")
    reader = _native.Reader()  # another number of ranks has saved it
    check(reader.open_job(), me.rank, "the state to go on from cannot be had")
    return ReaderSource(me, reader, "job")

# SPDX-License-Identifier: BSD-3-Clause
"""Fills live tensors with what was saved: where they lie, or by way of one piece where they have gaps."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from ._errors import StateError
from ._sources import Source, Target
from ._tensors import Piece

BATCH = 64 << 20  # bytes that may lie beside the state, if no piece is larger


@dataclass(frozen=True)
class Wanted:
    """A live piece, the region that it takes, and the key by which the user knows it."""

    key: str
    name: str
    piece: Piece
    own: bool


def fill_all(source: Source, wanted: list[Wanted], rank: int) -> None:
    """Every piece; raises Error, or StateError where tied tensors are to hold different contents."""
    direct: dict[str, Wanted] = {}
    places: dict[tuple[int, int], Wanted] = {}
    aside: list[Wanted] = []
    for one in wanted:
        place = (one.piece.local.data_ptr(), one.piece.bytes)
        if one.piece.bytes == 0:
            continue
        if place in places and places[place].name == one.name:
            continue
        if one.piece.is_direct and place not in places and one.name not in direct:
            direct[one.name] = places[place] = one
        else:
            aside.append(one)
    if direct or not aside:
        source.fill([Target(one.name, one.piece, one.own) for one in direct.values()])
    while aside:
        aside = _fill_aside(source, aside, places, rank)


def _fill_aside(source: Source, aside: list[Wanted], places: dict[tuple[int, int], Wanted], rank: int) -> list[Wanted]:
    """The first of them, as many as fit; returns the others."""
    taken: dict[str, tuple[Wanted, torch.Tensor]] = {}
    size = 0
    while aside and aside[0].name not in taken and (not taken or size + aside[0].piece.bytes <= BATCH):
        one = aside.pop(0)
        size += one.piece.bytes
        taken[one.name] = (one, torch.empty_like(one.piece.local, memory_format=torch.contiguous_format))
    source.fill([Target(name, replace(one.piece, local=copy), one.own) for name, (one, copy) in taken.items()])
    with torch.no_grad():
        for one, copy in taken.values():
            local = one.piece.local
            other = places.get((local.data_ptr(), one.piece.bytes))
            if other is None:
                _first(local, local.stride()).copy_(_first(copy, local.stride()))
                if 0 in local.stride() and not torch.equal(_bits(local), _bits(copy)):
                    raise StateError(one.key, rank, f"is expanded here, one memory for several elements, but in step {source.step} they differ")
            elif not torch.equal(_bits(local), _bits(copy)):
                raise StateError(one.key, rank, f"shares its memory with {other.key!r} here, but in step {source.step} they differ")
    return aside


def _first(of: torch.Tensor, stride: tuple[int, ...]) -> torch.Tensor:
    """Of elements that share one memory, as in an expanded tensor, the first."""
    for dim, step in enumerate(stride):
        of = of.narrow(dim, 0, 1) if step == 0 else of
    return of


def _bits(of: torch.Tensor) -> torch.Tensor:
    return of.contiguous().view(-1).view(torch.uint8)

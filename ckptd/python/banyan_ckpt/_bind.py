# SPDX-License-Identifier: BSD-3-Clause
"""Which live tensor takes which saved one. Nothing is changed before all of the state is known to fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from ._errors import StateError
from ._fill import Wanted
from ._sources import Region, Source
from ._state import Stateful, clean
from ._tensors import NoPiece, Piece, empty_of, piece_of
from ._tree import kind_of

Path = tuple[Any, ...]
Setter = Callable[[Any], None]


@dataclass(frozen=True)
class Saved:
    """A tensor of the saved step: its region, and torch's name of its dtype where the library has none."""

    name: str
    dtype: str


def shown(path: Path) -> str:
    return ".".join(map(str, path))


class Binder:
    """Collects what is to be filled (`wanted`) and what is to be done after it (`actions`)."""

    def __init__(self, source: Source, rank: int, strict: bool) -> None:
        self.source, self.rank, self.strict = source, rank, strict
        self.wanted: list[Wanted] = []
        self.actions: list[Callable[[], None]] = []
        self.missing: list[str] = []
        self.unused: list[str] = []
        self._made: dict[str, torch.Tensor] = {}

    def bind(self, state: dict[str, Any], saved: dict[str, Any]) -> None:
        """The whole state. What the step has beside it at the top is passed over: who loads the model alone says so by that."""
        from ._bind_objects import bind_module, bind_optimizer, bind_stateful
        self.unused += [key for key in saved if key not in state]
        for key, part in state.items():
            path = (key,)
            if key not in saved:
                self.absent(path)
            elif isinstance(part, torch.nn.Module):
                bind_module(self, part, saved[key], path)
            elif isinstance(part, torch.optim.Optimizer):
                bind_optimizer(self, part, saved[key], path, state)
            elif not isinstance(part, dict) and isinstance(part, Stateful):
                bind_stateful(self, part, saved[key], path)
            else:
                self.value(part, saved[key], path, partial(state.__setitem__, key))

    def wrong(self, path: Path, what: str) -> StateError:
        return StateError(shown(path), self.rank, what)

    def absent(self, path: Path) -> None:
        if self.strict:
            raise self.wrong(path, f"is not in step {self.source.step} (strict=False leaves it as it is)")
        self.missing.append(shown(path))

    def extra(self, path: Path) -> None:
        if self.strict:
            raise self.wrong(path, f"is in step {self.source.step}, but not in this state (strict=False passes it over)")
        self.unused.append(shown(path))

    def value(self, live: Any, saved: Any, path: Path, put: Setter) -> None:
        """A part that is no object: tensors are filled, values replaced; an empty dictionary or None takes all that there is."""
        if isinstance(live, torch.Tensor):
            self.tensor(live, saved, path)
        elif isinstance(live, dict) and live:
            self._dictionary(live, saved, path)
        elif isinstance(live, list | tuple) and _has_tensor(live):
            self._sequence(live, saved, path, put)
        else:
            new = self.fresh(saved, path)
            if isinstance(live, dict) and isinstance(new, dict):
                self.actions.append(lambda: live.update(new))
            else:
                self.actions.append(lambda: put(new))

    def _dictionary(self, live: dict[Any, Any], saved: Any, path: Path) -> None:
        if not isinstance(saved, dict):
            raise self.wrong(path, f"is a dictionary here, and a {_kind(saved)} in step {self.source.step}")
        known = set()
        for key, part in list(live.items()):
            its = clean(key) if isinstance(key, str) and key not in saved else key  # only keys on the way to a tensor are saved clean
            known.add(its)
            if its in saved:
                self.value(part, saved[its], (*path, key), partial(live.__setitem__, key))
            else:
                self.absent((*path, key))
        for key in saved:
            if key not in known:
                self.extra((*path, key))

    def _sequence(self, live: Any, saved: Any, path: Path, put: Setter) -> None:
        if not isinstance(saved, list | tuple) or len(saved) != len(live):
            has = f"{len(saved)} items" if isinstance(saved, list | tuple) else f"a {_kind(saved)}"
            raise self.wrong(path, f"has {len(live)} items here, and {has} in step {self.source.step}")
        items = live if isinstance(live, list) else list(live)
        for i, part in enumerate(live):
            self.value(part, saved[i], (*path, i), partial(items.__setitem__, i))
        if items is not live:  # a tuple is made anew, with the same tensors
            self.actions.append(lambda: put(tuple(items)))

    def tensor(self, live: torch.Tensor, saved: Any, path: Path) -> None:
        """Fills it; raises StateError where it is another tensor than the saved one."""
        if not isinstance(saved, Saved):
            raise self.wrong(path, f"is a tensor here, and a {_kind(saved)} in step {self.source.step}")
        try:
            piece = piece_of(live)
        except NoPiece as error:
            raise self.wrong(path, str(error)) from None
        region = self.region(saved, path)
        here = (piece.code, tuple(piece.global_shape))
        there = (region.dtype, tuple(region.whole))
        if here != there:
            raise self.wrong(path, f"is {here[0]} {list(here[1])} here, and {there[0]} {list(there[1])} in step {self.source.step}")
        self.wanted.append(Wanted(shown(path), saved.name, piece, region.global_shape is None))

    def region(self, saved: Saved, path: Path) -> Region:
        region = self.source.find(saved.name)
        if region is None:
            raise self.wrong(path, f"is missing in step {self.source.step}: no rank has saved {saved.name!r}")
        return region

    def fresh(self, saved: Any, path: Path) -> Any:
        """The saved part in new memory, whole tensors on the CPU."""
        if isinstance(saved, Saved):
            if saved.name not in self._made:
                region = self.region(saved, path)
                made = empty_of(region.dtype, region.whole, saved.dtype)
                self._made[saved.name] = made
                piece = Piece(made, region.dtype, region.whole, region.whole, (0,) * len(region.whole), made.numel() * made.element_size())
                self.wanted.append(Wanted(shown(path), saved.name, piece, region.global_shape is None))
            return self._made[saved.name]
        if isinstance(saved, dict):
            for key in saved:
                saved[key] = self.fresh(saved[key], (*path, key))
            return saved
        if type(saved) in (list, tuple):
            return type(saved)(self.fresh(part, (*path, i)) for i, part in enumerate(saved))
        return saved


def _has_tensor(at: Any) -> bool:
    if isinstance(at, torch.Tensor):
        return True
    inner = at.values() if isinstance(at, dict) else at if isinstance(at, list | tuple) else ()
    return any(_has_tensor(one) for one in inner)


def _kind(saved: Any) -> str:
    return "tensor" if isinstance(saved, Saved) else kind_of(saved)

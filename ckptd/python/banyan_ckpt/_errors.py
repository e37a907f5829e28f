# SPDX-License-Identifier: BSD-3-Clause
"""What the calls return and raise: trouble with the daemon is a returned Outcome, what cannot go on an exception."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# The codes of <banyan/ckpt.h>.
OK = 0
INVALID = -1
NODAEMON = -2
NOTFOUND = -3
TIMEOUT = -4
BUSY = -5
LAYOUT = -6
MEMORY = -7
REFUSED = -8
DEVICE = -9
STALE = -10

_WORDS = {OK: "ok", INVALID: "invalid", NODAEMON: "no daemon", NOTFOUND: "not found", TIMEOUT: "timeout", BUSY: "busy", LAYOUT: "layout",
          MEMORY: "memory", REFUSED: "refused", DEVICE: "device", STALE: "stale"}


class Error(RuntimeError):
    """Something that cannot go on as it was asked for; `code` is one of <banyan/ckpt.h>, or 0."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.code)  # DCP sends it to the other ranks


class StateError(Error, ValueError):
    """A state that cannot be saved, or does not fit what was saved. `key` names the leaf, "" the state as a whole."""

    def __init__(self, key: str, rank: int, what: str) -> None:
        super().__init__(f"rank {rank}: {key!r} {what}" if key else f"rank {rank}: the state {what}", INVALID)
        self.key = key
        self.rank = rank
        self._what = what

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.key, self.rank, self._what)


@dataclass(frozen=True)
class Outcome:
    """What became of a save or a wait: true where it was done. `reason` says in words why it was not."""

    step: int
    code: int = OK
    reason: str = ""

    def __bool__(self) -> bool:
        return self.code == OK

    @property
    def ok(self) -> bool:
        return self.code == OK

    def __str__(self) -> str:
        return f"step {self.step}: ok" if self else f"step {self.step}: {_WORDS.get(self.code, self.code)}: {self.reason}"


@dataclass(frozen=True)
class Loaded:
    """What load() has brought. `own` is False where it was saved by another number of ranks: then the values, random numbers and data
    loaders are those of rank `rank` of `world`. `missing` and `unused` name what the step has not, and what was not asked for."""

    step: int
    source: str
    rank: int
    world: int
    own: bool
    state: dict[str, Any] = field(repr=False)
    missing: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()

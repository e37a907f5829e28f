# SPDX-License-Identifier: BSD-3-Clause
"""The keys and values of one start of a process group, who takes part, and who waits for which key. Knows no socket, thread or clock."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

from ._store_wire import (ADD, APPEND, CANCEL, CANCELLED, CHECK, COMPARE_SET, COUNT, DELETE, DONE, GET, MAX_VALUE, REFUSED, SET, WAIT, Malformed)

_NAMED = 8  # of the keys that are missing, so many are named


class Refused(Exception):
    """Why a request is not done, for whoever asked."""


class Later(Exception):
    """Why a rank may not join now, and may try again."""


class Asker(Protocol):
    """A connection. `request`: of one that waits its kind, its keys, and how many of these were seen to be there; the space's own."""

    request: tuple[int, list[bytes], int] | None

    def answer(self, kind: int, fields: list[bytes]) -> None:
        """Never raises."""


class Space:
    """`run` names the run, in words; `world`: its number of ranks; `members`: by rank, what its process calls itself."""

    def __init__(self, run: bytes, world: int) -> None:
        self.run, self.world = run, world
        self.id = os.urandom(16)
        self.data: dict[bytes, bytes] = {}
        self.members: dict[bytes, bytes] = {}
        self._waiting: dict[bytes, dict[Asker, None]] = {}

    def hear(self, asker: Asker, kind: int, fields: list[bytes]) -> None:
        """Does a request, or has it wait. Raises Malformed where it makes no sense."""
        if kind == CANCEL:
            self._cancel(asker)
        elif asker.request is not None:
            raise Malformed("a request before the last one is answered")
        elif kind in (GET, WAIT):
            asker.request = (kind, fields, 0)
            self._look(asker)
        elif kind in _OPERATIONS:
            self._do(asker, kind, fields)
        else:
            raise Malformed(f"a request of kind {kind}")

    def forget(self, asker: Asker) -> None:
        """It waits no more."""
        if asker.request is not None:
            _, keys, at = asker.request
            waiting = self._waiting.get(keys[at], {})
            waiting.pop(asker, None)
            if not waiting:
                self._waiting.pop(keys[at], None)
            asker.request = None

    def _do(self, asker: Asker, kind: int, fields: list[bytes]) -> None:
        count, operation = _OPERATIONS[kind]
        if count is not None and len(fields) != count:
            raise Malformed(f"{len(fields)} fields in a request of kind {kind}")
        try:
            answer = operation(self, fields)
        except Refused as why:
            asker.answer(REFUSED, [str(why).encode()])
            return
        asker.answer(DONE, answer)
        # Whoever waits for a key that may be there now looks again.
        for key in fields[::2] if kind == SET else fields[:1]:
            for waiting in self._waiting.pop(key, ()):
                self._look(waiting)

    def _look(self, asker: Asker) -> None:
        """Answers a request, or has it wait for the first key that is missing."""
        assert asker.request is not None
        kind, keys, at = asker.request
        while at < len(keys) and keys[at] in self.data:
            at += 1
        if at == len(keys) and kind == GET:
            at = next((i for i, key in enumerate(keys) if key not in self.data), at)  # deleted meanwhile
        if at < len(keys):
            asker.request = (kind, keys, at)
            self._waiting.setdefault(keys[at], {})[asker] = None
            return
        asker.request = None
        asker.answer(DONE, [self.data[key] for key in keys] if kind == GET else [])

    def _cancel(self, asker: Asker) -> None:
        if asker.request is None:
            return  # the answer was faster
        missing = [key for key in asker.request[1] if key not in self.data]
        self.forget(asker)
        asker.answer(CANCELLED, [b"%d" % len(missing), *(key[:200] for key in missing[:_NAMED])])

    def _put(self, key: bytes, value: bytes) -> None:
        if len(value) > MAX_VALUE:
            raise Refused(f"the value of {text_of(key)} has {len(value)} bytes; it may have {MAX_VALUE}")
        self.data[key] = value

    def _set(self, fields: list[bytes]) -> list[bytes]:
        if len(fields) % 2:
            raise Malformed("a key without a value")
        for key, value in zip(fields[::2], fields[1::2]):
            self._put(key, value)
        return []

    def _check(self, keys: list[bytes]) -> list[bytes]:
        return [b"1" if all(key in self.data for key in keys) else b"0"]

    def _add(self, fields: list[bytes]) -> list[bytes]:
        key, number = fields
        total = b"%d" % (_number(key, self.data.get(key, b"0")) + _number(key, number))
        _number(key, total)
        self._put(key, total)
        return [total]

    def _compare_set(self, fields: list[bytes]) -> list[bytes]:
        key, expected, value = fields
        if self.data[key] == expected if key in self.data else not expected:
            self._put(key, value)
        return [self.data.get(key, expected)]

    def _append(self, fields: list[bytes]) -> list[bytes]:
        self._put(fields[0], self.data.get(fields[0], b"") + fields[1])
        return []

    def _delete(self, keys: list[bytes]) -> list[bytes]:
        return [b"0" if self.data.pop(keys[0], None) is None else b"1"]

    def _count(self, _: list[bytes]) -> list[bytes]:
        return [b"%d" % len(self.data)]


class Spaces:
    """Those of one rank 0, which stay until its process ends. The nth start of a rank meets the nth of rank 0, whichever comes first: so a
    process may start a group anew, or two of them, and a second process of a rank finds no place."""

    def __init__(self) -> None:
        self._all: list[Space] = []

    def begin(self, run: bytes, world: int) -> None:
        self._all.append(Space(run, world))

    def join(self, run: bytes, rank: bytes, member: bytes, space: bytes) -> Space:
        """For a connection of the process that calls itself `member`. `space`: the one to which its first connection came, at that one
        empty. Raises Refused, Later."""
        ours = [known for known in self._all if known.run == run]
        if not ours:
            raise Refused(f"it is of another run: {text_of(self._all[-1].run)}")
        if not rank.isdigit() or int(rank[:10]) >= ours[-1].world:
            raise Refused(f"there is no rank {text_of(rank)} among {ours[-1].world}")
        for known in ours:
            if known.id == space or (not space and known.members.setdefault(rank, member) == member):
                return known
        if space:
            raise Refused("rank 0 is another process since, and this one belongs to its predecessor")
        raise Later(f"rank {rank.decode()} has joined already, by another process or an earlier call, and rank 0 has not called again")


def text_of(text: bytes) -> str:
    return repr(text.decode(errors="replace")[:200])


def _number(key: bytes, text: bytes) -> int:
    try:
        value = int(text) if len(text) <= 20 else None
    except ValueError:
        value = None
    if value is None or not -(1 << 63) <= value < 1 << 63:
        raise Refused(f"what is added to {text_of(key)}, or stands there, is no number of 64 bits: {text_of(text)}")
    return value


# How many fields each has, None for any number.
_OPERATIONS: dict[int, tuple[int | None, Callable[[Space, list[bytes]], list[bytes]]]] = {
    SET: (None, Space._set), CHECK: (None, Space._check), ADD: (2, Space._add), COMPARE_SET: (3, Space._compare_set),
    APPEND: (2, Space._append), DELETE: (1, Space._delete), COUNT: (0, Space._count)}

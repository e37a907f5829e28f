# SPDX-License-Identifier: BSD-3-Clause
"""torch.distributed's Store, over a channel to rank 0."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta

import torch.distributed as dist

from ._store_client import Channel
from ._store_wire import ADD, APPEND, CHECK, COMPARE_SET, COUNT, DELETE, GET, SET, TOO_LONG, WAIT


class Store(dist.Store):
    """What TCPStore does but for queues, list_keys and watching keys, which torch does not ask a store in Python for. Thread-safe. Calls
    raise DistStoreError, which names the keys, when their time is over, and DistNetworkError when rank 0 is gone."""

    # set_timeout() and timeout are torch's: C++ reads and changes the same value.
    def __init__(self, channel: Channel, timeout: timedelta) -> None:
        super().__init__()
        self.set_timeout(timeout)
        self._channel = channel
        _KEPT.append(self)

    def set(self, key: str, value: str | bytes) -> None:
        self._ask(SET, key.encode(), _bytes(value))

    def get(self, key: str) -> bytes:
        return self.multi_get([key])[0]

    def add(self, key: str, amount: int) -> int:
        return int(self._ask(ADD, key.encode(), b"%d" % amount)[0])

    def check(self, keys: Sequence[str]) -> bool:
        return self._ask(CHECK, *_keys(keys)) == [b"1"]

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        self._channel.ask(WAIT, _keys(keys), self._seconds() if timeout is None else timeout.total_seconds())

    def compare_set(self, key: str, expected: str | bytes, value: str | bytes) -> bytes:
        return self._ask(COMPARE_SET, key.encode(), _bytes(expected), _bytes(value))[0]

    def append(self, key: str, value: str | bytes) -> None:
        self._ask(APPEND, key.encode(), _bytes(value))

    def delete_key(self, key: str) -> bool:
        return self._ask(DELETE, key.encode()) == [b"1"]

    def num_keys(self) -> int:
        return int(self._ask(COUNT)[0])

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        keys = list(keys)
        answer, values = self._channel.ask(GET, _keys(keys), self._seconds())
        if answer == TOO_LONG:  # for one frame
            half = len(keys) // 2
            return self.multi_get(keys[:half]) + self.multi_get(keys[half:])
        return values

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        if len(keys) != len(values):
            raise ValueError(f"{len(keys)} keys and {len(values)} values")
        self._ask(SET, *(part for key, value in zip(keys, values) for part in (key.encode(), _bytes(value))))

    def has_extended_api(self) -> bool:
        return True

    def clone(self) -> Store:
        """The same keys, with a timeout of its own."""
        return Store(self._channel, timedelta(seconds=self._seconds()))

    # Under these names C++ looks for two of them.
    deleteKey = delete_key  # noqa: N815
    getNumKeys = num_keys   # noqa: N815

    def _ask(self, kind: int, *fields: bytes) -> list[bytes]:
        return self._channel.ask(kind, fields, self._seconds())[1]

    def _seconds(self) -> float:
        limit: timedelta = self.timeout  # type: ignore[attr-defined]
        return limit.total_seconds()


# C++ holds its half of a store only, and fails where the half in Python is gone.
_KEPT: list[Store] = []


def _in_child() -> None:
    for store in _KEPT:
        store._channel.forget()


os.register_at_fork(after_in_child=_in_child)


def _keys(keys: Sequence[str]) -> list[bytes]:
    return [key.encode() for key in keys]


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)

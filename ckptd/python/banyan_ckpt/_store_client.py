# SPDX-License-Identifier: BSD-3-Clause
"""A rank's way to the store of rank 0."""

from __future__ import annotations

import math
import os
import random
import socket
import time
from collections.abc import Sequence

from torch.distributed import DistNetworkError, DistStoreError

from ._store_wire import (CANCEL, CANCELLED, DONE, HELLO, LATER, MAGIC, MAX_FRAME, MAX_HELLO, REFUSED, TOO_LONG, Malformed, TooLong, encode,
                          take)

_GRACE = 10.0    # seconds that rank 0 has for what does not wait for a key, however little time a request has
_ATTEMPT = 10.0  # seconds for one attempt at one address
_SLOWEST = 1.0   # seconds between attempts, at most


class _Connection:
    """For one request at a time. Times are of time.monotonic(); None: never. Raises TimeoutError, ConnectionError, Malformed."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self._received = bytearray()

    def send(self, pieces: list[bytes], end: float | None) -> None:
        self.socket.settimeout(_left(end))
        self.socket.sendall(b"".join(pieces))

    def receive(self, end: float | None, limit: int = MAX_FRAME) -> tuple[int, list[bytes]]:
        while (frame := take(self._received, limit)) is None:
            self.socket.settimeout(_left(end))
            received = self.socket.recv(1 << 18)
            if not received:
                raise ConnectionResetError("it has closed the connection")
            self._received += received
        return frame


def _left(end: float | None) -> float | None:
    left = None if end is None else end - time.monotonic()
    if left is not None and left <= 0:
        raise TimeoutError("no answer in time")
    return left


class Channel:
    """Asks the store at `host`:`port` as `rank` of the run that `run` names. Any number of threads may ask at once: each has a connection to
    itself meanwhile, so that none waits for another. A name is looked up once, and only forward."""

    def __init__(self, host: str, port: int, run: str, rank: int) -> None:
        self.host, self.port, self.run, self.rank = host, port, run, rank
        self._member = os.urandom(16)
        self._space = b""
        self._addresses: list[tuple[int, tuple[object, ...]]] = []
        self._idle: list[_Connection] = []

    def join(self, timeout: float) -> None:
        """Waits for rank 0 for so many seconds. Raises DistNetworkError, DistStoreError."""
        self._idle.append(self._connect(_end(timeout), timeout))

    def ask(self, kind: int, fields: Sequence[bytes], timeout: float) -> tuple[int, list[bytes]]:
        """DONE or TOO_LONG, and what was asked for. `timeout` in seconds, 0: none. Raises DistStoreError where it has passed, or where the
        store refuses, and DistNetworkError where there is no store any more."""
        end = _end(timeout)
        try:
            pieces = encode(kind, fields)
        except TooLong as error:
            raise DistStoreError(f"rank {self.rank}: {error}") from None
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect(_graced(end), timeout)
        try:
            answer, said = self._exchange(connection, pieces, end, timeout)
        except BaseException:
            connection.socket.close()  # no other request may meet this one's answer
            raise
        self._idle.append(connection)
        if answer == CANCELLED:
            raise DistStoreError(f"rank {self.rank}: timeout: after {timeout:g} s nobody has set {_names(said)}")
        if answer == REFUSED:
            raise DistStoreError(f"rank {self.rank}: {_text(said)}")
        return answer, said

    def forget(self) -> None:
        """In a forked child, whose parent has these connections."""
        self._idle.clear()

    def _exchange(self, connection: _Connection, pieces: list[bytes], end: float | None, timeout: float) -> tuple[int, list[bytes]]:
        try:
            connection.send(pieces, _graced(end))
            try:
                answer = connection.receive(end)
            except TimeoutError:
                connection.send(encode(CANCEL), _graced(end))
                answer = connection.receive(_graced(end))  # that it was given up, or what was asked for, if that was faster
        except TimeoutError:
            raise DistStoreError(f"rank {self.rank}: timeout: {self._place()} has not answered for {timeout:g} s: rank 0 is stopped, "
                                 "or cannot be reached any more") from None
        except (OSError, Malformed) as error:
            raise self._gone(error) from None
        if answer[0] not in (DONE, REFUSED, CANCELLED, TOO_LONG):
            raise DistNetworkError(f"rank {self.rank}: {self._place()} gives an answer that is none")
        return answer

    def _connect(self, end: float | None, timeout: float) -> _Connection:
        pause = 0.01
        while True:
            try:
                return self._attempt(end)
            except Malformed as error:
                raise DistNetworkError(f"rank {self.rank}: what listens at {self.host}:{self.port} is no store of banyan's ({error})") from None
            except (OSError, _NotYet) as error:
                if self._space and isinstance(error, ConnectionRefusedError):
                    raise self._gone(error) from None
                why = str(error)
            left = math.inf if end is None else end - time.monotonic()
            rest = pause * random.uniform(0.5, 1)  # not all ranks at the same moment
            time.sleep(max(0, min(rest, left)))
            if left <= rest:
                raise DistNetworkError(f"rank {self.rank}: timeout: {self._place()} did not take this rank within {timeout:g} s: {why}. Is rank 0 "
                                       "there, and are $MASTER_ADDR and $MASTER_PORT its own, which this host can reach?")
            pause = min(pause * 1.5, _SLOWEST)

    def _attempt(self, end: float | None) -> _Connection:
        if not self._addresses:
            found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
            self._addresses = [(family, address) for family, _, _, _, address in found]
        why: OSError = OSError("it has no address")
        for family, address in self._addresses:
            connected = socket.socket(family, socket.SOCK_STREAM)
            try:
                soon = time.monotonic() + _ATTEMPT
                soon = soon if end is None else min(soon, end)
                connected.settimeout(_left(soon))
                connected.connect(address)
                if connected.getsockname() == connected.getpeername():
                    raise ConnectionRefusedError("nobody listens there")  # the kernel has joined the socket with itself
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection = _Connection(connected)
                self._greet(connection, soon)
                return connection
            except OSError as error:
                connected.close()
                why = error
            except BaseException:
                connected.close()
                raise
        raise why

    def _greet(self, connection: _Connection, end: float) -> None:
        # The first connection is told to which start all others belong.
        hello = [MAGIC, self.run.encode(), b"%d" % self.rank, self._member, self._space]
        connection.send(encode(HELLO, hello), end)
        answer, said = connection.receive(end, MAX_HELLO)
        if answer == REFUSED:
            raise DistStoreError(f"rank {self.rank} of {self.run!r}: refused by {self._place()}: {_text(said)}")
        if answer == LATER:
            raise _NotYet(_text(said))
        if answer != DONE or len(said) != 1:
            raise Malformed("another answer than a hello has")
        self._space = said[0]

    def _gone(self, why: Exception) -> Exception:
        return DistNetworkError(f"rank {self.rank}: {self._place()} is gone ({why}): has rank 0 ended?")

    def _place(self) -> str:
        return f"the store of rank 0 at {self.host}:{self.port}"


class _NotYet(Exception):
    """Rank 0 does not take this rank now, but may later."""


def _end(timeout: float) -> float | None:
    return time.monotonic() + timeout if timeout > 0 else None


def _graced(end: float | None) -> float | None:
    return None if end is None else max(end, time.monotonic() + _GRACE)


def _text(said: list[bytes]) -> str:
    """What the other end says, on one line."""
    return b" ".join(said).decode(errors="replace")[:1000].replace("\n", " ")


def _names(said: list[bytes]) -> str:
    keys = [repr(key.decode(errors="replace")) for key in said[1:]]
    more = int(said[0]) - len(keys) if said and said[0].isdigit() else 0
    return ", ".join(keys) + (f" and {more} more keys" if more > 0 else "")

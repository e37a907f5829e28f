# SPDX-License-Identifier: BSD-3-Clause
"""The store that rank 0 serves to all ranks: one thread, which no peer can make wait."""

from __future__ import annotations

import errno
import resource
import selectors
import socket
import threading

from ._store_space import Later, Refused, Space, Spaces
from ._store_wire import CANCEL, DONE, HELLO, LATER, MAGIC, MAX_FRAME, MAX_HELLO, REFUSED, TOO_LONG, Malformed, TooLong, encode, take

MAX_STRANGERS = 4096  # connections without a hello; the longest waiting makes room
_BACKLOG = 4096
_PIECES = 512         # the kernel takes 1024 at once


class _Connection:
    """`space` is None before its hello; `out`: what is still to be sent."""

    def __init__(self, connected: socket.socket, server: Server) -> None:
        self.socket, self._server = connected, server
        self.received = bytearray()
        self.out: list[bytes | memoryview] = []
        self.space: Space | None = None
        self.request: tuple[int, list[bytes], int] | None = None

    def answer(self, kind: int, fields: list[bytes]) -> None:
        try:
            self.out = [*encode(kind, fields)]
        except TooLong:
            self.out = [*encode(TOO_LONG)]
        self._server.flush(self)


class Server:
    """Serves until the process ends, from the first start of a process group on. begin() may be called from any thread, the rest is the
    server's own. Raises OSError where the port cannot be had."""

    def __init__(self, port: int, run: str, world: int) -> None:
        self._listener = _listen(port)
        self._listener.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._spaces = Spaces()
        self._connections: dict[_Connection, None] = {}
        self._strangers: dict[_Connection, None] = {}
        self._listens = False
        self.begin(run, world)
        self._listen_on(True)
        threading.Thread(target=self._serve, name="banyan-store", daemon=True).start()

    def begin(self, run: str, world: int) -> None:
        """One more start of a process group, with empty keys."""
        _make_room(world)
        self._spaces.begin(run.encode(), world)

    def flush(self, connection: _Connection) -> None:
        """Sends what the peer takes; the rest goes when it takes more."""
        try:
            while connection.out:
                _drop(connection.out, connection.socket.sendmsg(connection.out[:_PIECES]))
        except BlockingIOError:
            pass
        except OSError:
            self._close(connection)
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.out else 0)
        if self._selector.get_key(connection.socket).events != events:
            self._selector.modify(connection.socket, events, connection)

    def _serve(self) -> None:
        try:
            while True:
                for key, events in self._selector.select():
                    if key.data is None:
                        self._accept()
                    elif key.data in self._connections:  # else it was closed a moment ago
                        self._attend(key.data, events)
        finally:
            self.close()  # so that an error here is one of all ranks, and none waits

    def close(self) -> None:
        """In a forked child, too, where the selector is the parent's: nothing may be unregistered."""
        self._selector.close()
        for connection in [self._listener, *(c.socket for c in self._connections)]:
            connection.close()

    def _listen_on(self, on: bool) -> None:
        if on and not self._listens:
            self._selector.register(self._listener, selectors.EVENT_READ)
        elif self._listens and not on:
            self._selector.unregister(self._listener)
        self._listens = on

    def _accept(self) -> None:
        try:
            connected = self._listener.accept()[0]
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM) and not self._close_a_stranger():
                self._listen_on(False)  # until a connection ends
            return
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self._strangers) >= MAX_STRANGERS:
            self._close_a_stranger()
        connection = _Connection(connected, self)
        self._connections[connection] = self._strangers[connection] = None
        self._selector.register(connected, selectors.EVENT_READ, connection)

    def _close_a_stranger(self) -> bool:
        for stranger in self._strangers:
            self._close(stranger)
            return True
        return False

    def _close(self, connection: _Connection) -> None:
        if connection not in self._connections:
            return
        del self._connections[connection]
        self._strangers.pop(connection, None)
        if connection.space is not None:
            connection.space.forget(connection)
        self._selector.unregister(connection.socket)
        connection.socket.close()
        self._listen_on(True)

    def _attend(self, connection: _Connection, events: int) -> None:
        try:
            if events & selectors.EVENT_WRITE:
                self.flush(connection)
            if events & selectors.EVENT_READ and connection in self._connections:
                self._read(connection)
        except BlockingIOError:
            pass
        except (OSError, Malformed):
            self._close(connection)

    def _read(self, connection: _Connection) -> None:
        received = connection.socket.recv(1 << 16)
        if not received:
            raise ConnectionResetError("closed by the peer")
        connection.received += received
        while connection in self._connections:
            frame = take(connection.received, MAX_FRAME if connection.space else MAX_HELLO)
            if frame is None:
                return
            if connection.space is None:
                self._greet(connection, *frame)
            elif connection.out and frame[0] != CANCEL:
                raise Malformed("a request before the last answer is read")
            else:
                connection.space.hear(connection, *frame)

    def _greet(self, connection: _Connection, kind: int, fields: list[bytes]) -> None:
        if kind != HELLO or len(fields) != 5 or fields[0] != MAGIC:
            raise Malformed("no hello")
        try:
            space = self._spaces.join(*fields[1:])
        except (Refused, Later) as why:
            connection.answer(REFUSED if isinstance(why, Refused) else LATER, [str(why).encode()])
            return
        connection.space = space
        del self._strangers[connection]
        connection.answer(DONE, [space.id])


def _drop(pieces: list[bytes | memoryview], sent: int) -> None:
    """Takes the first `sent` bytes out."""
    whole = 0
    while whole < len(pieces) and sent >= len(pieces[whole]):
        sent -= len(pieces[whole])
        whole += 1
    del pieces[:whole]
    if sent:
        pieces[0] = memoryview(pieces[0])[sent:]


def _listen(port: int) -> socket.socket:
    """On all addresses, of both families where the host has them. A port on which connections of the last run linger is free (SO_REUSEADDR)."""
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise
    return socket.create_server(("", port), backlog=_BACKLOG)


def _make_room(world: int) -> None:
    """Descriptors for a few connections of each rank: a soft limit of 1024 is usual, and the hard one much higher."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * world + 1024
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))

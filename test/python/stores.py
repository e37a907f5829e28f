# SPDX-License-Identifier: BSD-3-Clause
"""A store of rank 0 in this process, and what others may send to it."""

import random
import socket
from datetime import timedelta

from banyan_ckpt._store import Store
from banyan_ckpt._store_client import Channel
from banyan_ckpt._store_server import Server

LIMIT = timedelta(seconds=60)  # then something is broken


def free_port():
    """Below the kernel's ephemeral ports, which other tests' connections take at any moment."""
    while True:
        with socket.socket() as s:
            port = random.randrange(20000, 32000)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("", port))
                return port
            except OSError:
                continue


def environment(port, rank=0, world=1, **more):
    """Of a rank, by hand."""
    return {"RANK": str(rank), "WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), **more}


class Lone:
    """A server for `world` ranks of the run "test", and stores of its ranks."""

    def __init__(self, world=4):
        self.port = free_port()
        self.server = Server(self.port, "test", world)

    def store(self, rank, run="test", timeout=LIMIT, host="127.0.0.1"):
        channel = Channel(host, self.port, run, rank)
        channel.join(timeout.total_seconds())
        return Store(channel, timeout)

    def raw(self, *sent):
        """A connection that has sent these bytes."""
        connected = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        for data in sent:
            connected.sendall(data)
        return connected

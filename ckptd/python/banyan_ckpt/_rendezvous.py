# SPDX-License-Identifier: BSD-3-Clause
"""init_process_group(init_method="banyan://"): known to torch from the moment when both it and this package are imported, in any order.
Nothing here imports torch before it is asked for a store."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._errors import INVALID, Error

if TYPE_CHECKING:
    from datetime import timedelta
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from torch.distributed import Store

    from ._store_server import Server

_MODULE = "torch.distributed.rendezvous"
_servers: dict[int, Server] = {}  # by port; of rank 0


def _in_child() -> None:
    for server in _servers.values():
        server.close()  # else a child that outlives rank 0 would keep its port
    _servers.clear()


os.register_at_fork(after_in_child=_in_child)


def register() -> None:
    """Now, where torch.distributed is imported, else at the moment when it will be."""
    if _MODULE in sys.modules:
        _register_with(importlib.import_module(_MODULE))
    else:
        sys.meta_path.insert(0, _Finder())


def _register_with(module: ModuleType) -> None:
    with contextlib.suppress(RuntimeError):  # it is registered
        module.register_rendezvous_handler("banyan", _rendezvous)


class _Finder:
    """Sees the import of one module, and finds none itself."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)
        import importlib.util
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_register(module: ModuleType) -> None:
                run(module)
                _register_with(module)
            spec.loader.exec_module = run_and_register  # type: ignore[method-assign]
        return spec


@dataclass(frozen=True)
class Place:
    """What the environment and the URL say of this process. `run`: the run, in words; a process of another one is refused."""

    rank: int
    world: int
    host: str
    port: int
    run: str
    store: str  # "banyan", "tcp", or "" for what fits


def place(url: str, environment: Mapping[str, str]) -> Place:
    """Raises Error, which says what is missing."""
    from urllib.parse import parse_qsl, urlsplit
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    unknown = sorted(set(query) - {"rank", "world_size", "store"})
    if parts.netloc or parts.path.strip("/") or unknown or query.get("store", "tcp") not in ("tcp", "banyan"):
        raise Error(f"{url!r} is no rendezvous: write banyan://, banyan://?store=banyan or banyan://?store=tcp", INVALID)
    said = {"RANK": query.get("rank"), "WORLD_SIZE": query.get("world_size"), "MASTER_ADDR": None, "MASTER_PORT": None}
    found = {name: given or environment.get(name, "") for name, given in said.items()}
    missing = [f"${name}" for name, value in found.items() if not value]
    if missing:
        raise Error(f"banyan:// does not know {', '.join(missing)}: the tasks of a training step have them (banyan-run, or srun with "
                    "--train-parallel), and so have torchrun's children; by hand set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT", INVALID)
    rank, world, port = (_number(name, found[name]) for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"))
    if not 0 <= rank < world:
        raise Error(f"rank {rank} is not one of a world of {world}: $RANK and $WORLD_SIZE, or rank= and world_size=", INVALID)
    if not 0 < port < 1 << 16:
        raise Error(f"$MASTER_PORT is {port}, and no port from 1 to 65535", INVALID)
    job, step, restart = (environment.get(f"BANYAN_{name}", "-")[:40] for name in ("JOB", "STEP", "STEP_RESTART"))
    return Place(rank, world, found["MASTER_ADDR"], port, f"job {job}, step {step}, restart {restart}, {world} ranks", query.get("store", ""))


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise Error(f"${name} is {text!r}, and no number", INVALID) from None


def _rendezvous(url: str, timeout: timedelta | None = None, **_: Any) -> Iterator[tuple[Store, int, int]]:
    from torch.distributed.constants import default_pg_timeout
    timeout = timeout or default_pg_timeout
    me = place(url, os.environ)
    store = _banyans_store(me, timeout) if (me.store or _fitting()) == "banyan" else _torchs_store(me, timeout)
    yield store, me.rank, me.world
    raise RuntimeError("banyan:// finds its peers once: call init_process_group again")


def _fitting() -> str:
    """TCPStore where threads of NCCL's would ask the store, and those in Python have to wait for the interpreter; and where an agent of
    torchrun's serves one at this address."""
    import torch
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        return "tcp"
    return "tcp" if torch.distributed.is_nccl_available() and torch.cuda.device_count() > 0 else "banyan"


def _torchs_store(me: Place, timeout: timedelta) -> Store:
    import socket

    from torch.distributed import rendezvous
    try:
        address = str(socket.getaddrinfo(me.host, me.port, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise Error(f"rank {me.rank}: $MASTER_ADDR, {me.host!r}, has no address: {error}", INVALID) from None
    host = f"[{address}]" if ":" in address else address
    found: tuple[Store, int, int] = next(rendezvous(f"tcp://{host}:{me.port}", me.rank, me.world, timeout=timeout))
    return found[0]


def _banyans_store(me: Place, timeout: timedelta) -> Store:
    from ._store import Store
    from ._store_client import Channel
    host = me.host
    if me.rank == 0:
        _serve(me)
        host = "127.0.0.1"
    # Else gloo asks for the addresses of all ranks one by one.
    os.environ.setdefault("GLOO_ENABLE_STORE_V2_API", "1")
    channel = Channel(host, me.port, me.run, me.rank)
    channel.join(timeout.total_seconds())
    return Store(channel, timeout)


def _serve(me: Place) -> None:
    from ._store_server import Server
    if me.port in _servers:
        _servers[me.port].begin(me.run, me.world)
        return
    try:
        _servers[me.port] = Server(me.port, me.run, me.world)
    except OSError as error:
        raise Error(f"rank 0 cannot serve the store at $MASTER_PORT, {me.port}: {os.strerror(error.errno or 0)}. Where another process has the "
                    "port it is of an earlier run that has not ended, or torchrun's own store (then banyan://?store=tcp)", INVALID) from None

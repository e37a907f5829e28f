# SPDX-License-Identifier: BSD-3-Clause
"""This process's place in the job, and the C library: one for the process, as in the library itself."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from . import _native
from ._errors import INVALID, Error, Outcome

JOB = "job"              # saves go to the node's daemon
OFF = "off"              # a banyan job whose node has no checkpoints, and said so
DIRECTORY = "directory"  # outside a job, into a directory
NOWHERE = "nowhere"      # outside a job, without a directory


@dataclass(frozen=True)
class World:
    """Who this process is. `mode`: "job", "off", "directory" or "nowhere" say where saves go."""

    rank: int
    world: int
    job: str
    mode: str
    directory: Path | None = None


class Session:
    """The process's state. `lock` is held by each call that saves or loads."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.world: World | None = None
        self.pid = os.getpid()
        self.library = ""            # the file that was opened
        self.has_loaded = False      # a load() has said what there is
        self.load_failed = ""        # why the last load() did not
        self.saved_step = -1         # outside a job: the newest that was saved or loaded
        self.warned: set[str] = set()

    def say_once(self, what: str) -> None:
        """On standard error of rank 0, once for the process."""
        if what not in self.warned and (self.world is None or self.world.rank == 0):
            self.warned.add(what)
            print(f"banyan: {what}", file=sys.stderr, flush=True)


SESSION = Session()


def _in_child() -> None:
    SESSION.lock = threading.RLock()  # whoever held it is not here


os.register_at_fork(after_in_child=_in_child)


def _number(name: str, given: int | None, default: int) -> int:
    if given is not None:
        return int(given)
    text = os.environ.get(name, "")
    if not text:
        return default
    try:
        return int(text)
    except ValueError:
        raise Error(f"${name} is {text!r}, and no number", INVALID) from None


def open_library() -> str:
    """Opens libbanyan_ckpt and returns its file: $BANYAN_LIB, else beside the job's socket, else where the loader looks."""
    if SESSION.library:
        return SESSION.library
    given = os.environ.get("BANYAN_LIB", "")
    socket = os.environ.get("BANYAN_CKPT_SOCKET", "")
    beside = Path(socket).parent / "libbanyan_ckpt.so.0" if socket else None
    path = given or (str(beside) if beside is not None and beside.exists() else "libbanyan_ckpt.so.0")
    _native.open_library(path)
    SESSION.library = path
    return path


def _mode(directory: Path | None) -> str:
    if os.environ.get("BANYAN_CKPT_SOCKET"):
        return JOB
    if os.environ.get("BANYAN_CKPT_OFF"):
        return OFF
    if os.environ.get("BANYAN_JOB"):
        return JOB  # it has no socket: load() says so
    return DIRECTORY if directory is not None else NOWHERE


def init(job: str | None = None, rank: int | None = None, world: int | None = None, *,
         directory: str | os.PathLike[str] | None = None) -> World:
    """Finds this process's place in the job; call it once, before load(). Arguments that are left out come from $BANYAN_JOB, $RANK and
    $WORLD_SIZE. `directory`: where saves go outside a banyan job; without it they go nowhere. In a job it is not used.

    Without a daemon it returns all the same: save() then says so, and load() raises."""
    with SESSION.lock:
        own_directory = Path(directory) if directory is not None else None
        me = World(_number("RANK", rank, 0), _number("WORLD_SIZE", world, 1), job or os.environ.get("BANYAN_JOB", ""),
                   _mode(own_directory), own_directory)
        if not 0 <= me.rank < me.world:
            raise Error(f"rank {me.rank} is not one of a world of {me.world}: $RANK and $WORLD_SIZE, or rank= and world=", INVALID)
        if SESSION.world is not None and SESSION.pid != os.getpid():
            SESSION.warned.clear()
        if SESSION.world != me or SESSION.pid != os.getpid():
            SESSION.load_failed = ""  # else what could not be loaded is there still
        SESSION.world, SESSION.pid = me, os.getpid()
        SESSION.has_loaded, SESSION.saved_step = False, -1
        if me.mode == JOB:
            open_library()
            code, error = _native.init(me.job or None, me.rank, me.world)
            if code == INVALID:
                raise Error(f"rank {me.rank}: {error}", code)
        return me


def say_where(me: World) -> None:
    """Where saves go that do not go to a daemon, once."""
    if me.mode == OFF:
        SESSION.say_once(f"this node has no checkpoints: {os.environ['BANYAN_CKPT_OFF']}")
    elif me.mode == DIRECTORY:
        SESSION.say_once(f"no banyan job here: saves go to {me.directory} and block until they are written")
    elif me.mode == NOWHERE:
        SESSION.say_once("no banyan job here, and init() was given no directory: saves go nowhere")


def world() -> World:
    """Who this process is; init() was called, or is called now."""
    return SESSION.world if SESSION.world is not None and SESSION.pid == os.getpid() else _world_of_fork()


def _world_of_fork() -> World:
    if SESSION.world is None:
        return init()
    raise Error(f"this process was forked from rank {SESSION.world.rank} of job {SESSION.world.job or '(none)'}: only the parent saves "
                "and loads; a rank of its own calls banyan_ckpt.init() first", INVALID)


def in_job() -> World | None:
    """This process's place, or None where no daemon is to be asked."""
    me = world()
    return me if me.mode == JOB else None


def outcome(step: int, said: tuple[int, str]) -> Outcome:
    return Outcome(step, said[0], said[1])


def settle() -> None:
    """Waits for the end of a save that goes on beside the program, if there is one."""
    module = sys.modules.get(f"{__package__}._overlap")
    if module is not None:
        module.settle()

# SPDX-License-Identifier: BSD-3-Clause
"""load(): what was saved goes into the live tensors, where they lie."""

from __future__ import annotations

import json
import os
from typing import Any

from . import _native
from ._bind import Binder, Saved
from ._errors import INVALID, NODAEMON, NOTFOUND, Error, Loaded, StateError
from ._fill import fill_all
from ._plan import FORMAT
from ._rng import Rng
from ._save import reserve_state
from ._session import DIRECTORY, JOB, SESSION, World, open_library, settle, world
from ._sources import Source, open_directory, open_job
from ._state import State, check_state
from ._tree import decode


def load_state(state: State | None, *, directory: str | os.PathLike[str] | None, step: int | None, strict: bool) -> Loaded | None:
    with SESSION.lock:
        settle()
        me = world()
        if state is not None:
            check_state(state, me.rank)
        if directory is not None:
            return _load_from(me, directory, step, state, strict)
        if step is not None:
            raise Error(f"rank {me.rank}: a training goes on from its newest complete step: step= goes with directory=", INVALID)
        SESSION.load_failed = "it did not end"
        try:
            loaded = _load_own(me, state, strict)
        except BaseException as error:
            SESSION.load_failed = str(error) or type(error).__name__
            raise
        SESSION.has_loaded, SESSION.load_failed = True, ""
        if loaded is not None:
            SESSION.saved_step = loaded.step
        if state is not None and me.mode == JOB:
            _make_room(state)
        return loaded


def _make_room(state: State) -> None:
    """Where there is none the save says so. A loader that is asked for its state makes an iterator, which draws a seed: random numbers stay
    as they were loaded."""
    drawn = Rng().state_dict()
    reserve_state(state)
    Rng().load_state_dict(drawn)


def _load_own(me: World, state: State | None, strict: bool) -> Loaded | None:
    """From where this process saves."""
    if me.mode == DIRECTORY:
        from ._offline import open_dcp
        assert me.directory is not None
        return _take(open_dcp(me, me.directory, None), me, state, strict)
    return _load_job(me, state, strict) if me.mode == JOB else None


def _load_job(me: World, state: State | None, strict: bool) -> Loaded | None:
    if SESSION.has_loaded:  # it goes back: only from where it has said so can it look what there is
        _native.restart(_native.Regions())
    try:
        source = open_job(me)
    except Error as error:
        if error.code == NODAEMON:
            raise Error(f"{error}. There may be a state to go on from, so training does not begin anew", NODAEMON) from None
        raise
    return _take(source, me, state, strict)


def _load_from(me: World, directory: str | os.PathLike[str], step: int | None, state: State | None, strict: bool) -> Loaded | None:
    """From a directory that was named: this process need not go on from there."""
    from ._offline import is_dcp, open_dcp
    if not os.path.exists(directory):  # a name that is mistyped, or storage that is not mounted
        raise Error(f"rank {me.rank}: {os.fspath(directory)} is not there: whether it holds a step nobody can say", NOTFOUND)
    if is_dcp(directory):
        return _take(open_dcp(me, directory, step), me, state, strict)
    open_library()
    return _take(open_directory(me, os.fspath(directory), step), me, state, strict)


def _take(source: Source | None, me: World, state: State | None, strict: bool) -> Loaded | None:
    if source is None:
        return None
    try:
        return _bring(source, me, state, strict)
    finally:
        source.close()


def _bring(source: Source, me: World, state: State | None, strict: bool) -> Loaded:
    saved = saved_tree(source)
    binder = Binder(source, me.rank, strict)
    if state is None:
        state = {key: binder.fresh(part, (key,)) for key, part in saved.items()}
    else:
        binder.bind(state, saved)
    fill_all(source, binder.wanted, me.rank)
    for action in binder.actions:
        action()
    source.accept()
    return Loaded(source.step, source.kind, source.rank, source.world, source.own, state, tuple(binder.missing), tuple(binder.unused))


def saved_tree(source: Source) -> dict[str, Any]:
    """The state as it was saved, with Saved where a tensor was."""
    try:
        found = json.loads(source.tree)
        if found["format"] != FORMAT:
            raise Error(f"step {source.step} was written in format {found['format']} of this package, which reads {FORMAT}: update banyan-ckpt")
        values = iter(found["values"])
        tree = _rebuilt(found["tree"], values)
    except Error:
        raise
    except (ValueError, LookupError, TypeError, StopIteration, RuntimeError, ImportError, AttributeError, OverflowError) as error:
        raise Error(f"the values of step {source.step} make no sense ({type(error).__name__}: {error})") from error
    if not isinstance(tree, dict):
        raise StateError("", source.rank, "was saved as no dictionary")
    return tree


def _rebuilt(node: list[Any], values: Any) -> Any:
    if node[0] == "v":
        return decode(next(values))
    if node[0] == "r":
        return Saved(node[1], node[2])
    if node[0] == "d":
        pairs = [(decode(key), _rebuilt(part, values)) for key, part in node[2]]
        return decode({"!": node[1], "v": [], "of": ""}) | dict(pairs) if node[1] != "dict" else dict(pairs)
    items = [_rebuilt(part, values) for part in node[1]]
    return items if node[0] == "l" else tuple(items)

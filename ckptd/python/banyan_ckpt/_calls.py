# SPDX-License-Identifier: BSD-3-Clause
"""The calls of the package. What needs torch is imported when it is called: without torch the others work."""

from __future__ import annotations

import os
from typing import Any

from . import _native
from ._errors import INVALID, NODAEMON, NOTFOUND, OK, Error, Loaded, Outcome, StateError
from ._session import DIRECTORY, JOB, SESSION, in_job, outcome, settle, world

LEVELS = {"sealed": 0, "memory": 1, "replicated": 2, "durable": 3}


def save(step: int, state: dict[str, Any], *, overlap: bool = False) -> Outcome:
    """Saves the state as `step`: one copy of it to the node's daemon, without a word with other ranks. Steps count up.

    state: what load() takes: modules, optimizers and other objects with state_dict() at the top, tensors, and containers of them and of
        values. It may change from save to save.
    overlap: the copy goes on while the next forward and backward run, and the optimizers in `state` wait for its end before they step.

    Returns what became of it, false where it was not saved: no daemon, no room, or a step that the ranks left behind. Training goes on.
    Raises StateError, with key and rank, for a state that cannot be saved; Error where load() was not called and there is a step."""
    if overlap:
        from ._overlap import save_beside
        return save_beside(step, state)
    from ._save import save_state
    return save_state(step, state)


def load(state: dict[str, Any] | None = None, *, directory: str | os.PathLike[str] | None = None, step: int | None = None,
         strict: bool = True) -> Loaded | None:
    """Fills the state with the newest complete step of the job, in any number of ranks; None where there is none, so training begins.

    Live tensors are filled where they lie, objects get load_state_dict(), other values are replaced in `state`. An empty dictionary or
    None in it takes whatever was saved there. Without a state everything is read into new memory: see Loaded.state.

    directory: reads a checkpoint directory, in a job or outside of one; `step` of it, by default the newest. It has to be there.
        A milestone's file is one, too.
    strict: a key that the step has not, or that this state has not, raises. At the top of the state only the former does.

    Raises Error where the state to go on from cannot be had: only None means that there is none. Nothing is changed by a StateError."""
    from ._load import load_state
    return load_state(state, directory=directory, step=step, strict=strict)


def reserve(state: dict[str, Any]) -> Outcome:
    """Makes the memory for saves of this state now: the first save then costs what later ones do. load() has done so for its state."""
    from ._save import reserve_state
    return reserve_state(state)


def latest() -> int | None:
    """The step that load() would bring; None where there is none. Raises Error where nobody can say. Other ranks are waited for."""
    me = in_job()
    if me is None:
        if world().mode == DIRECTORY:
            from ._offline import latest_step
            return latest_step(world())
        return None
    code, error, step = _native.query()
    if code == NOTFOUND:
        return None
    if code != OK:
        raise Error(f"rank {me.rank}: the newest step cannot be had: {error}", code)
    return step


def wait(step: int, level: str = "memory", timeout: float | None = None) -> Outcome:
    """Waits until `step` or a newer one is as safe as `level` says: "sealed" (in the daemon's memory), "memory" (of all ranks), "replicated"
    (and on a second node), "durable" (in storage). `timeout` in seconds; None waits without end."""
    if level not in LEVELS:
        raise ValueError(f"there is no level {level!r}: {', '.join(LEVELS)}")
    me = in_job()
    if me is None:
        done = world().mode == DIRECTORY and SESSION.saved_step >= step
        return Outcome(step) if done else Outcome(step, NODAEMON, "no banyan job here, and no such step in a directory")
    settle()
    said = _native.wait(step, LEVELS[level], -1 if timeout is None else int(min(max(timeout, 0) * 1000, 2**31 - 1)))
    if said[0] == INVALID:
        raise StateError("", me.rank, f"cannot be waited for: {said[1]}")
    return outcome(step, said)


def milestone(step: int, name: str) -> Outcome:
    """Keeps a saved step in storage under a name, such as "best", however many newer ones come; it is brought there now, behind the
    training's back. A step that had the name loses it. One rank calls it, after its save; if others do, with the same step.

    Saves go on: where a newer step is complete before storage has taken this one, the name is that one's (wait(step, "durable") before the
    next save makes it exact). `banyan-ckpt show DIR` lists the names, `banyan-ckpt drop DIR/milestones/NAME` deletes one with its step, and
    load(directory=DIR/milestones/NAME) reads it. Raises StateError for a wrong name, and where the job writes nothing to storage."""
    me = in_job()
    if me is None:
        if world().mode != DIRECTORY:
            return Outcome(step, NODAEMON, "no banyan job here, and no directory")
        from ._offline import name_step
        return name_step(world(), step, name)
    settle()
    said = _native.milestone(step, name)
    if said[0] == INVALID:
        raise StateError("", me.rank, f"step {step} cannot be a milestone: {said[1]}")
    return outcome(step, said)


def seal_requested() -> bool:
    """Whether the daemon asks for a save now, since the node or the job may be lost soon. It costs next to nothing."""
    return SESSION.world is not None and SESSION.world.mode == JOB and _native.seal_requested()


def heartbeat(step: int, phase: int = 0) -> None:
    """Says that this rank is at work on `step`, in a phase of it: a number of yours from 0 to 2**32 - 1, such as 0 for the data, 1 for
    forward and backward, 2 for an evaluation. It costs nanoseconds: call it where a phase begins. By it a rank that hangs is named. A
    program that never calls it says as much by its saves."""
    if SESSION.world is not None and SESSION.world.mode == JOB:
        _native.heartbeat(step, phase)


def finish(drain: bool = True) -> Outcome:
    """Ends the use of the package; call it once training has ended. `drain`: waits, at most a minute, until what was saved is complete in
    memory and, where the job writes to storage, there. Without this call the process has died as far as the daemon knows."""
    me = in_job()
    settle()
    if me is None:
        return Outcome(max(SESSION.saved_step, 0))
    said = _native.finalize(drain)
    SESSION.world = None
    return outcome(max(SESSION.saved_step, 0), said)

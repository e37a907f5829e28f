# SPDX-License-Identifier: BSD-3-Clause
"""save() and reserve()."""

from __future__ import annotations

import torch

from ._errors import INVALID, NODAEMON, OK, STALE, Error, Outcome, StateError
from ._plan import Plan, Plans, at_path
from ._session import DIRECTORY, JOB, OFF, SESSION, World, outcome, say_where, settle, world
from ._state import Expanded, State, expand

PLANS = Plans()
MAX_STEP = 999_999_999_999


def check_step(step: object, rank: int) -> int:
    if not isinstance(step, int) or isinstance(step, bool) or not 0 <= step <= MAX_STEP:
        raise StateError("", rank, f"cannot be saved as step {step!r}: a step is a whole number from 0 to {MAX_STEP}")
    return step


def gpu_in_use() -> bool:
    return torch.cuda.is_available() and bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def answer_of(step: int, said: tuple[int, str], rank: int) -> Outcome:
    """What the library said of a save. Wrong arguments raise, and so does a save of who has forgotten to load."""
    code, error = said
    if code == OK:
        SESSION.saved_step = step
    if code == INVALID:
        raise StateError("", rank, f"cannot be saved as step {step}: {error}")
    if code == STALE and not SESSION.has_loaded:
        raise Error(f"rank {rank}: save() before load(): {error}. Call load() first: it fills the state, or says that there is none", code)
    return outcome(step, said)


def may_save(me: World, step: int) -> None:
    """Raises where no save can be right, whatever the state holds."""
    check_step(step, me.rank)
    if SESSION.load_failed:
        raise Error(f"rank {me.rank}: nothing is saved, since load() failed ({SESSION.load_failed}): a step from here could take the place "
                    "of the one that was not loaded", STALE)


def prepare(step: int, state: State) -> tuple[World, Expanded, Plan]:
    """What both ways to save have in common: who saves what, and how it is laid out. The lock is held."""
    me = world()
    may_save(me, step)
    what = expand(state, me.rank)
    plan = PLANS.of(what, me.rank, me.world)
    return me, what, plan


def save_prepared(me: World, step: int, what: Expanded, plan: Plan) -> Outcome:
    try:
        if me.mode == JOB:
            return answer_of(step, plan.native.save(step), me.rank)
        say_where(me)
        if me.mode == DIRECTORY:
            from ._offline import save_to_directory
            return save_to_directory(me, step, plan, what)
        return Outcome(step, NODAEMON, "this node has no checkpoints" if me.mode == OFF else "no banyan job, and no directory")
    finally:
        plan.native.clear()


def save_state(step: int, state: State) -> Outcome:
    with SESSION.lock:
        settle()
        me, what, plan = prepare(step, state)
        return save_prepared(me, step, what, plan)


def _moments_to_come(plan: Plan, what: Expanded, state: State) -> list[int]:
    """The regions of the parameters of which an optimizer that has not stepped yet will have as much again, or twice. It is a guess by
    the options' usual names, of memory alone."""
    counts: dict[int, int] = {}
    for part in state.values():
        if isinstance(part, torch.optim.Optimizer) and not part.state:
            for group in part.param_groups:
                moments = len(group["betas"]) + bool(group.get("amsgrad")) if "betas" in group else int(bool(group.get("momentum")))
                counts |= {id(p): moments for p in group["params"] if p.requires_grad}
    if not any(counts.values()):
        return []
    return [region for region, path in enumerate(plan.paths) for _ in range(counts.get(id(at_path(what.tree, path)), 0))]


def reserve_state(state: State) -> Outcome:
    with SESSION.lock:
        settle()
        me = world()
        what = expand(state, me.rank)
        plan = PLANS.of(what, me.rank, me.world)
        try:
            said = plan.native.reserve(_moments_to_come(plan, what, state)) if me.mode == JOB else (OK, "")
        finally:
            plan.native.clear()
        if said[0] == INVALID:
            raise StateError("", me.rank, f"cannot be saved: {said[1]}")
        return outcome(0, said)


# SPDX-License-Identifier: BSD-3-Clause
"""save(overlap=True): the copy goes on while the next forward and backward run.

What only an optimizer's step changes (its parameters and its own state) is copied beside them, and the step waits for the end of that.
All else (buffers, random numbers, loaders, values) is copied before save() returns: so what is sealed is one step exactly."""

from __future__ import annotations

import atexit
import os
import weakref
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from . import _native
from ._errors import INVALID, OK, STALE, Outcome, StateError
from ._plan import Plan, at_path
from ._save import answer_of, gpu_in_use, prepare, save_prepared
from ._session import JOB, SESSION
from ._state import Expanded, State


@dataclass
class _Beside:
    """The save that goes on."""

    step: int
    native: _native.Pending
    plan: Plan
    memory: list[torch.UntypedStorage]  # what is copied: `parameter.data = ...` would free it
    pid: int = field(default_factory=os.getpid)


@dataclass
class _Early:
    """Which regions are copied at once, for one plan and one set of parameters; and where to."""

    late: set[int]
    regions: list[int]
    copies: dict[int, torch.Tensor] = field(default_factory=dict)


_beside: _Beside | None = None
_last: tuple[int, tuple[int, str]] | None = None  # what became of the last one
_early: weakref.WeakKeyDictionary[Plan, _Early] = weakref.WeakKeyDictionary()
_in_backward: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()


def settle() -> Outcome | None:
    """Waits for the end of the save that goes on; what became of it, or None where there is none."""
    global _beside, _last
    with SESSION.lock:
        if _beside is None or _beside.pid != os.getpid():
            return None
        one, _beside = _beside, None
        said = one.native.end()
        one.plan.native.clear()
        _last = (one.step, said)
        if said[0] == OK:
            SESSION.saved_step = one.step
        return Outcome(one.step, *said)


def _before_step(optimizer: torch.optim.Optimizer, *_: Any) -> None:
    if torch._C._current_graph_task_id() != -1:
        _in_backward.add(optimizer)
    settle()


def save_beside(step: int, state: State) -> Outcome:
    """Begins the save. Returns at once: what became of it the next call says, or wait(step, "sealed")."""
    global _beside, _last
    with SESSION.lock:
        settle()
        last, _last = _last, None
        me, what, plan = prepare(step, state)
        if last is not None and last[1][0] in (INVALID, STALE):
            answer_of(last[0], last[1], me.rank)  # raises for wrong arguments
        if me.mode != JOB:
            return save_prepared(me, step, what, plan)
        optimizers = {key: part for key, part in state.items() if isinstance(part, torch.optim.Optimizer)}
        if not optimizers:
            raise StateError("", me.rank, "has no optimizer: with overlap=True its step waits for the copy, so the optimizer itself has to be "
                                          "in the state, not its state_dict()")
        for key, optimizer in optimizers.items():
            _check_step(key, optimizer, me.rank)
        _copy_early(plan, what, optimizers)
        memory = [tensor.untyped_storage() for tensor in plan.native.tensors() if tensor is not None]
        native = plan.native.begin(step, _stream())
        if native.begun()[0] != OK:
            plan.native.clear()
            return answer_of(step, native.begun(), me.rank)
        _beside = _Beside(step, native, plan, memory)
        return Outcome(step, OK, "under way" if last is None or last[1][0] == OK else f"under way; step {last[0]} was not saved: {last[1][1]}")


def _stream() -> int:
    """The GPU's stream whose work the copy has to wait for; 0 without a GPU."""
    return int(torch.cuda.current_stream().cuda_stream) if gpu_in_use() else 0


def _check_step(key: str, optimizer: torch.optim.Optimizer, rank: int) -> None:
    """Raises StateError for an optimizer whose step nobody could hold back."""
    kind = type(optimizer).__name__
    if optimizer in _in_backward or any(hasattr(p, "_in_backward_optimizers") for g in optimizer.param_groups for p in g["params"]):
        raise StateError(key, rank, f"({kind}) steps inside backward, so nothing can be copied beside it: save without overlap")
    if not getattr(type(optimizer).step, "hooked", False):
        raise StateError(key, rank, f"({kind}) has a step() that calls no pre-hook, so it would not wait for the copy: save without overlap")


def _copy_early(plan: Plan, what: Expanded, optimizers: dict[str, torch.optim.Optimizer]) -> None:
    # One without a gradient no step changes, but a forward may: a moving average of weights.
    late = {id(p) for optimizer in optimizers.values() for group in optimizer.param_groups for p in group["params"] if p.requires_grad}
    early = _early.get(plan)
    if early is None or early.late != late:
        early = _early[plan] = _Early(late, _early_regions(plan, what, optimizers, late))
    if not early.regions:
        return
    tensors = plan.native.tensors()
    with torch.no_grad():
        for region in early.regions:
            tensor = tensors[region]
            copy = early.copies.get(region)
            if copy is None or copy.shape != tensor.shape or copy.dtype != tensor.dtype or copy.device != tensor.device:
                copy = early.copies[region] = torch.empty_like(tensor, memory_format=torch.contiguous_format, requires_grad=False)
            copy.copy_(tensor)
            plan.native.place(region, copy.data_ptr())


def _early_regions(plan: Plan, what: Expanded, optimizers: dict[str, torch.optim.Optimizer], late: set[int]) -> list[int]:
    out = []
    for region, path in enumerate(plan.paths):
        if path[0] in optimizers:
            is_late = len(path) > 1 and path[1] == "state"
        else:
            is_late = id(at_path(what.tree, path)) in late
        if not is_late:
            out.append(region)
    return out


def _in_child() -> None:
    global _beside
    _beside = None


register_optimizer_step_pre_hook(_before_step)  # of every optimizer: one that is not in the state may change what is
atexit.register(settle)
os.register_at_fork(after_in_child=_in_child)

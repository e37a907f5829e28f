# SPDX-License-Identifier: BSD-3-Clause
"""A StorageWriter that is its own AsyncStager: the copy into the daemon's memory is both."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.checkpoint._nested_dict import flatten_state_dict
from torch.distributed.checkpoint.default_planner import create_default_local_save_plan
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex, StorageMeta
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner, WriteItem, WriteItemType
from torch.distributed.checkpoint.planner_helpers import _create_write_items
from torch.distributed.checkpoint.staging import AsyncStager
from torch.distributed.checkpoint.storage import StorageWriter, WriteResult
from torch.distributed.checkpoint.utils import find_state_dict_object
from torch.futures import Future

from ._dcp_layout import Layout, Part, value_of
from ._dcp_values import taken_from
from ._errors import INVALID, NODAEMON, Error, Outcome
from ._save import answer_of, may_save
from ._session import JOB, SESSION, settle, world
from ._tensors import is_dtensor

KEPT = 4  # layouts of the last saves
PLAIN = (torch.Tensor, torch.nn.Parameter)


@dataclass
class _Known:
    """A list of parts that was saved before: `marks` tell whether a new one is the same."""

    marks: list[Any]
    items: list[WriteItem]
    keys: list[str]
    layout: Layout


_known: list[_Known] = []


def _recall(marks: list[Any]) -> _Known | None:
    marks = [world(), *marks]
    for i, known in enumerate(_known):
        if known.marks == marks:
            _known.insert(0, _known.pop(i))
            return known
    return None


def _learn(marks: list[Any], items: list[WriteItem], tensors: Sequence[torch.Tensor], keys: list[str]) -> _Known:
    me = world()
    parts = [Part(item.index.fqn, tensor, tuple(item.tensor_data.size), tuple(item.tensor_data.chunk.offsets))
             for item, tensor in zip(items, tensors, strict=True) if item.tensor_data is not None]
    known = _Known([me, *marks], items, keys, Layout(parts, keys, me.rank, me.world))
    _known[:] = [known, *_known[:KEPT - 1]]
    return known


def _mark(fqn: str, value: Any) -> Any:
    """What a region's layout depends on."""
    if is_dtensor(value):
        return fqn, value.dtype, value._local_tensor.shape, value._spec
    if isinstance(value, torch.Tensor):
        return (fqn, value.dtype, value.shape) if type(value) in PLAIN else [_item_mark(item) for item in _create_write_items(fqn, value)]
    return fqn


def _item_mark(item: WriteItem) -> Any:
    assert item.tensor_data is not None
    return item.index, item.tensor_data.size, item.tensor_data.chunk.sizes, item.tensor_data.properties.dtype


def step_of(checkpoint_id: str | os.PathLike[str] | int | None) -> int | None:
    """The number at its end."""
    found = re.search(r"(\d+)/*$", os.fspath(checkpoint_id) if not isinstance(checkpoint_id, int) else str(checkpoint_id)) \
        if checkpoint_id is not None else None
    return int(found[1]) if found else None


class Writer(StorageWriter, AsyncStager):
    """For dcp.save and dcp.async_save: one step of the whole state, of all ranks of the job.

        dcp.save(state, storage_writer=Writer(step))
        dcp.async_save(state, storage_writer=Writer(step))

    step: counts up; left out it is the number at the end of dcp.save's checkpoint_id. async_save copies before it names one.

    async_save returns once the copy is in the daemon's memory: nothing is left to do behind it, so its future ends soon, and holds no
    metadata. `outcome` says what became of the last save: false, with a reason, where the daemon did not take it. Training goes on then.
    A state that cannot be saved raises StateError, which DCP wraps in its CheckpointException."""

    _synchronize_after_execute = False

    def __init__(self, step: int | None = None) -> None:
        self.step = step
        self.outcome: Outcome | None = None
        self.checkpoint_id: str | os.PathLike[str] | None = None
        self._staged: int | None = None
        self._values: list[WriteItem] = []

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        self.checkpoint_id = checkpoint_id

    def storage_meta(self) -> StorageMeta | None:
        return StorageMeta(checkpoint_id=self.checkpoint_id)

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Nothing: the daemon knows the job."""

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        # Each rank saves its own values: DCP would keep one rank's.
        self._values = [item for item in plan.items if item.type == WriteItemType.BYTE_IO]
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        return plans

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        if self._staged is None or plan.items or self._values:  # else stage() has left nothing
            self._write(plan, planner)
        self._staged = None
        done: Future[list[WriteResult]] = Future()
        done.set_result([WriteResult(item.index, item.tensor_storage_size() or 0, None) for item in plan.items])
        return done

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Nothing: the daemons agree on the step, and readers find what it holds in the ranks' headers."""

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        return step_of(checkpoint_id) is not None

    def stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        """Copies the state. What is returned is empty: DCP has nothing left to plan or to write."""
        if self.step is None:
            raise Error("dcp.async_save does not tell a stager its checkpoint_id: give the step, as in storage_writer=Writer(step)", INVALID)
        flat, _ = flatten_state_dict(state_dict)
        marks = [_mark(fqn, value) for fqn, value in flat.items()]
        known = _recall(marks)
        if known is None:
            items = create_default_local_save_plan(flat, True).items
            tensors = [item for item in items if item.type != WriteItemType.BYTE_IO]
            known = _learn(marks, tensors, [find_state_dict_object(flat, item.index) for item in tensors],
                           [item.index.fqn for item in items if item.type == WriteItemType.BYTE_IO])
        rank = world().rank
        self._save(self.step, known.layout, [_found(flat, item.index) for item in known.items],
                   [value_of(key, flat[key], rank) for key in known.keys])
        self._staged = self.step
        return {}

    def synchronize_staging(self) -> None:
        """stage() has done all."""

    def close(self) -> None:
        """Nothing is open."""

    def _write(self, plan: SavePlan, planner: SavePlanner) -> None:
        step = self.step if self.step is not None else step_of(self.checkpoint_id)
        if step is None:
            raise Error(f"no step ends checkpoint_id {self.checkpoint_id!r}: give one, as in storage_writer=Writer(step)", INVALID)
        items = [item for item in plan.items if item.type != WriteItemType.BYTE_IO]
        tensors = [planner.resolve_data(item) for item in items]
        keys = [item.index.fqn for item in self._values]
        marks = [_item_mark(item) for item in items] + keys
        known = _recall(marks) or _learn(marks, items, tensors, keys)  # type: ignore[arg-type]
        values = [taken_from(planner, item, world().rank) for item in self._values]
        self._save(step, known.layout, tensors, values)  # type: ignore[arg-type]

    def _save(self, step: int, layout: Layout, tensors: Sequence[torch.Tensor], values: Sequence[Any]) -> None:
        with SESSION.lock:
            settle()
            me = world()
            may_save(me, step)
            if me.mode != JOB:
                SESSION.say_once("banyan_ckpt.dcp.Writer saves in a banyan job alone: elsewhere use dcp.FileSystemWriter")
                self.outcome = Outcome(step, NODAEMON, "no banyan job here, or no checkpoints on this node")
                return
            self.outcome = answer_of(step, layout.save(step, tensors, values), me.rank)


def _found(flat: dict[str, Any], index: MetadataIndex) -> Any:
    value = flat[index.fqn]
    if is_dtensor(value):
        return value._local_tensor
    return value if type(value) in PLAIN else find_state_dict_object(flat, index)

# SPDX-License-Identifier: BSD-3-Clause
"""torch.distributed.checkpoint with banyan's memory as its storage: one argument more for dcp.save, dcp.async_save and dcp.load.

    from banyan_ckpt.dcp import Reader, Writer

    banyan.init()
    step = 0
    if banyan.latest() is not None:              # raises where nobody can say
        reader = Reader()
        dcp.load(state, storage_reader=reader)   # any layout, any number of ranks
        step = reader.step + 1
    ...
    dcp.async_save(state, storage_writer=Writer(step))

Nothing is pickled, and nothing unpickled, whichever planner is used: values that are no tensors are JSON."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan
from torch.distributed.checkpoint.planner import LoadPlanner as AnyLoadPlanner
from torch.distributed.checkpoint.storage import StorageReader
from torch.futures import Future

from . import _native
from ._dcp_import import import_from
from ._dcp_read import Step, Wanted
from ._dcp_values import LoadPlanner, SavePlanner, give_to
from ._dcp_write import Writer, step_of
from ._errors import INVALID, LAYOUT, NOTFOUND, REFUSED, Error
from ._session import JOB, SESSION, World, open_library, settle, world
from ._sources import check

__all__ = ["LoadPlanner", "Reader", "SavePlanner", "Writer", "import_from"]


class Reader(StorageReader):
    """For dcp.load: the step that the job goes on from, out of memory or storage; or one of a checkpoint directory.

        dcp.load(state, storage_reader=Reader())             # in a job
        dcp.load(state, storage_reader=Reader(directory))    # in a job or outside of one

    directory: as in --train-ckpt=dir=; `directory_step` of it, by default the newest.

    The values are those that this rank has saved, where the number of ranks is the same. dcp.load raises CheckpointException, which has
    the reason of each rank, also where there is no step: banyan_ckpt.latest() tells that apart. `step` says what was loaded."""

    def __init__(self, directory: str | os.PathLike[str] | None = None, directory_step: int | None = None) -> None:
        self.step: int | None = None
        self.checkpoint_id: str | os.PathLike[str] | None = None
        self._directory, self._wanted_step = directory, directory_step
        self._found: Step | None = None

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        self.checkpoint_id = checkpoint_id
        self._close()

    def read_metadata(self, *args: Any, **named: Any) -> Metadata:
        """What the step holds; the ranks that load are not asked for anything."""
        with SESSION.lock:
            settle()
            me = world()
            self._close()
            if self._directory is not None or me.mode != JOB:
                self._found = Step(self._open_directory(me), me.rank)
            else:
                SESSION.load_failed = "it did not end"
                try:
                    self._found = Step(_open_job(me), me.rank)
                except Error as error:
                    SESSION.load_failed = "" if error.code == NOTFOUND else str(error)
                    raise
            self._check_step(me, self._found.step)
            return self._found.metadata()

    def peek(self) -> Metadata:
        """What dcp.load would find. Nothing is loaded."""
        with SESSION.lock:
            before = SESSION.load_failed
            try:
                return self.read_metadata()
            finally:
                SESSION.load_failed = before
                self._close()

    def _open_directory(self, me: World) -> _native.Reader:
        if self._directory is None:
            raise Error(f"rank {me.rank}: no banyan job here: name the directory that it wrote to, as in Reader(directory)", INVALID)
        open_library()
        reader = _native.Reader()
        step = self._wanted_step if self._wanted_step is not None else step_of(self.checkpoint_id)
        check(reader.open(os.fspath(self._directory), step), me.rank, f"{self._directory} cannot be read")
        return reader

    def _check_step(self, me: World, step: int) -> None:
        wanted = step_of(self.checkpoint_id)
        if wanted not in (None, step):
            raise Error(f"rank {me.rank}: the job goes on from step {step}, and checkpoint_id asks for {wanted}: leave it out, or read a "
                        "directory", INVALID)

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **named: Any) -> None:
        """Nothing: the step is open."""

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: AnyLoadPlanner) -> Future[None]:
        with SESSION.lock, torch.no_grad():
            found, me = self._found, world()
            if found is None:
                raise Error("read_data() before read_metadata(): dcp.load calls both", INVALID)
            tensors = [(item, planner.resolve_tensor(item)) for item in plan.items if item.type != LoadItemType.BYTE_IO]
            wanted = []
            for item, into in tensors:
                place = found.places.get(item.storage_index)
                if place is None:
                    raise Error(f"rank {me.rank}: {item.storage_index.fqn} is no tensor of step {found.step}", LAYOUT)
                offset = tuple(a + b for a, b in zip(place.offset, item.storage_offsets, strict=True))
                wanted.append(Wanted(place, offset, into.detach()))
            found.read(wanted)
            for item, into in tensors:
                planner.commit_tensor(item, into)
            for item in plan.items:
                if item.type == LoadItemType.BYTE_IO:
                    give_to(planner, item, found.values[item.storage_index.fqn])
            self.step = found.step
            self._accept(me, found.step)
            self._close()
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def _accept(self, me: World, step: int) -> None:
        """This process goes on from here."""
        if self._directory is not None or me.mode != JOB:
            return
        code, error, now, _ = _native.restart(_native.Regions())
        check((code, error), me.rank, f"step {step} cannot be gone on from")
        if now != step:
            raise Error(f"rank {me.rank}: the ranks went on from step {step} to step {now} meanwhile: load again", REFUSED)
        SESSION.has_loaded, SESSION.load_failed, SESSION.saved_step = True, "", step

    def _close(self) -> None:
        if self._found is not None:
            self._found.reader.close()
            self._found = None

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        return True


def _open_job(me: World) -> _native.Reader:
    if SESSION.has_loaded or SESSION.saved_step >= 0:  # it goes back: only from where it has said so can it look what there is
        _native.restart(_native.Regions())
    reader = _native.Reader()
    check(reader.open_job(), me.rank, "the state to go on from cannot be had")
    return reader

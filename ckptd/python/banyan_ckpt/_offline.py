# SPDX-License-Identifier: BSD-3-Clause
"""Outside a banyan job: the same state in a directory, as torch.distributed.checkpoint writes it, one folder a step.

What is each rank's own (values, random numbers, data loaders) has a name that begins with the rank. The newest two steps are kept, and milestones."""

from __future__ import annotations

import os
import re
import shutil
import warnings
from pathlib import Path
from typing import Any

import torch

from ._dcp_source import DcpSource
from ._errors import INVALID, OK, Error, Outcome, StateError
from ._plan import TREE, Plan, at_path
from ._session import SESSION, World
from ._state import Expanded
from ._tensors import is_dtensor

KEEP = 2
STEP = re.compile(r"step-(\d{12})")
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
METADATA = ".metadata"  # written last


def folder_of(directory: Path, step: int) -> Path:
    return directory / f"step-{step:012d}"


def steps_in(directory: Path) -> list[int]:
    """The steps that were written to their end, the newest first."""
    found = [STEP.fullmatch(entry.name) for entry in directory.iterdir()] if directory.is_dir() else []
    return sorted((int(m[1]) for m in found if m and (directory / m[0] / METADATA).is_file()), reverse=True)


def latest_step(me: World) -> int | None:
    steps = steps_in(me.directory) if me.directory is not None else []
    return steps[0] if steps else None


def is_dcp(place: str | os.PathLike[str]) -> bool:
    return bool(steps_in(Path(place))) or (Path(place) / METADATA).is_file()


def open_dcp(me: World, place: str | os.PathLike[str], step: int | None) -> DcpSource | None:
    """The step of the directory, by default the newest; None where there is none."""
    directory = Path(place)
    if (directory / METADATA).is_file():
        raise Error(f"rank {me.rank}: {directory} is one step alone: name the directory that it lies in, and the step", INVALID)
    steps = steps_in(directory)
    if step is None and not steps:
        return None
    if step is not None and step not in steps:
        raise Error(f"rank {me.rank}: {directory} has no step {step}; it has {', '.join(map(str, steps[:5])) or 'none'}", INVALID)
    chosen = steps[0] if step is None else step
    return DcpSource(me, folder_of(directory, chosen), chosen)


def _milestones(directory: Path) -> dict[str, int]:
    """Steps that stay, by name: a file each, as the daemon writes them."""
    folder = directory / "milestones"
    files = [file for file in folder.iterdir() if NAME.fullmatch(file.name)] if folder.is_dir() else []
    return {file.name: int(file.read_text(encoding="ascii")) for file in files}


def name_step(me: World, step: int, name: str) -> Outcome:
    assert me.directory is not None
    if not NAME.fullmatch(name):
        raise StateError("", me.rank, f"step {step} cannot be a milestone: {name!r} is no name: letters a to z, digits, _ and -, 32 at most")
    if step not in steps_in(me.directory):
        raise StateError("", me.rank, f"step {step} cannot be a milestone: {me.directory} has no such step")
    try:
        (me.directory / "milestones").mkdir(exist_ok=True)
        fresh = me.directory / "milestones" / f".{name}.{me.rank}"
        fresh.write_text(f"{step}\n", encoding="ascii")
        fresh.replace(me.directory / "milestones" / name)
    except OSError as error:
        return Outcome(step, -8, f"{me.directory} does not take it: {error}")
    return Outcome(step, OK)


def _check_group(me: World) -> None:
    if me.world > 1 and not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        raise Error(f"rank {me.rank} of {me.world}: outside a banyan job the ranks write to the directory together: "
                    "torch.distributed.init_process_group() comes first", INVALID)


def _tensors(plan: Plan, what: Expanded, rank: int) -> dict[str, torch.Tensor]:
    """By the names of the plan; a tensor without a copy, DTensors as they are."""
    out: dict[str, torch.Tensor] = {}
    for name, path in zip(plan.keys, plan.paths, strict=True):
        tensor = at_path(what.tree, path)
        own = path[0] in what.own and not is_dtensor(tensor)
        out[f"rank{rank}/{name}" if own else name] = tensor.detach()
    text = bytearray(plan.text)
    out[f"rank{rank}/{TREE}"] = torch.frombuffer(text, dtype=torch.uint8)
    return out


def save_to_directory(me: World, step: int, plan: Plan, what: Expanded) -> Outcome:
    """Blocks until the step is written. Trouble with the directory is a returned outcome."""
    from torch.distributed.checkpoint import DefaultSavePlanner, FileSystemWriter, save
    assert me.directory is not None
    if step <= SESSION.saved_step:
        raise StateError("", me.rank, f"cannot be saved as step {step}: step {SESSION.saved_step} is saved already")
    _check_group(me)
    if not SESSION.has_loaded and (newest := latest_step(me)) is not None:
        raise Error(f"rank {me.rank}: save() before load(): {me.directory} has step {newest}. Call load() first, or name another directory")
    try:
        me.directory.mkdir(parents=True, exist_ok=True)
        writer = FileSystemWriter(folder_of(me.directory, step), single_file_per_rank=True)
        with warnings.catch_warnings():  # that there is no process group is known, and fine
            warnings.simplefilter("ignore")
            save(_tensors(plan, what, me.rank), storage_writer=writer, planner=DefaultSavePlanner(flatten_state_dict=False))
    except Exception as error:  # noqa: BLE001 DCP wraps what went wrong in exceptions of its own
        return Outcome(step, -8, f"{me.directory} does not take it: {type(error).__name__}: {error}")
    SESSION.saved_step = step
    SESSION.has_loaded = True
    if me.rank == 0:
        named = set(_milestones(me.directory).values())
        for old in [step for step in steps_in(me.directory)[KEEP:] if step not in named]:
            shutil.rmtree(folder_of(me.directory, old), ignore_errors=True)
    return Outcome(step, OK)

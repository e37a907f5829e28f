# SPDX-License-Identifier: BSD-3-Clause
"""A step of a checkpoint directory as a torch.distributed.checkpoint folder, as safetensors, or as a Hugging Face model.

Only what is committed is read, so a training may go on meanwhile. One tensor after the other is put together."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint.metadata import TensorStorageMetadata

from . import _native
from ._dcp_read import Step, Wanted
from ._errors import INVALID, NOTFOUND, Error
from ._session import open_library
from ._sources import check
from ._tree import decode

SHARD = 5_000_000_000  # bytes of a file of a Hugging Face model


class Committed:
    """A step of a directory, by whole tensors. `part`: only what lies below this name, which is left out of the names."""

    def __init__(self, directory: str | os.PathLike[str], step: int | None, part: str) -> None:
        open_library()
        reader = _native.Reader()
        check(reader.open(os.fspath(directory), step), 0, f"{directory} cannot be read")
        self._step, self._head = Step(reader, 0), f"{part}." if part else ""
        self.step = self._step.step
        found = {name: of for name, of in self._step.metadata().state_dict_metadata.items() if name.startswith(self._head)}
        self.tensors = {name.removeprefix(self._head): of for name, of in found.items() if isinstance(of, TensorStorageMetadata)}
        self.values = {name.removeprefix(self._head): decode(self._step.values[name]) for name in found if name in self._step.values}
        if not self.tensors:
            tops = sorted({name.partition(".")[0] for name in self._step.metadata().state_dict_metadata})
            raise Error(f"step {self.step} of {directory} has no tensor below {part!r}; it has {', '.join(tops[:8])}: --part names one", NOTFOUND)

    def whole(self, name: str) -> torch.Tensor:
        of = self.tensors[name]
        out = torch.empty(of.size, dtype=of.properties.dtype)
        wanted = []
        for index, place in self._step.places.items():
            if index.fqn == self._head + name:
                at = out
                for dim, (begin, extent) in enumerate(zip(place.offset, place.shape, strict=True)):
                    at = at.narrow(dim, begin, extent)
                wanted.append(Wanted(place, place.offset, at))
        if sum(one.into.numel() for one in wanted) < out.numel():
            raise Error(f"step {self.step} has not all of {name}", NOTFOUND)
        self._step.read(wanted)
        return out

    def bytes(self, name: str) -> int:
        return int(self.tensors[name].size.numel() * self.tensors[name].properties.dtype.itemsize)


def export(directory: str | os.PathLike[str], target: str | os.PathLike[str], to: str, *, step: int | None = None, part: str = "",
           config: str | os.PathLike[str] | None = None) -> int:
    """to: "dcp", "safetensors" or "hf"; the target is a folder, which has its name only once it is whole. config: a folder whose
    configuration and tokenizer go with a Hugging Face model. Returns the step."""
    final = Path(os.path.abspath(target))
    if os.path.lexists(final):
        raise Error(f"{final} is there already: take another name", INVALID)
    found = Committed(directory, step, part)
    final.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{final.name}.", dir=final.parent) as own:  # two exports never meet in it
        begun = Path(own) / final.name
        begun.mkdir()
        {"dcp": _as_dcp, "safetensors": _as_safetensors, "hf": _as_hf}[to](found, begun)
        for file in sorted(Path(config).iterdir()) if config is not None else ():
            if file.is_file() and file.suffix in (".json", ".txt", ".model", ".jinja") and not file.name.endswith(".index.json"):
                shutil.copy(file, begun)
        begun.rename(final)
    return found.step


def _as_dcp(found: Committed, folder: Path) -> None:
    import torch.distributed.checkpoint as dcp

    class Lazy(dcp.DefaultSavePlanner):
        """A tensor is read when it is written."""

        def transform_object(self, write_item: Any, object: Any) -> Any:
            is_tensor = write_item.index.fqn in found.tensors
            return found.whole(write_item.index.fqn) if is_tensor else super().transform_object(write_item, object)

    state = {name: torch.empty(of.size, dtype=of.properties.dtype, device="meta") for name, of in found.tensors.items()}
    with warnings.catch_warnings():  # that there is no process group is known, and fine
        warnings.simplefilter("ignore")
        dcp.save({**state, **found.values}, storage_writer=dcp.FileSystemWriter(folder), planner=Lazy(flatten_state_dict=False), no_dist=True)


def _shards(found: Committed, limit: int) -> Iterator[list[str]]:
    names: list[str] = []
    size = 0
    for name in found.tensors:
        if names and size + found.bytes(name) > limit:
            yield names
            names, size = [], 0
        names.append(name)
        size += found.bytes(name)
    yield names


def _save_file(found: Committed, names: list[str], file: Path) -> None:
    from safetensors.torch import save_file
    tensors = {name: found.whole(name) for name in names}
    try:
        save_file(tensors, file, metadata={"format": "pt"})
    except KeyError as error:
        dtype = error.args[0]
        which = next((name for name, tensor in tensors.items() if tensor.dtype == dtype), names[0])
        raise Error(f"{which} is {dtype}, which safetensors has not: export --to dcp, or name another --part", INVALID) from None


def _as_safetensors(found: Committed, folder: Path) -> None:
    _as_files(found, folder, "state")
    (folder / "values.json").write_text(json.dumps(found.values, default=repr, indent=1))


def _as_hf(found: Committed, folder: Path) -> None:
    _as_files(found, folder, "model")


def _as_files(found: Committed, folder: Path, stem: str) -> None:
    shards = list(_shards(found, SHARD))
    files = [f"{stem}.safetensors"] if len(shards) == 1 else [f"{stem}-{i + 1:05d}-of-{len(shards):05d}.safetensors" for i in range(len(shards))]
    for file, names in zip(files, shards, strict=True):
        _save_file(found, names, folder / file)
    if len(shards) > 1:
        where = {name: file for file, names in zip(files, shards, strict=True) for name in names}
        total = sum(found.bytes(name) for name in found.tensors)
        (folder / f"{stem}.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": where}, indent=1))

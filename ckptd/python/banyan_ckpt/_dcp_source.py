# SPDX-License-Identifier: BSD-3-Clause
"""Reads a step that torch.distributed.checkpoint wrote, without its pickle: of the metadata only known classes are made."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint import FileSystemReader
from torch.distributed.checkpoint.metadata import _MEM_FORMAT_ENCODING, ChunkStorageMetadata, Metadata, StorageMeta, TensorStorageMetadata
from torch.distributed.checkpoint.planner import LoadPlan, LoadPlanner, ReadItem
from torch.distributed.checkpoint.planner_helpers import create_read_items_for_chunk_list

from ._errors import LAYOUT, REFUSED, Error
from ._plan import TREE
from ._session import World
from ._sources import Region, Target, read_tree
from ._tensors import DTYPES

_CLASSES = {
    "torch.distributed.checkpoint.metadata": {"Metadata", "TensorStorageMetadata", "BytesStorageMetadata", "TensorProperties",
                                              "ChunkStorageMetadata", "MetadataIndex", "StorageMeta", "_MEM_FORMAT_ENCODING"},
    "torch.distributed.checkpoint.filesystem": {"_StorageInfo", "_StoragePrefix"},
    "torch.serialization": {"_get_layout"},
    "pathlib": {"PosixPath", "Path"}, "pathlib._local": {"PosixPath", "Path"},
    "collections": {"OrderedDict"},
}


METADATA_ERRORS = (OSError, EOFError, pickle.UnpicklingError, AttributeError, TypeError, ValueError, KeyError, IndexError)


def _member(of: Any, name: str) -> Any:
    """How Python pickles an enum's member."""
    if of is not _MEM_FORMAT_ENCODING:
        raise pickle.UnpicklingError(f"it asks for {name} of something that is no memory format")
    return _MEM_FORMAT_ENCODING[name]


class _Unpickler(pickle.Unpickler):
    """Makes what DCP's metadata consists of, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and (name == "Size" or isinstance(getattr(torch, name, None), torch.dtype)):
            return getattr(torch, name)
        if (module, name) == ("builtins", "getattr"):
            return _member
        if name in _CLASSES.get(module, ()):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"it names {module}.{name}, which is no part of a checkpoint's metadata")


class SafeReader(FileSystemReader):
    """Reads the metadata without running what is pickled there."""

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        with open(Path(self.path) / ".metadata", "rb") as file:
            metadata = _Unpickler(file).load()
        if not isinstance(metadata, Metadata):
            raise pickle.UnpicklingError("it holds no checkpoint's metadata")
        if metadata.storage_meta is None:
            metadata.storage_meta = StorageMeta()
        return metadata


@dataclass
class _Planner(LoadPlanner):
    """Puts what is read into the targets' memory."""

    targets: dict[str, torch.Tensor]
    offsets: dict[str, tuple[int, ...]]

    def resolve_tensor(self, read_item: ReadItem) -> torch.Tensor:
        at = self.targets[read_item.dest_index.fqn]
        for dim, (begin, length) in enumerate(zip(read_item.dest_offsets, read_item.lengths, strict=True)):
            at = at.narrow(dim, begin, length)
        return at

    def commit_tensor(self, read_item: ReadItem, tensor: torch.Tensor) -> None: ...

    def load_bytes(self, read_item: ReadItem, value: Any) -> None:
        raise Error(f"{read_item.dest_index.fqn} is pickled, and not read", LAYOUT)

    def set_up_planner(self, state_dict: Any, metadata: Any = None, is_coordinator: bool = False) -> None: ...

    def create_local_plan(self) -> LoadPlan:
        return LoadPlan([])

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        return global_plan

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        return central_plan


class DcpSource:
    """One step folder, in any number of ranks."""

    def __init__(self, me: World, folder: Path, step: int) -> None:
        self.step, self.kind = step, "directory"
        self._folder, self._me = folder, me
        self._reader = SafeReader(folder)
        try:
            metadata = self._reader.read_metadata()
        except METADATA_ERRORS as error:
            raise Error(f"rank {me.rank}: {folder}/.metadata cannot be read: {error}", REFUSED) from error
        self._reader.set_up_storage_reader(metadata, True)
        self._known = {name: md for name, md in metadata.state_dict_metadata.items() if isinstance(md, TensorStorageMetadata)}
        self.world = sum(name.endswith(f"/{TREE}") for name in self._known)
        if self.world == 0:
            raise Error(f"rank {me.rank}: {folder} was not saved by this package: torch.distributed.checkpoint.load reads it", LAYOUT)
        self.rank = me.rank % self.world
        self.own = self.world == me.world
        self.tree = read_tree(self)

    def _key(self, name: str) -> str:
        own = f"rank{self.rank}/{name}"
        return own if own in self._known else name

    def find(self, name: str) -> Region | None:
        key = self._key(name)
        found = self._known.get(key)
        if found is None:
            return None
        dtype, shape = found.properties.dtype, tuple(found.size)
        code = DTYPES.get(dtype, "U8")
        if dtype not in DTYPES:
            size = torch.empty(0, dtype=dtype).element_size()
            shape = (*shape[:-1], shape[-1] * size) if shape else (size,)
        bytes_ = torch.Size(found.size).numel() * torch.empty(0, dtype=dtype).element_size()
        return Region(name, code, bytes_, shape, None if key != name else shape, None if key != name else (0,) * len(shape))

    def fill(self, targets: Iterable[Target]) -> None:
        items: list[ReadItem] = []
        planner = _Planner({}, {})
        for one in targets:
            key, local = self._key(one.name), one.piece.local
            offset = one.piece.offset if key == one.name else (0,) * local.dim()
            if one.piece.code == "U8" and local.dtype is not torch.uint8:  # counted in bytes
                offset = (*offset[:-1], offset[-1] // local.element_size()) if local.dim() else ()
            planner.targets[key] = local.detach()
            chunk = ChunkStorageMetadata(torch.Size(offset), local.shape)
            items += create_read_items_for_chunk_list(key, self._known[key], [chunk])
        try:
            with torch.no_grad():
                self._reader.read_data(LoadPlan(items), planner).wait()
        except (OSError, RuntimeError, ValueError, EOFError, pickle.UnpicklingError, AssertionError) as error:
            raise Error(f"rank {self._me.rank}: {self._folder} cannot be read: {type(error).__name__}: {error}", REFUSED) from error

    def accept(self) -> None:
        """Nobody is to be told."""

    def close(self) -> None:
        """Nothing is open."""

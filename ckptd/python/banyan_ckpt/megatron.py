# SPDX-License-Identifier: BSD-3-Clause
"""Megatron-core on banyan: strategies for dist_checkpointing, bare or under its FullyParallel wrappers.

    from banyan_ckpt.megatron import LoadStrategy, SaveStrategy

    dist_checkpointing.save(state, f"{folder}/iter_{step:07d}", SaveStrategy(), async_sharded_save=True)
    state = dist_checkpointing.load(state, f"{folder}/iter_{banyan.latest():07d}", LoadStrategy())

The sharded state goes to the node's memory; the number at the end of the directory is the step. What Megatron calls the common state it
keeps writing there itself. Objects are JSON, not pickle. A save talks to no other rank and blocks for one copy; its async request is done
when it is made. Written for megatron-core 0.16."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from megatron.core.dist_checkpointing.dict_utils import nested_values
from megatron.core.dist_checkpointing.mapping import ShardedObject, ShardedTensor
from megatron.core.dist_checkpointing.strategies import torch as stock
from megatron.core.dist_checkpointing.strategies.async_utils import AsyncRequest
from megatron.core.dist_checkpointing.strategies.base import AsyncSaveShardedStrategy, LoadShardedStrategy
from torch.distributed.checkpoint.metadata import BytesStorageMetadata, TensorStorageMetadata

from ._errors import INVALID, Error, Outcome
from .dcp import Reader, Writer

BACKEND, VERSION = "torch_dist", 1  # so that Megatron's own checks and conversions know what it is
TENSOR, FILE = "banyan.tensor", "banyan.file"


def freeze(value: Any) -> Any:
    """With tensors and files in it as bytes."""
    if isinstance(value, torch.Tensor):
        data = value.detach().cpu().contiguous()
        return {TENSOR: str(data.dtype).removeprefix("torch."), "shape": list(data.shape),
                "bytes": bytes(data.reshape(-1).view(torch.uint8).numpy())}
    if isinstance(value, io.BytesIO | dict):
        return {FILE: value.getvalue()} if isinstance(value, io.BytesIO) else {key: freeze(part) for key, part in value.items()}
    return type(value)(freeze(part) for part in value) if type(value) in (list, tuple) else value


def thaw(value: Any) -> Any:
    if isinstance(value, dict):
        if TENSOR in value:
            data = torch.tensor(list(value["bytes"]), dtype=torch.uint8)
            return data.view(getattr(torch, value[TENSOR])).reshape(value["shape"])
        return io.BytesIO(value[FILE]) if FILE in value else {key: thaw(part) for key, part in value.items()}
    return type(value)(thaw(part) for part in value) if type(value) in (list, tuple) else value


class SaveStrategy(AsyncSaveShardedStrategy):
    """`outcome` is what became of the last save."""

    def __init__(self) -> None:
        super().__init__(BACKEND, VERSION)
        self.outcome: Outcome | None = None

    @property
    def can_handle_sharded_objects(self) -> bool:
        return True

    def async_save(self, sharded_state_dict: Any, checkpoint_dir: str | Path) -> AsyncRequest:
        found, _, _ = stock._replace_state_dict_keys_with_sharded_keys(sharded_state_dict, keep_only_main_replica=True)
        objects = {key: freeze([part.data for part in parts]) for key, parts in found.items() if isinstance(parts[0], ShardedObject)}
        tensors = stock.mcore_to_pyt_state_dict({key: parts for key, parts in found.items() if key not in objects})
        writer = Writer(_step(checkpoint_dir))
        writer.stage({**tensors, **{key: (values,) for key, values in objects.items()}})  # a tuple is one value for DCP
        self.outcome = writer.outcome
        return AsyncRequest(None, (), [])


class LoadStrategy(LoadShardedStrategy):
    """directory: reads a checkpoint directory of banyan's, in a job or outside of one."""

    def __init__(self, directory: str | Path | None = None) -> None:
        self._directory = directory

    @property
    def can_handle_sharded_objects(self) -> bool:
        return True

    def load(self, sharded_state_dict: Any, checkpoint_dir: str | Path) -> Any:
        parts = [part for part in nested_values(sharded_state_dict) if isinstance(part, ShardedTensor)]
        found, mapping, renamed = stock._replace_state_dict_keys_with_sharded_keys(sharded_state_dict)
        objects = {key: None for key, of in found.items() if isinstance(of[0], ShardedObject)}
        into: dict[str, Any] = {**stock.mcore_to_pyt_state_dict({key: of for key, of in found.items() if key not in objects}, True), **objects}
        planner = stock.MCoreLoadPlanner(shapes_validation_sharded_tensors=[part for part in parts if not part.allow_shape_mismatch],
                                         allow_shape_mismatch_sharded_tensors={p.key: p for p in parts if p.allow_shape_mismatch})
        dcp.load(into, storage_reader=Reader(self._directory), planner=planner, checkpoint_id=str(_step(checkpoint_dir)))
        loaded = {key: thaw(into[key][0]) if key in objects else stock._unwrap_pyt_sharded_tensor(into[key]) for key in into}
        out = stock._replace_sharded_keys_with_state_dict_keys(loaded, mapping, renamed)
        stock._restore_dict_types(out, sharded_state_dict)
        return out

    def load_tensors_metadata(self, checkpoint_dir: str | Path) -> Any:
        return {key: ShardedTensor.from_rank_offsets(key, torch.empty(of.size, dtype=of.properties.dtype, device="meta")).without_data()
                for key, of in self._metadata().items() if isinstance(of, TensorStorageMetadata)}

    def load_sharded_metadata(self, checkpoint_dir: str | Path) -> Any:
        objects = {key: ShardedObject.empty_from_unique_key(key) for key, of in self._metadata().items() if isinstance(of, BytesStorageMetadata)}
        return {**objects, **self.load_tensors_metadata(checkpoint_dir)}

    def _metadata(self) -> Any:
        return Reader(self._directory).peek().state_dict_metadata

    def check_backend_compatibility(self, loaded_backend: str) -> None: ...

    def check_version_compatibility(self, loaded_version: int) -> None: ...


def _step(checkpoint_dir: str | Path) -> int:
    digits = str(checkpoint_dir).rstrip("/").rpartition("_")[2]
    if not digits.isdigit():
        raise Error(f"{checkpoint_dir} does not end in the step, as iter_0000010 does", INVALID)
    return int(digits)

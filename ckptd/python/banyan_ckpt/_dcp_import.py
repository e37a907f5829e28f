# SPDX-License-Identifier: BSD-3-Clause
"""Loads what others have written into a state, before its first save by banyan. No pickled code is run."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.planner import ReadItem

from ._dcp_source import METADATA_ERRORS, SafeReader
from ._dcp_values import put
from ._errors import LAYOUT, NOTFOUND, REFUSED, Error


class _Planner(dcp.DefaultLoadPlanner):
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        try:
            found = torch.load(value, weights_only=True, map_location="cpu")
        except Exception as error:
            raise Error(f"{read_item.dest_index.fqn} is pickled with more than values, and not read: {error}", LAYOUT) from None
        put(self, read_item, found)


def import_from(state_dict: dict[str, Any], folder: str | os.PathLike[str]) -> None:
    """Fills the state as dcp.load does: from a torch.distributed.checkpoint folder, or from the safetensors of a Hugging Face model, whose
    names the state then has to have. All ranks of the process group call it."""
    place = Path(folder)
    if (place / ".metadata").is_file():
        reader = SafeReader(place)
        try:
            reader.read_metadata()
        except METADATA_ERRORS as error:
            raise Error(f"{place}/.metadata cannot be read: {error}", REFUSED) from error
        dcp.load(state_dict, storage_reader=reader, planner=_Planner())
        return
    if not any(place.glob("*.safetensors")):
        raise Error(f"{place} has neither .metadata nor a file of safetensors", NOTFOUND)
    model = dcp.HuggingFaceStorageReader(os.fspath(place))
    try:
        names = model.read_metadata().state_dict_metadata
    except Exception as error:  # noqa: BLE001 safetensors has exceptions of its own
        raise Error(f"{place} has a file of safetensors that cannot be read: {type(error).__name__}: {error}", REFUSED) from error
    # A tied weight is there under one of its names.
    held = {_place(tensor) for name, tensor in state_dict.items() if name in names} - {None}
    wanted = {name: tensor for name, tensor in state_dict.items() if name in names or _place(tensor) not in held}
    dcp.load(wanted, storage_reader=model, planner=_Planner())


def _place(tensor: Any) -> int | None:
    local = getattr(tensor, "_local_tensor", tensor)
    return local.data_ptr() if isinstance(local, torch.Tensor) and local.numel() else None

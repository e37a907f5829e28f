# SPDX-License-Identifier: BSD-3-Clause
"""Values that are no tensors, between DCP's planners and JSON: none of them is pickled, and none unpickled.

A planner with a way of its own to make bytes of a value (transform_object, load_bytes) is given them back as they were."""

from __future__ import annotations

import io
import json
from typing import Any

from torch.distributed.checkpoint import DefaultLoadPlanner, DefaultSavePlanner
from torch.distributed.checkpoint._traverse import set_element
from torch.distributed.checkpoint.planner import LoadPlanner as AnyLoadPlanner
from torch.distributed.checkpoint.planner import ReadItem, WriteItem, WriteItemType
from torch.distributed.checkpoint.planner import SavePlanner as AnySavePlanner

from ._dcp_layout import value_of
from ._errors import LAYOUT, Error
from ._tree import decode

BYTES = "banyan.bytes"  # the key under which a planner's own bytes are saved


class SavePlanner(DefaultSavePlanner):
    """DCP's planner, with values as JSON instead of pickle, for any StorageWriter."""

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        if write_item.type != WriteItemType.BYTE_IO:
            return super().transform_object(write_item, object)
        return io.BytesIO(json.dumps(value_of(write_item.index.fqn, object, 0)).encode())


class LoadPlanner(DefaultLoadPlanner):
    """Loads what SavePlanner has saved. It runs nothing that a checkpoint holds."""

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        try:
            found = decode(json.loads(value.read()))
        except (ValueError, KeyError, TypeError) as error:
            raise Error(f"{read_item.dest_index.fqn} is no JSON of banyan_ckpt.dcp.SavePlanner ({type(error).__name__}): it was saved by "
                        "another planner, and is not unpickled", LAYOUT) from None
        put(self, read_item, found)


def put(planner: DefaultLoadPlanner, item: ReadItem, value: Any) -> None:
    """What DefaultLoadPlanner.load_bytes does with the value that it has unpickled."""
    fqn = item.dest_index.fqn
    if planner.flatten_state_dict:
        set_element(planner.original_state_dict, planner.mappings[fqn], value)
    else:
        planner.state_dict[fqn] = value


def taken_from(planner: AnySavePlanner, item: WriteItem, rank: int) -> Any:
    """The value, encoded."""
    stock = isinstance(planner, DefaultSavePlanner) and type(planner).transform_object in (DefaultSavePlanner.transform_object,
                                                                                           SavePlanner.transform_object)
    if stock:
        return value_of(item.index.fqn, planner.lookup_object(item.index), rank)  # type: ignore[attr-defined]
    made = planner.resolve_data(item)
    return value_of(item.index.fqn, {BYTES: made.getvalue()}, rank)  # type: ignore[union-attr]


def give_to(planner: AnyLoadPlanner, item: ReadItem, encoded: Any) -> None:
    value = decode(encoded)
    is_bytes = isinstance(value, dict) and set(value) == {BYTES}
    stock = isinstance(planner, DefaultLoadPlanner) and type(planner).load_bytes in (DefaultLoadPlanner.load_bytes, LoadPlanner.load_bytes)
    if stock and not is_bytes:
        put(planner, item, value)  # type: ignore[arg-type]
    elif not stock and is_bytes:
        planner.load_bytes(item, io.BytesIO(value[BYTES]))
    elif stock:
        raise Error(f"{item.dest_index.fqn} was saved as bytes of its planner's own: load it with the load planner of the same kind", LAYOUT)
    else:
        raise Error(f"{item.dest_index.fqn} was saved as a value, and {type(planner).__name__} reads bytes of its own: load it with "
                    "DefaultLoadPlanner", LAYOUT)

# SPDX-License-Identifier: BSD-3-Clause
"""What a tensor is to the C library: bytes at an address, a dtype, and which part of which whole."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import torch

_NAMES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "complex64": "C64", "int64": "I64", "int32": "I32",
    "int16": "I16", "int8": "I8", "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8", "bool": "BOOL",
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0", "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
}
DTYPES: dict[torch.dtype, str] = {getattr(torch, name): code for name, code in _NAMES.items() if hasattr(torch, name)}
TORCH_DTYPES: dict[str, torch.dtype] = {code: dtype for dtype, code in DTYPES.items()}


SCALAR = "()"


class NoPiece(ValueError):
    """A tensor that has no bytes to save, or whose part of the whole is not known."""


@dataclass(frozen=True)
class Piece:
    """This rank's part of a tensor. `global_shape` is the whole tensor's and `offset` where in it the part begins; both are in elements
    of `code`, a dtype of <banyan/ckpt.h>. One that the library has no name for is U8 here, its last extent counted in bytes."""

    local: torch.Tensor
    code: str
    shape: tuple[int, ...]
    global_shape: tuple[int, ...]
    offset: tuple[int, ...]
    bytes: int

    @property
    def is_direct(self) -> bool:
        """Whether bytes may be written where it lies."""
        return self.local.is_contiguous() and not self.local.is_conj() and not self.local.is_neg()


def dtensor_type() -> type | None:
    """torch's DTensor, or None while nobody has loaded it: then there is none."""
    module = sys.modules.get("torch.distributed.tensor")
    return getattr(module, "DTensor", None)


def is_dtensor(tensor: Any) -> bool:
    kind = dtensor_type()
    return kind is not None and isinstance(tensor, kind)


def piece_of(tensor: torch.Tensor) -> Piece:
    """This rank's piece. Raises NoPiece, which says why there is none."""
    _check_kind(tensor)
    local, offset = _sharded(tensor) if is_dtensor(tensor) else (tensor, (0,) * tensor.dim())
    _check_local(local)
    shape, whole, size = tuple(local.shape), tuple(tensor.shape), local.element_size()
    code = DTYPES.get(local.dtype)
    if code is None:
        code = "U8"
        shape, whole, offset = _in_bytes(shape, size), _in_bytes(whole, size), (*offset[:-1], offset[-1] * size) if offset else (0,)
    return Piece(local, code, shape, whole, offset, local.numel() * size)


def _in_bytes(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    return (*shape[:-1], shape[-1] * size) if shape else (size,)


def _sharded(tensor: Any) -> tuple[torch.Tensor, tuple[int, ...]]:
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
    if any(placement.is_partial() for placement in tensor.placements):
        raise NoPiece("is a DTensor with partial sums: redistribute it to Replicate or Shard first")
    local = tensor._local_tensor
    shape, offset = compute_local_shape_and_global_offset(tensor.shape, tensor.device_mesh, tensor.placements)
    if tuple(shape) != tuple(local.shape):
        raise NoPiece(f"is a DTensor whose local part is {tuple(local.shape)}, not {tuple(shape)} as its placements say")
    # An empty part may begin beyond the end.
    return local, tuple(min(at, whole) for at, whole in zip(offset, tensor.shape, strict=True))


def _check_kind(tensor: torch.Tensor) -> None:
    if torch.nn.parameter.is_lazy(tensor):
        raise NoPiece("is not initialized yet: run the module once, or load it by load_state_dict()")
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized:
        kind = "nested" if tensor.is_nested else "quantized" if tensor.is_quantized else str(tensor.layout).removeprefix("torch.")
        raise NoPiece(f"is a {kind} tensor: save its parts, such as values and indices, as tensors of their own")


def _check_local(local: torch.Tensor) -> None:
    if local.is_meta:
        raise NoPiece("is on the meta device and has no contents: model.to_empty(device=...) gives it some")
    try:
        has_memory = local.numel() == 0 or local.data_ptr() != 0
    except RuntimeError:
        has_memory = False
    if not has_memory:
        raise NoPiece(f"is a {type(local).__name__} without memory of its own, such as a fake or a wrapped tensor")


def empty_of(code: str, shape: tuple[int, ...], dtype: str, device: torch.device | None = None) -> torch.Tensor:
    """A whole tensor for a region; `dtype` is what dtype_name() said of it."""
    if not dtype:
        return torch.empty(shape, dtype=TORCH_DTYPES[code], device=device)
    made = torch.empty(shape, dtype=torch.uint8, device=device).view(getattr(torch, dtype.removesuffix(SCALAR)))
    return made[0] if dtype.endswith(SCALAR) else made


def dtype_name(tensor: torch.Tensor) -> str:
    """torch's name of a dtype that the library has none for, else "". A scalar's ends in (): its region has an extent."""
    if tensor.dtype in DTYPES:
        return ""
    return str(tensor.dtype).removeprefix("torch.") + ("" if tensor.dim() else SCALAR)

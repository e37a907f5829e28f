# SPDX-License-Identifier: BSD-3-Clause
"""A state is a dictionary: modules, optimizers, other objects with state_dict(), tensors, and containers of them and of values. Here it
becomes containers, tensors and values alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import torch

from ._errors import StateError
from ._tree import kind_of

State = dict[str, Any]


@runtime_checkable
class Stateful(Protocol):
    """An object that says what its state is, and takes it back: schedulers, scalers, torchdata's StatefulDataLoader, your own."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any: ...


@dataclass
class Expanded:
    """`tree`: the state without objects. `own`: keys whose tensors are this rank's alone, such as a data loader's."""

    tree: dict[str, Any] = field(default_factory=dict)
    own: tuple[str, ...] = ()


def check_state(state: Any, rank: int) -> None:
    if not isinstance(state, dict):
        raise StateError("", rank, f"is a {kind_of(state)}, not a dictionary such as {{'model': model, 'optimizer': optimizer}}")
    for key in state:
        if not isinstance(key, str) or not key or key.startswith("__"):
            raise StateError(str(key), rank, "is no name for a part of the state: use text that does not begin with __")


def plain_module(module: torch.nn.Module) -> torch.nn.Module:
    """Without what DistributedDataParallel or torch.compile have put around it: the same names in any run."""
    while True:
        if isinstance(module, torch.nn.parallel.DistributedDataParallel):
            module = module.module
        elif isinstance(inner := dict(module._modules.items()).get("_orig_mod"), torch.nn.Module):  # a scripted one has no get()
            module = inner
        else:
            return module


def clean(name: str) -> str:
    """A key without the mark of a compiled module within a module."""
    return name.replace("_orig_mod.", "")


def parameter_names(states: dict[str, dict[str, Any]]) -> dict[int, str]:
    """By id: what modules call their parameters; `states` has what state_dict(keep_vars=True) of each says. With several modules the name
    begins with the module's key."""
    out: dict[int, str] = {}
    for key, state in states.items():
        head = f"{key}." if len(states) > 1 else ""
        for name, tensor in state.items():
            out.setdefault(id(tensor), head + clean(name))
    return out


def expand(state: State, rank: int) -> Expanded:
    """The state as it is now; tensors are the live ones."""
    check_state(state, rank)
    out = Expanded()
    own = []
    modules = {key: module_state(part, key, rank) for key, part in state.items() if isinstance(part, torch.nn.Module)}
    names = parameter_names(modules) if any(isinstance(part, torch.optim.Optimizer) for part in state.values()) else {}
    for key, part in state.items():
        if key in modules:
            out.tree[key] = modules[key]
        elif isinstance(part, torch.optim.Optimizer):
            out.tree[key] = optimizer_state(part, names)
        elif not isinstance(part, dict) and isinstance(part, Stateful):
            out.tree[key] = object_state(part, key, rank)
            own.append(key)
        else:
            out.tree[key] = part
    out.own = tuple(own)
    return out


def object_state(part: Stateful, key: str, rank: int) -> dict[str, Any]:
    said = part.state_dict()
    if not isinstance(said, dict):
        raise StateError(key, rank, f"({kind_of(part)}) has a state_dict() that returns a {kind_of(said)}, not a dictionary")
    return said


def module_state(module: torch.nn.Module, key: str, rank: int) -> dict[str, Any]:
    inner = plain_module(module)
    if any(type(m).__name__ == "FullyShardedDataParallel" for m in inner.modules()):
        raise StateError(key, rank, "is an FSDP1 module (FullyShardedDataParallel): use FSDP2 (fully_shard), whose state is DTensors")
    return inner.state_dict(keep_vars=True)


def optimizer_indices(optimizer: torch.optim.Optimizer, names: dict[int, str]) -> list[str | int]:
    """What each parameter is called, in the optimizer's order: its name in the state's modules, else its number."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    return [names.get(id(p), i) for i, p in enumerate(parameters)]


def optimizer_state(optimizer: torch.optim.Optimizer, names: dict[int, str]) -> dict[str, Any]:
    """state_dict() with names instead of numbers: so it is the same for another order, or another stage of a pipeline."""
    found = optimizer.state_dict()
    called = optimizer_indices(optimizer, names)
    if len(set(called)) != len(called) or not names:
        return found
    found["state"] = {called[i] if isinstance(i, int) else i: per for i, per in found["state"].items()}
    found["param_groups"] = [{**group, "params": [called[i] for i in group["params"]]} for group in found["param_groups"]]
    return found

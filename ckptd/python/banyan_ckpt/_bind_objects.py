# SPDX-License-Identifier: BSD-3-Clause
"""How modules, optimizers and other objects take what was saved of them."""

from __future__ import annotations

from typing import Any

import torch

from ._bind import Binder, Path, Saved, shown
from ._fill import Wanted
from ._state import Stateful, clean, module_state, optimizer_indices, parameter_names, plain_module
from ._tensors import is_dtensor, piece_of


def bind_module(binder: Binder, module: torch.nn.Module, saved: Any, path: Path) -> None:
    """Live parameters and buffers are filled in place. A module that makes its state anew at each state_dict() loads a copy."""
    if not isinstance(saved, dict):
        raise binder.wrong(path, f"is a module here, and none in step {binder.source.step}")
    inner, found = plain_module(module), module_state(module, shown(path), binder.rank)
    live = {id(t) for t in [*inner.parameters(), *inner.buffers()]}
    tensors = {key: t for key, t in found.items() if isinstance(t, torch.Tensor)}
    if not all(id(t) in live and not torch.nn.parameter.is_lazy(t) for t in tensors.values()):
        whole = binder.fresh(saved, path)
        binder.actions.append(lambda: _load_whole(binder, inner, whole, path))
        return
    known = {clean(key): key for key in found}
    for its, key in known.items():
        if its not in saved:
            binder.absent((*path, key))
        elif key in tensors:
            binder.tensor(tensors[key], saved[its], (*path, key))
    for key in saved:
        if key not in known:
            binder.extra((*path, key))
    others = {known[key]: binder.fresh(value, (*path, key)) for key, value in saved.items() if key in known and known[key] not in tensors}
    if others:
        binder.actions.append(lambda: _load_others(inner, others))


def _load_whole(binder: Binder, module: torch.nn.Module, whole: dict[str, Any], path: Path) -> None:
    try:
        module.load_state_dict(whole, strict=binder.strict)
    except RuntimeError as error:
        raise binder.wrong(path, f"does not take step {binder.source.step}: {error}") from None


def _load_others(module: torch.nn.Module, others: dict[str, Any]) -> None:
    module.load_state_dict(others, strict=False)  # what set_extra_state() takes


def bind_stateful(binder: Binder, part: Stateful, saved: Any, path: Path) -> None:
    whole = binder.fresh(saved, path)
    if not isinstance(whole, dict):
        raise binder.wrong(path, f"is a {type(part).__name__} here, and no object's state in step {binder.source.step}")
    binder.actions.append(lambda: _load_part(binder, part, whole, path))


def _load_part(binder: Binder, part: Stateful, whole: dict[str, Any], path: Path) -> None:
    try:
        part.load_state_dict(whole)
    except (RuntimeError, ValueError, KeyError, TypeError) as error:
        raise binder.wrong(path, f"({type(part).__name__}) does not take step {binder.source.step}: {type(error).__name__}: {error}") from error


def bind_optimizer(binder: Binder, optimizer: torch.optim.Optimizer, saved: Any, path: Path, state: dict[str, Any]) -> None:
    """Memory for the moments is made where the parameters lie, unless it is there already, and filled in place."""
    if not isinstance(saved, dict) or "state" not in saved or "param_groups" not in saved:
        raise binder.wrong(path, f"is an optimizer here, and none in step {binder.source.step}")
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    names = parameter_names({key: module_state(part, key, binder.rank) for key, part in state.items() if isinstance(part, torch.nn.Module)})
    called = optimizer_indices(optimizer, names)
    index: dict[Any, int] = {name: i for i, name in enumerate(called)}
    saved_names = [name for group in saved["param_groups"] for name in group["params"]]
    if not set(saved_names) <= set(index):  # saved without the modules, so by number
        index = {i: i for i in range(len(called))}
    for name in saved_names:
        if name not in index:
            raise binder.wrong((*path, name), f"is a parameter of the optimizer in step {binder.source.step}, and none here")
    if len(saved_names) != len(parameters):
        raise binder.wrong(path, f"has {len(parameters)} parameters here, and {len(saved_names)} in step {binder.source.step}")
    here = _positions(optimizer)
    if [{index[name] for name in group["params"]} for group in saved["param_groups"]] != [set(at) for at in here]:
        raise binder.wrong(path, f"has groups of {', '.join(str(len(at)) for at in here)} parameters here; those of step {binder.source.step} "
                                 f"have {', '.join(str(len(group['params'])) for group in saved['param_groups'])}, or others")
    per: dict[Any, Any] = {}
    for name, its in saved["state"].items():
        if name in index:
            per[index[name]] = _moments(binder, optimizer, parameters[index[name]], its, (*path, "state", name))
        else:  # of no parameter, but of the optimizer as a whole
            per[name] = binder.fresh(its, (*path, "state", name))
    # load_state_dict() goes by the place in a group, and the parameters may stand in another order than when they were saved.
    groups = [{**group, "params": list(at)} for group, at in zip(binder.fresh(saved["param_groups"], path), here, strict=True)]
    binder.actions.append(lambda: _load_part(binder, optimizer, {"state": per, "param_groups": groups}, path))


def _positions(optimizer: torch.optim.Optimizer) -> list[range]:
    """By group: where among all parameters of the optimizer its own stand."""
    out, begin = [], 0
    for group in optimizer.param_groups:
        out.append(range(begin, begin := begin + len(group["params"])))
    return out


def _moments(binder: Binder, optimizer: torch.optim.Optimizer, parameter: torch.Tensor, saved: Any, path: Path) -> Any:
    if not isinstance(saved, dict):
        return binder.fresh(saved, path)
    held = optimizer.state.get(parameter, {})
    out = {}
    for key, part in saved.items():
        if not isinstance(part, Saved):
            out[key] = binder.fresh(part, (*path, key))
            continue
        out[key] = _place_for(binder, held.get(key), parameter, part, (*path, key))
    return out


def _place_for(binder: Binder, held: Any, parameter: torch.Tensor, saved: Saved, path: Path) -> torch.Tensor:
    region = binder.region(saved, path)
    if isinstance(held, torch.Tensor) and (piece := piece_of(held)).code == region.dtype and piece.global_shape == region.whole:
        made = held
    else:
        made = _like(parameter, region.dtype, region.whole, saved)
        piece = piece_of(made)
    binder.wanted.append(Wanted(shown(path), saved.name, piece, region.global_shape is None))
    return made


def _like(parameter: torch.Tensor, code: str, whole: tuple[int, ...], saved: Saved) -> torch.Tensor:
    from ._tensors import TORCH_DTYPES, empty_of
    if whole and not saved.dtype and tuple(parameter.shape) == whole:
        with torch.no_grad():
            return torch.empty_like(parameter, dtype=TORCH_DTYPES[code], requires_grad=False)
    device = parameter.to_local().device if is_dtensor(parameter) else parameter.device  # type: ignore[attr-defined]
    return empty_of(code, whole, saved.dtype, device if whole else None)

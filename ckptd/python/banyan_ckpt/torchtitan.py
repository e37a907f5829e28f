# SPDX-License-Identifier: BSD-3-Clause
"""torchtitan on banyan: its own checkpoints stay as they are, and banyan's are saved beside them, as often as one likes.

    from banyan_ckpt.torchtitan import BanyanCheckpointManager

    config.checkpoint = BanyanCheckpointManager.Config(enable=True, interval=500, banyan_interval=1)

A save blocks for one copy, and talks to no other rank: so NCCL alone will do. A job that was started again goes on from banyan's step; a
first start, a step that is asked for by number, and export work as before. Written for torchtitan 0.3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.stateful import Stateful
from torchtitan.components.checkpointer.base import MODEL
from torchtitan.components.checkpointer.dcp import CheckpointManager

from . import _calls as banyan
from ._errors import INVALID, Error, Outcome
from ._session import init
from .dcp import Reader, Writer


class BanyanCheckpointManager(CheckpointManager):
    """`outcome` is what became of banyan's last save."""

    @dataclass(kw_only=True, slots=True)
    class Config(CheckpointManager.Config):
        banyan_interval: int = 1
        """Saves to the node's memory after each so-many steps."""

        def __post_init__(self) -> None:
            CheckpointManager.Config.__post_init__(self)
            if self.banyan_interval < 1:
                raise Error(f"banyan_interval is {self.banyan_interval}: it is a number of steps, from 1", INVALID)

    def __init__(self, config: Config, **parts: Any) -> None:
        super().__init__(config, **parts)
        self.outcome = Outcome(0, 0)
        self._banyan_interval = config.banyan_interval
        if self.enable:
            init()

    @torch.no_grad()
    def _load(self, step: int = -1) -> bool:
        if step != -1 or banyan.latest() is None:
            return bool(super()._load(step))
        states = self._states_to_load(model_only=False)
        dcp.load(states, storage_reader=Reader())
        self.states[MODEL].load_state_dict(states)  # they are without the level that the others have
        return True

    @torch.no_grad()
    def _save(self, curr_step: int, last_step: bool = False) -> bool:
        saved = bool(super()._save(curr_step, last_step))
        banyan.heartbeat(curr_step)
        if self.load_only or (curr_step % self._banyan_interval and not last_step):
            return saved
        states = self._flattened_model_states_sd()
        writer = Writer(curr_step)
        writer.stage({key: part.state_dict() if isinstance(part, Stateful) else part for key, part in states.items()})
        self.outcome = writer.outcome if writer.outcome is not None else self.outcome
        if last_step:
            self.outcome = banyan.finish()
        return True

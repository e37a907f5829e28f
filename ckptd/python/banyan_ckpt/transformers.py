# SPDX-License-Identifier: BSD-3-Clause
"""Hugging Face's Trainer on banyan: it saves beside its own checkpoints, and goes on by itself from where the job was.

    from banyan_ckpt.transformers import Banyan

    class MyTrainer(Banyan, Trainer):
        banyan_every = 10

    MyTrainer(model=model, args=args, train_dataset=data).train()

For one device and DDP; with FSDP or DeepSpeed it raises: use banyan_ckpt.dcp there. Batches that were seen are skipped as the Trainer does
after its own checkpoints. Written for transformers 5.24, whose callbacks cannot bring a state back: so methods of its own are replaced."""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from typing import Any

from transformers import TrainerCallback
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_callback import ExportableState

from . import _calls as banyan
from ._errors import INVALID, Error, Outcome
from ._rng import Rng
from ._session import init

STATE, MODEL, OPTIMIZER, SCHEDULE, SCALER, RNG = "trainer", "model", "optimizer", "schedule", "scaler", "rng"


class Banyan:
    """Comes before Trainer among the bases. `banyan_every`: saves after each so-many steps. `outcome`: what became of the last save."""

    banyan_every = 1
    outcome = Outcome(0, 0)
    _goes_on = False

    def train(self: Any, resume_from_checkpoint: str | bool | None = None, **named: Any) -> Any:
        """As Trainer.train(). The state of the job comes before resume_from_checkpoint, which is for its first start."""
        if self.is_fsdp_enabled or self.is_deepspeed_enabled:
            raise Error("banyan_ckpt.transformers is for one device and for DDP: with FSDP use banyan_ckpt.dcp", INVALID)
        init()
        found: dict[str, Any] = {STATE: None}
        self._goes_on = banyan.load(found) is not None
        saver = _Saver(self)
        self.add_callback(saver)
        try:
            with tempfile.TemporaryDirectory(prefix="banyan-") as folder:
                if self._goes_on:
                    with open(os.path.join(folder, TRAINER_STATE_NAME), "w", encoding="utf-8") as file:
                        file.write(found[STATE])
                    resume_from_checkpoint = folder
                out = super().train(resume_from_checkpoint=resume_from_checkpoint, **named)  # type: ignore[misc]
        finally:
            self.remove_callback(saver)
            self._goes_on = False
        self.outcome = banyan.finish()
        return out

    def _load_from_checkpoint(self: Any, checkpoint: str, model: Any = None) -> None:
        if not self._goes_on:
            return super()._load_from_checkpoint(checkpoint, model)  # type: ignore[misc, no-any-return]
        banyan.load({MODEL: self.model if model is None else model})
        return None

    def _load_optimizer_and_scheduler(self: Any, checkpoint: str | None) -> None:
        if not self._goes_on:
            return super()._load_optimizer_and_scheduler(checkpoint)  # type: ignore[misc, no-any-return]
        banyan.load(self._banyan_parts())
        return None

    def _load_scaler(self: Any, checkpoint: str | None) -> None:
        if not self._goes_on:  # else it came with the optimizer
            super()._load_scaler(checkpoint)  # type: ignore[misc]

    def _load_rng_state(self: Any, checkpoint: str | None) -> None:
        if not self._goes_on:
            return super()._load_rng_state(checkpoint)  # type: ignore[misc, no-any-return]
        banyan.load({RNG: Rng()})
        return None

    def _banyan_parts(self: Any) -> dict[str, Any]:
        """What the training consists of, but for random numbers and the Trainer's own state."""
        optimizer = getattr(self.optimizer, "optimizer", self.optimizer)  # without accelerate's wrapping
        parts = {MODEL: self.model, OPTIMIZER: optimizer, SCHEDULE: self.lr_scheduler}
        scaler = getattr(self.accelerator, "scaler", None)
        return parts if scaler is None else {**parts, SCALER: scaler}


class _Saver(TrainerCallback):
    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer

    def on_step_begin(self, args: Any, state: Any, control: Any, **named: Any) -> None:
        banyan.heartbeat(state.global_step, 1)

    def on_step_end(self, args: Any, state: Any, control: Any, **named: Any) -> None:
        trainer = self._trainer
        banyan.heartbeat(state.global_step)
        if state.global_step % trainer.banyan_every:
            return
        told = dataclasses.asdict(state)
        for one in [*trainer.callback_handler.callbacks, control]:
            if isinstance(one, ExportableState):
                name, now = type(one).__name__, one.state()
                told["stateful_callbacks"][name] = [*told["stateful_callbacks"][name], now] \
                    if isinstance(told["stateful_callbacks"].get(name), list) else now
        trainer.outcome = banyan.save(state.global_step, {STATE: json.dumps(told), RNG: Rng(), **trainer._banyan_parts()})

# SPDX-License-Identifier: BSD-3-Clause
"""Lightning's Trainer on banyan: a callback that saves on every rank, and a plugin that loads.

    from banyan_ckpt.lightning import Checkpoints

    checkpoints = Checkpoints(every=10)
    trainer = L.Trainer(..., callbacks=[checkpoints], plugins=[checkpoints.io])
    trainer.fit(model, data, ckpt_path=checkpoints.newest())

For one device and DDP. Strategies that load by themselves (FSDP, ModelParallel, DeepSpeed) do not ask a plugin: use banyan_ckpt.dcp there.
Under Slurm the plugin SLURMEnvironment(auto_requeue=False) goes beside it: banyan starts the ranks again. Data goes on where it was when
its loader says so, as torchdata's StatefulDataLoader does; Lightning begins others anew. Written for Lightning 2.6."""

from __future__ import annotations

from typing import Any

from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.plugins.environments import SLURMEnvironment
from lightning.pytorch.strategies import DDPStrategy, SingleDeviceStrategy

from . import _calls as banyan
from ._errors import INVALID, LAYOUT, Error, Outcome
from ._rng import Rng
from ._session import init, world

NEWEST = "banyan://newest"
RNG = "banyan_rng"
# Of no use when a training goes on, and often no values: the arguments that the module was made with.
LEFT_OUT = (LightningModule.CHECKPOINT_HYPER_PARAMS_KEY, LightningModule.CHECKPOINT_HYPER_PARAMS_NAME,
            LightningModule.CHECKPOINT_HYPER_PARAMS_TYPE)


class _IO(TorchCheckpointIO):
    """Files as before; NEWEST is what newest() has found."""

    def __init__(self) -> None:
        self.found: dict[str, Any] | None = None

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: bool | None = None) -> dict[str, Any]:
        if str(path) != NEWEST:
            files: dict[str, Any] = super().load_checkpoint(path, map_location, weights_only)
            return files
        if self.found is None:
            raise Error(f"ckpt_path={NEWEST!r} is what Checkpoints.newest() returns, once for a fit()", INVALID)
        found, self.found = self.found, None
        return found


class Checkpoints(Callback):
    """every: saves after each so-many optimizer steps. `io` goes into the Trainer's plugins. `outcome` is what became of the last save."""

    def __init__(self, every: int = 1) -> None:
        self.every, self.outcome = every, Outcome(0, 0)
        self.io = _IO()
        self._rng: dict[str, Any] | None = None
        self._last = -1

    def newest(self) -> str | None:
        """For fit(ckpt_path=...): what the job goes on from, or None to begin. Raises Error where that cannot be had."""
        init()
        loaded = banyan.load()
        if loaded is None:
            return None
        if RNG not in loaded.state:
            raise Error(f"rank {world().rank}: step {loaded.step} was not saved by banyan_ckpt.lightning", LAYOUT)
        self._rng, self._last = loaded.state.pop(RNG), loaded.step
        self.io.found = loaded.state
        return NEWEST

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if not isinstance(trainer.strategy, DDPStrategy | SingleDeviceStrategy):
            raise Error(f"{type(trainer.strategy).__name__} saves and loads by itself: banyan_ckpt.lightning is for one device and for DDP; "
                        "use banyan_ckpt.dcp", INVALID)
        if trainer.strategy.checkpoint_io is not self.io:
            raise Error("Checkpoints.io is not among the Trainer's plugins, so nothing could be loaded: plugins=[checkpoints.io]", INVALID)
        environment = getattr(trainer.strategy, "cluster_environment", None)
        if isinstance(environment, SLURMEnvironment) and environment.auto_requeue:
            raise Error("Lightning would requeue the job, which banyan-run starts again: plugins=[..., SLURMEnvironment(auto_requeue=False)]",
                        INVALID)

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        if self._rng is not None:  # not before: Lightning has drawn numbers since it loaded
            Rng().load_state_dict(self._rng)
            self._rng = None
        banyan.heartbeat(trainer.global_step, 1)

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int) -> None:
        step = trainer.global_step
        banyan.heartbeat(step)
        if step == self._last or step % self.every:
            return
        self._last = step
        # Trainer.save_checkpoint() would ask rank 0 alone.
        state = trainer._checkpoint_connector.dump_checkpoint(weights_only=False)
        state = {key: part for key, part in state.items() if key not in LEFT_OUT}
        self.outcome = banyan.save(step, {**state, RNG: Rng().state_dict()})

    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.outcome = banyan.finish()

# SPDX-License-Identifier: BSD-3-Clause
"""torchtitan's checkpoint manager, optimizers, schedules and data loader on CPU tensors, with FSDP2."""

import warnings

warnings.filterwarnings("ignore")
import torch
import torch.distributed as dist
from common import RANK, STEPS, WORLD, log
from torch.distributed.fsdp import fully_shard
from torch.utils.data import IterableDataset
from torchtitan.components.dataloader import ParallelAwareDataloader
from torchtitan.components.optimizer import LRSchedulersContainer, OptimizersContainer
from torchtitan.components.optimizer.optimizer import ParamGroupConfig

from banyan_ckpt.torchtitan import BanyanCheckpointManager


class Data(IterableDataset):
    """Batches that count, and a state that says how far."""

    def __init__(self):
        self.at = 0

    def __iter__(self):
        while True:
            self.at += 1
            yield torch.randn(7, generator=torch.Generator().manual_seed(self.at * WORLD + RANK))

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


class TrainState:
    step = 0

    def state_dict(self):
        return {"step": torch.tensor(self.step)}

    def load_state_dict(self, state):
        self.step = int(state["step"])


dist.init_process_group("gloo")
torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(7, 13), torch.nn.ReLU(), torch.nn.Linear(13, 7))
fully_shard(model)
optimizers = OptimizersContainer.Config(implementation="for-loop", param_groups=[
    ParamGroupConfig(pattern=".*", optimizer_name="AdamW", optimizer_kwargs={"lr": 0.01})]).build(model_parts=[model])
schedules = LRSchedulersContainer.Config(warmup_steps=4).build(optimizers=optimizers, training_steps=STEPS)
data = ParallelAwareDataloader(Data(), RANK, WORLD, batch_size=4)
state = TrainState()
manager = BanyanCheckpointManager.Config(enable=True, interval=1000, last_save_model_only=False).build(
    dataloader=data, model_parts=[model], optimizers=optimizers, lr_schedulers=schedules, states={"train_state": state}, sd_adapter=None,
    base_folder="out")
print("loaded", manager.load(), state.step)
batches = iter(data)
while state.step < STEPS:
    batch = next(batches)
    loss = (model(batch) - batch).square().mean()
    optimizers.zero_grad()
    loss.backward()
    optimizers.step()
    schedules.step()
    state.step += 1
    manager.save(state.step, last_step=state.step == STEPS)
    log(state.step, loss, manager.outcome)
print("ended", manager.outcome)
manager.close()
dist.destroy_process_group()

# SPDX-License-Identifier: BSD-3-Clause
"""A small training with Lightning: DDP, dropout, a schedule, a shuffled loader in several epochs."""

import logging
import os
import warnings

warnings.filterwarnings("ignore")
import lightning as L
import torch
from common import RANK, STEPS, WORLD, log
from lightning.pytorch.plugins.environments import LightningEnvironment, SLURMEnvironment
from lightning.pytorch.strategies import DDPStrategy
from torchdata.stateful_dataloader import StatefulDataLoader

from banyan_ckpt.lightning import Checkpoints

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Module(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 8))
        self.save_hyperparameters({"odd": object()})

    def training_step(self, batch, index):
        return (self.net(batch[0]) - batch[0]).square().mean()

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), 1e-2)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class Note(L.Callback):
    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        log(trainer.global_step, outputs["loss"], checkpoints.outcome)


L.seed_everything(3, verbose=False)
checkpoints = Checkpoints()
environment = SLURMEnvironment(auto_requeue=False) if "SLURM_JOB_ID" in os.environ else LightningEnvironment()
data = torch.utils.data.TensorDataset(torch.randn(80, 8, generator=torch.Generator().manual_seed(1))[RANK::WORLD])
trainer = L.Trainer(accelerator="cpu", devices=1, num_nodes=WORLD, strategy=DDPStrategy(process_group_backend="gloo", find_unused_parameters=True),
                    max_steps=STEPS, use_distributed_sampler=False, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                    callbacks=[checkpoints, Note()], plugins=[checkpoints.io, environment])
trainer.fit(Module(), StatefulDataLoader(data, batch_size=4, shuffle=True), ckpt_path=checkpoints.newest())
print("ended", checkpoints.outcome)

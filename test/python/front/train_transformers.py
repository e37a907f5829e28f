# SPDX-License-Identifier: BSD-3-Clause
"""A small training with Hugging Face's Trainer: DDP, dropout, tied weights, several epochs."""

import warnings

warnings.filterwarnings("ignore")
import torch
from common import RANK, STEPS, WORLD, log
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

from banyan_ckpt.transformers import Banyan


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 80

    def __getitem__(self, index):
        tokens = torch.randint(0, 50, (8,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens}


class MyTrainer(Banyan, Trainer):
    def training_step(self, *arguments, **named):
        self.loss = super().training_step(*arguments, **named)
        return self.loss


class Note(TrainerCallback):
    def on_step_end(self, args, state, control, **named):
        log(state.global_step, trainer.loss, self.before)
        self.before = trainer.outcome  # this callback comes before the one that saves

    before = "step 0: ok"


args = TrainingArguments(output_dir="out", max_steps=STEPS, per_device_train_batch_size=4, save_strategy="no", report_to=[], use_cpu=True,
                         disable_tqdm=True, dataloader_num_workers=0, ddp_backend="gloo", seed=3, logging_steps=2, ddp_find_unused_parameters=True)
torch.manual_seed(3)
model = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=8, n_embd=16, n_layer=1, n_head=2))
trainer = MyTrainer(model=model, args=args, train_dataset=Data())
trainer.add_callback(Note())
trainer.train()
print("ended", trainer.outcome, RANK, WORLD)

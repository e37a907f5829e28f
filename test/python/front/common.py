# SPDX-License-Identifier: BSD-3-Clause
"""What the trainings of each framework have in common: one line for each step in a file of the rank."""

import json
import os
import time

import torch

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
STEPS = int(os.environ.get("STEPS", "14"))
torch.set_num_threads(1)


def log(step, loss, saved=""):
    """The training is slowed down a little, so that a test can end it in time."""
    with open(os.path.join(os.environ["LOSSES"], f"rank{RANK}"), "a", encoding="utf-8") as file:
        file.write(json.dumps({"step": step, "loss": float(loss), "saved": str(saved), "pid": os.getpid()}) + "\n")
    time.sleep(float(os.environ.get("PAUSE", "0")))

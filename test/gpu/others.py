# SPDX-License-Identifier: BSD-3-Clause
"""Other ways to save the same state: what a copy costs at least, and PyTorch's own checkpoints into /dev/shm."""

import os
import shutil
import tempfile

import torch
import torch.distributed.checkpoint as dcp

folder = tempfile.mkdtemp(prefix="banyan-gpu-", dir="/dev/shm")


def nothing():
    pass


def ways(state, gpu):
    """{name: (what is timed, what ends it)}"""
    under_way = []

    def clear():
        shutil.rmtree(folder)
        os.mkdir(folder)

    def save():
        dcp.save({"state": state}, checkpoint_id=f"{folder}/dcp")

    def save_async():
        under_way.append(dcp.async_save({"state": state}, checkpoint_id=f"{folder}/async"))

    def after_async():
        under_way.pop().result()
        clear()

    out = {"dcp.save": (save, clear), "dcp.async_save": (save_async, after_async),
           "torch.save": (lambda: torch.save(state, f"{folder}/torch"), clear)}
    if gpu:
        total = sum(tensor.numel() * tensor.element_size() for tensor in state.values())
        there, here = torch.empty(total, dtype=torch.uint8, device="cuda"), torch.empty(total, dtype=torch.uint8, pin_memory=True)
        out["one pinned copy from the GPU"] = (lambda: here.copy_(there, non_blocking=True), nothing)
    return out


def end():
    shutil.rmtree(folder, ignore_errors=True)

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Trains a small GPT on text.txt, by DDP or FSDP2: in a banyan job, under torchrun alone, or as one process. See README.md.

Prints one JSON object a line: each rank when it begins (`rank`, where it goes on, and when it was how far, in seconds since 1970), and
rank 0 for each step its loss, the mean over the ranks in nats."""

import time

times = {"process": time.time()}  # before the imports, which take seconds

import argparse  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import platform  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

import banyan_ckpt as banyan  # noqa: E402
from model import GPT  # noqa: E402

LENGTH, BATCH = 64, 16  # characters of a sample, samples of a rank's step


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Trains a small GPT on text.txt.")
    parser.add_argument("--parallel", choices=("ddp", "fsdp2"), default="ddp", help="how the ranks share the model (default %(default)s)")
    parser.add_argument("--steps", type=int, default=300, help="training steps in all (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of weights, samples and dropout (default %(default)s)")
    parser.add_argument("--directory", help="where checkpoints go outside of a banyan job (default: nowhere)")
    return parser.parse_args()


def tell(**what: object) -> None:
    print(json.dumps(what) + "\n", end="", flush=True)  # by one write: under torchrun the ranks of a node share their output


def rendezvous() -> torch.device:
    """The process group, of what torchrun or banyan has put into the environment; of this process alone without either."""
    local = int(os.environ.get("LOCAL_RANK", 0))
    device = torch.device("cuda", local % torch.cuda.device_count()) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    backend = "nccl" if device.type == "cuda" else "gloo"
    if "RANK" in os.environ:
        dist.init_process_group(backend)
    else:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    return device


def samples(text: torch.Tensor, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Passages of the text, and the same one character on: which ones is for the random numbers to say."""
    begin = torch.randint(len(text) - LENGTH, (BATCH, 1))
    passage = text[begin + torch.arange(LENGTH + 1)].to(device)
    return passage[:, :-1], passage[:, 1:]


def build(parallel: str, letters: int, device: torch.device) -> torch.nn.Module:
    model = GPT(letters, LENGTH).to(device)
    if parallel == "fsdp2":
        for block in model.blocks:
            fully_shard(block)
        fully_shard(model)
        return model
    # Else DDP would put its buckets into another order after the first step, and sums after a restart would differ in their last bits.
    return DistributedDataParallel(model, find_unused_parameters=True)


def main() -> None:
    flags = arguments()
    times["imports"] = time.time()
    device = rendezvous()
    times["rendezvous"] = time.time()
    rank, world = dist.get_rank(), dist.get_world_size()
    letters = sorted(set(written := Path(__file__).with_name("text.txt").read_text(encoding="ascii")))
    text = torch.tensor([letters.index(letter) for letter in written])

    torch.manual_seed(flags.seed)  # the same weights on all ranks
    model = build(flags.parallel, len(letters), device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=flags.steps, eta_min=3e-4)
    torch.manual_seed(flags.seed + 1 + rank)  # samples and dropout of its own for each
    times["model"] = time.time()

    place = banyan.init(directory=flags.directory)
    state = {"model": model, "optimizer": optimizer, "schedule": schedule, "rng": banyan.Rng()}
    loaded = banyan.load(state)
    step = loaded.step + 1 if loaded else 0
    if loaded and not loaded.own:  # saved by another number of ranks: two might have got the same random numbers
        torch.manual_seed(flags.seed + 1 + rank + 1000003 * step)
    times["restore"] = time.time()
    tell(rank=rank, world=world, pid=os.getpid(), node=platform.node(), begins_at=step, source=loaded.source if loaded else None, times=times)

    every = int(os.environ.get("BANYAN_CKPT_EVERY", 1))  # --train-ckpt=every=
    while step < flags.steps:
        loss = model(*samples(text, device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        mean = loss.detach()
        dist.all_reduce(mean)
        if rank == 0:
            tell(step=step, loss=mean.item() / world, time=time.time())
        if (step + 1) % every == 0:
            saved = banyan.save(step, state, overlap=True)
            if not saved and place.mode in ("job", "directory"):
                print(f"rank {rank}: step {step} is not saved: {saved}", file=sys.stderr, flush=True)
        step += 1
    banyan.finish()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""A training program of one collective: rank 0 prints on which node each rank runs, and for which job."""

import os

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
# Numbers, so that torch needs no numpy: the nodes of the development cluster are n01, n02, ...
own = torch.tensor([dist.get_rank(), int(os.environ["SLURMD_NODENAME"][1:]), int(os.environ["BANYAN_JOB"])])
seen = [torch.zeros_like(own) for _ in range(dist.get_world_size())]
dist.all_gather(seen, own)
if dist.get_rank() == 0:
    print("gathered", *("{}:n{:02}:{}".format(*one.tolist()) for one in seen), flush=True)
dist.destroy_process_group()

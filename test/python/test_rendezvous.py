# SPDX-License-Identifier: BSD-3-Clause
"""Process groups by init_process_group("gloo", init_method="banyan://"), in real processes."""

import os
import socket
import threading
from datetime import timedelta

import daemons
import pytest
import torch
import torch.distributed as dist
from stores import environment, free_port


def start(kept, url="banyan://", seconds=60.0):
    dist.init_process_group("gloo", init_method=url, timeout=timedelta(seconds=seconds))
    return total()


def total():
    """Of one from each rank."""
    ones = torch.ones(1)
    dist.all_reduce(ones)
    return int(ones)


def started(lab, port, world=2, **more):
    """So many ranks in a process group."""
    ranks = [lab.rank(environment(port, rank, world, **more)) for rank in range(world)]
    for rank in ranks:
        rank.say(start)
    assert [rank.hear() for rank in ranks] == [world] * world
    return ranks


def train(kept, folder):
    """All that asks the store for something."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    start(kept)
    rank = dist.get_rank()
    plain = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    plain(torch.ones(2, 4)).sum().backward()
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    ones = torch.ones(1)
    dist.all_reduce(ones, group=pairs[rank // 2])
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    model = torch.nn.Linear(8, 8)
    fully_shard(model, mesh=mesh["dp"])
    model(torch.ones(2, 8)).sum().backward()
    dist.barrier()
    dist.monitored_barrier(timeout=timedelta(seconds=60))
    saved = {"model": model.state_dict(), "of": torch.full((2,), 7.0)}
    dcp.async_save(saved, checkpoint_id=folder).result()
    into = {"model": model.state_dict(), "of": torch.zeros(2)}
    dcp.load(into, checkpoint_id=folder)
    dist.destroy_process_group()
    return int(ones), into["of"].tolist(), os.environ["GLOO_ENABLE_STORE_V2_API"], start(kept)  # and once more in the same process


@pytest.mark.parametrize(("more", "v2"), [({}, "1"), ({"GLOO_ENABLE_STORE_V2_API": "0"}, "0")])
def test_a_training(lab, more, v2):
    port = free_port()
    ranks = [lab.rank(environment(port, rank, 4, **more)) for rank in range(4)]
    for rank in ranks:
        rank.say(train, str(lab.tmp / "dcp"))
    assert [rank.hear() for rank in ranks] == [(2, [7.0, 7.0], v2, 4)] * 4


def test_killed_and_started_again_on_the_same_port(lab):
    port = free_port()
    for _ in range(3):
        for rank in started(lab, port):
            rank.kill()


def fork(kept):
    child = os.fork()
    if child == 0:
        threading.Event().wait()
    return child


def test_a_forked_child_does_not_keep_the_port_of_its_rank(lab):
    port = free_port()
    ranks = started(lab, port)
    children = [rank.run(fork) for rank in ranks]
    for rank in ranks:
        rank.kill()
    try:
        started(lab, port)
    finally:
        for child in children:
            os.kill(child, 9)


def set_a_key(kept):
    dist.distributed_c10d._get_default_store().set("key", "value")


def test_a_rank_of_the_start_before_mixes_in_with_no_other(lab):
    port = free_port()
    rank_0, zombie = started(lab, port)
    rank_0.kill()
    with pytest.raises(AssertionError, match=r"DistNetworkError: rank 1: the store of rank 0 at 127.0.0.1:\d+ is gone .*has rank 0 ended"):
        zombie.run(set_a_key)
    successor = lab.rank(environment(port, 0, 2))
    successor.say(start)
    daemons.until(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0, "it listens")
    with pytest.raises(AssertionError, match="DistStoreError: rank 1 .* refused by .*: rank 0 is another process since, and this one belongs to"):
        zombie.run(set_a_key)
    assert lab.rank(environment(port, 1, 2)).run(start) == successor.hear() == 2


def test_who_belongs_to_another_run_is_refused(lab):
    ours = {"BANYAN_JOB": "7", "BANYAN_STEP": "1", "BANYAN_STEP_RESTART": "2"}
    port = free_port()
    started(lab, port, **ours)
    for wrong in ({"BANYAN_JOB": "8"}, {"BANYAN_STEP": "0"}, {"BANYAN_STEP_RESTART": "1"}, {"WORLD_SIZE": "3"}):
        zombie = lab.rank(environment(port, 1, 2, **ours) | wrong)
        with pytest.raises(AssertionError, match="refused by .* of another run: 'job 7, step 1, restart 2, 2 ranks'"):
            zombie.run(start)
    twin = lab.rank(environment(port, 1, 2, **ours))
    with pytest.raises(AssertionError, match="DistNetworkError: rank 1: timeout: .* within 2 s: rank 1 has joined already"):
        twin.run(start, "banyan://", 2.0)


def test_ranks_that_start_before_rank_0_wait_for_it(lab):
    port = free_port()
    early = lab.rank(environment(port, 1, 2))
    early.say(start)
    lone = lab.rank(environment(port, 0, 2))
    assert lone.run(start) == early.hear() == 2
    with pytest.raises(AssertionError, match=r"Error: rank 0 cannot serve the store at \$MASTER_PORT, \d+: Address already in use"):
        lab.rank(environment(port)).run(start)
    nobody = lab.rank(environment(free_port(), 1, 2))
    with pytest.raises(AssertionError, match=r"did not take this rank within 2 s: .*refused.*MASTER_ADDR"):
        nobody.run(start, "banyan://", 2.0)

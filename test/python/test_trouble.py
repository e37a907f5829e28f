# SPDX-License-Identifier: BSD-3-Clause
"""Trouble with daemons, processes, threads and storage."""

import os
import threading

import pytest
import torch
from states import durable, good, saved

import banyan_ckpt as banyan


def save_unasked(kept):
    banyan.init()
    try:
        banyan.save(9, good())
    except banyan.Error as error:
        return error.code, str(error), banyan.latest(), banyan.load(good()).step, bool(banyan.save(9, good()))
    return None


def test_a_save_before_a_load_is_refused(lab):
    nodes = lab.daemons()
    nodes.open(7)
    first = lab.ranks(nodes, 7)
    first.run(saved)
    first.kill()
    nodes.begin(7, 1)
    code, text, latest, step, ok = lab.ranks(nodes, 7)[0].run(save_unasked)
    assert (code, latest, step, ok) == (-10, 3, 3, True) and "rank 0: save() before load()" in text and "step 3" in text


def without_daemon(kept):
    banyan.init()
    with pytest.raises(banyan.Error, match="rank 0: .*does not begin anew") as caught:
        banyan.load(good())
    with pytest.raises(banyan.Error, match="nothing is saved"):
        banyan.save(1, good())
    return caught.value.code


def test_a_job_whose_daemon_is_gone(lab):
    nodes = lab.daemons()
    nodes.open(7)
    lost = {**nodes.environment(7, 0, 1), "BANYAN_CKPT_SOCKET": str(lab.tmp / "none.sock")}
    assert lab.rank(lost).run(without_daemon) == -2
    unset = {key: value for key, value in lost.items() if key != "BANYAN_CKPT_SOCKET"}
    assert lab.rank(unset).run(without_daemon) == -2
    rank = lab.ranks(nodes, 7)[0]
    rank.run(saved)
    nodes.kill(1)
    said = rank.run(save_four)
    assert said.code == -2 and said.reason


def save_four(kept):
    return banyan.save(4, good())


def off(kept):
    me = banyan.init()
    assert banyan.load(good()) is None
    return me.mode, banyan.save(1, good()).code


def test_a_node_without_checkpoints_says_so(lab):
    rank = lab.rank({"BANYAN_JOB": "7", "BANYAN_CKPT_OFF": "no room"}, lab.tmp / "err")
    assert rank.run(off) == ("off", -2)
    assert "this node has no checkpoints: no room" in (lab.tmp / "err").read_text()


def forked(kept):
    saved(kept)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            banyan.save(4, good())
        except banyan.Error as error:
            os.write(writing, str(error).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    assert banyan.save(4, good())
    return os.read(reading, 4096).decode()


def test_a_forked_child_is_told(lab):
    nodes = lab.daemons()
    nodes.open(7)
    said = lab.ranks(nodes, 7)[0].run(forked)
    assert "forked from rank 0 of job 7" in said and "init()" in said


def threads(kept):
    """Two threads save what each counts itself; a step that comes too late is refused, and the newest holds what it should."""
    saved(kept)
    taken, late, number, lock = [], [], iter(range(10, 200)), threading.Lock()

    def work():
        while True:
            with lock:
                step = next(number, None)
            if step is None:
                return
            state = {"w": torch.full((1000,), float(step)), "step": step}
            try:
                (taken if banyan.save(step, state) else late).append(step)
            except banyan.StateError:
                late.append(step)

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert banyan.wait(max(taken), timeout=30)
    found = banyan.load().state
    assert found["step"] == max(taken) and (found["w"] == max(taken)).all()
    return len(taken), len(late)


def test_two_threads_that_save(lab):
    nodes = lab.daemons()
    nodes.open(7)
    taken, late = lab.ranks(nodes, 7)[0].run(threads)
    assert taken + late == 190 and taken > 0


def read_damaged(kept, directory):
    banyan.init()
    with pytest.raises(banyan.Error) as caught:
        banyan.load(good(), directory=directory)
    state = good()
    state["model"]["a"].zero_()
    assert banyan.load(state, directory=directory, step=1).step == 1
    assert state["model"]["a"].tolist() == list(range(6))
    return str(caught.value)


def test_a_damaged_shard(lab):
    nodes = lab.daemons()
    out = lab.tmp / "out"
    out.mkdir(mode=0o777)
    nodes.open(7, directory=out, flush=1)
    lab.ranks(nodes, 7)[0].run(durable)
    shard = max(out.glob("*/rank-000000.safetensors"))
    with open(shard, "r+b") as file:
        file.seek(-3000, os.SEEK_END)
        file.write(b"\xff" * 2000)
    alone = lab.rank({"BANYAN_LIB": nodes.environment(7, 0, 1)["BANYAN_LIB"]})
    said = alone.run(read_damaged, out)
    assert "rank 0" in said and "step" in said

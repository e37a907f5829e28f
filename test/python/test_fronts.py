# SPDX-License-Identifier: BSD-3-Clause
"""Trainings of each framework that are killed with -9 and go on: their losses are those of one that was left alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import daemons
import pytest

HERE = Path(__file__).parent / "front"


def start(program, folder, environments):
    folder.mkdir(exist_ok=True)
    port = free_port()
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("BANYAN_JOB", "BANYAN_CKPT", "SLURM"))}
    started = []
    for environment in environments:
        rank = environment["RANK"]
        words = {**clean, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "LOCAL_RANK": "0", "NODE_RANK": rank, "GROUP_RANK": rank,
                 "LOCAL_WORLD_SIZE": "1", "LOSSES": str(folder), "HF_HUB_OFFLINE": "1", "ACCELERATE_USE_CPU": "1", "USE_TORCH_XLA": "0", **environment}
        with open(folder / f"out{rank}", "ab") as out:
            started.append(subprocess.Popen([sys.executable, str(HERE / program)], env=words, stdout=out, stderr=out, cwd=folder))
    return started


def free_port():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def lines(folder, rank):
    file = folder / f"rank{rank}"
    text = file.read_text() if file.exists() else ""
    return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]


def ended(started, folder):
    codes = [process.wait(timeout=120) for process in started]
    assert codes == [0] * len(codes), [(folder / f"out{rank}").read_text()[-3000:] for rank in range(len(codes))]


@pytest.mark.parametrize("program", ["train_lightning.py", "train_transformers.py", "train_torchtitan.py", "train_megatron.py"])
def test_killed_and_gone_on(lab, program):
    left_alone, killed = lab.tmp / "alone", lab.tmp / "killed"
    ended(start(program, left_alone, [{"RANK": str(rank), "WORLD_SIZE": "2"} for rank in range(2)]), left_alone)
    nodes = lab.daemons(2)
    nodes.open(7)
    where = [{**nodes.environment(7, rank, 2, rank + 1), "PAUSE": "0.2"} for rank in range(2)]
    first = start(program, killed, where)
    lab.started.append(lambda: [process.kill() for process in first])
    daemons.until(lambda: any(process.poll() is not None for process in first) or all(len(lines(killed, rank)) >= 5 for rank in range(2)),
                  f"five steps: see {killed}")
    assert [process.poll() for process in first] == [None, None], (killed / "out0").read_text()[-3000:]
    for process in first:
        process.kill()
        process.wait()
    nodes.begin(7, 1)
    ended(start(program, killed, [{**one, "PAUSE": "0"} for one in where]), killed)
    for rank in range(2):
        expected, found = lines(left_alone, rank), lines(killed, rank)
        before = [line for line in found if line["pid"] == found[0]["pid"]]
        after = found[len(before):]
        assert after[0]["step"] in (before[-1]["step"], before[-1]["step"] + 1, before[-1]["step"] + 2), "at most the step in flight is lost"
        assert {line["step"]: line["loss"] for line in found} == {line["step"]: line["loss"] for line in expected}
        assert len(after) >= 2 and all(line["saved"].endswith(": ok") for line in found), found

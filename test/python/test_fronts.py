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


def saved_model(kept):
    """A Hugging Face model with tied weights, in storage; what it says of some tokens."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    import banyan_ckpt as banyan
    banyan.init()
    banyan.load(None)
    torch.manual_seed(5)
    kept["model"] = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=8, n_embd=16, n_layer=1, n_head=2)).eval()
    assert banyan.save(1, {"model": kept["model"]}) and banyan.wait(1, "durable", 60)
    return kept["model"](torch.arange(8)[None]).logits.tolist()


def read_back(kept, target):
    """Exported, read by transformers; and into a fresh model by import_from()."""
    import torch
    from transformers import GPT2LMHeadModel

    from banyan_ckpt._export import export
    from banyan_ckpt.dcp import import_from
    kept["model"].config.save_pretrained(target.parent / "config")
    export(target.parent / "out", target, "hf", part="model", config=target.parent / "config")
    fresh = GPT2LMHeadModel(kept["model"].config).eval()
    import_from(fresh.state_dict(), target)
    return [model(torch.arange(8)[None]).logits.tolist() for model in (GPT2LMHeadModel.from_pretrained(target).eval(), fresh)]


def test_a_hugging_face_model_and_back(lab):
    nodes = lab.daemons()
    (lab.tmp / "out").mkdir(mode=0o777)
    nodes.open(7, directory=lab.tmp / "out", flush=1)
    rank = lab.ranks(nodes, 7)[0]
    expected = rank.run(saved_model)
    assert rank.run(read_back, lab.tmp / "hf") == [expected] * 2

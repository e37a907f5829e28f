# SPDX-License-Identifier: BSD-3-Clause
"""Ranks: processes of their own, forked from one that has imported torch, which run functions of a test."""

import multiprocessing
import os
import sys
import traceback
from pathlib import Path

import daemons

sys.path.insert(0, str(Path(__file__).parent))
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["torch", "numpy", "banyan_ckpt._load", "banyan_ckpt._overlap", "torch._dynamo"])


class Failed(AssertionError):
    """What a rank raised: `kind` is the exception's class."""

    def __init__(self, kind, text, trace):
        super().__init__(f"{kind}: {text}\n{trace}")
        self.kind, self.text = kind, text


def _main(environment, pipe, errors):
    descriptor = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(descriptor, 2)
    for name in ("BANYAN_JOB", "BANYAN_CKPT_SOCKET", "BANYAN_CKPT_OFF", "RANK", "WORLD_SIZE"):
        os.environ.pop(name, None)
    os.environ.update(environment)
    import torch
    torch.set_num_threads(1)
    kept = {}
    while True:
        try:
            function, arguments = pipe.recv()
        except EOFError:
            os._exit(0)
        try:
            answer = (True, function(kept, *arguments))
        except BaseException as error:  # noqa: BLE001 the test is told
            answer = (False, (type(error).__name__, str(error), traceback.format_exc()))
        pipe.send(answer)


class Rank:
    """run() calls a function of a module with a dictionary that the rank keeps, and returns what it returns."""

    def __init__(self, environment, errors=os.devnull):
        self.pipe, other = _context.Pipe()
        self.process = _context.Process(target=_main, args=(environment, other, str(errors)))
        self.process.start()
        other.close()

    def say(self, function, *arguments):
        self.pipe.send((function, arguments))

    def hear(self):
        if not self.pipe.poll(daemons.TOO_LONG):
            raise AssertionError(f"no answer of process {self.process.pid}")
        good, answer = self.pipe.recv()
        if not good:
            raise Failed(*answer)
        return answer

    def run(self, function, *arguments):
        self.say(function, *arguments)
        return self.hear()

    def kill(self):
        self.process.kill()
        self.process.join()
        self.pipe.close()


class Ranks:
    """The ranks of a job, in the order of its nodes."""

    def __init__(self, nodes, job, per_node=1, over=None, **environment):
        over = over or list(range(1, nodes.nodes + 1))
        world = per_node * len(over)
        self.errors = nodes.dir / "ranks.err"
        self.all = [Rank({**nodes.environment(job, r, world, over[r // per_node]), **environment}, self.errors) for r in range(world)]

    def __getitem__(self, i):
        return self.all[i]

    def run(self, function, *arguments):
        """On all of them at once; their answers by rank."""
        for rank in self.all:
            rank.say(function, *arguments)
        return [rank.hear() for rank in self.all]

    def kill(self):
        for rank in self.all:
            if rank.process.is_alive():
                rank.kill()

    def printed(self):
        return self.errors.read_text() if self.errors.exists() else ""

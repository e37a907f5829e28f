# SPDX-License-Identifier: BSD-3-Clause
"""The acts of the demo. Each waits for what it wants to see, never for a time, and notes when it saw it."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

from banyan_demo import trainer_log, trainer_processes

SHAPE = "tp=2,pp=2,dp=4"
XID_79 = "NVRM: Xid (PCI:0000:13:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
VICTIM_GPU = 3  # the GPU at 0000:13:00 in scripts/cluster's nodes


class DemoError(Exception):
    """The demo did not see what it waited for."""


def now_ms():
    return time.time() * 1000


def wait_for(what, condition, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise DemoError(f"not seen within {seconds} s: {what}")


class Story:
    def __init__(self, cluster, repository, steps, step_ms):
        """`cluster`: directory of a cluster that is up."""
        self.cluster, self.repository = Path(cluster), Path(repository)
        self.steps, self.step_ms = steps, step_ms
        self.work = self.cluster / "demo"
        self.work.mkdir(exist_ok=True)
        self.events = []  # (epoch ms, text)

    def note(self, at, text):
        self.events.append((at, text))

    def tool(self, *words, check=True, timeout=60):
        """Standard output of one command run in the cluster's environment."""
        done = subprocess.run([self.repository / "scripts/cluster", "exec", "--dir", self.cluster, "--", *map(str, words)],
                              capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
        if check and done.returncode != 0:
            raise DemoError(f"{' '.join(map(str, words))} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    # --- the job ---

    def submit(self, name, nodes, spares, extra=()):
        log = self.work / f"{name}.log"
        log.unlink(missing_ok=True)
        spare_option = [f"--train-spares={spares}"] if spares else []
        out = self.tool("sbatch", "--parsable", f"--job-name={name}", f"--output={log}", "--open-mode=append", "--no-kill",
                        "--requeue", f"-N{nodes}", "--ntasks-per-node=2", "--gres=gpu:8", f"--train-parallel={SHAPE}", *spare_option,
                        f"--train-ckpt=dir={self.work / 'checkpoints' / name},every=1,flush=10", *extra,
                        self.repository / "examples/trainer/job.sh", "--steps", self.steps, "--step-ms", self.step_ms)
        (self.work / "checkpoints" / name).mkdir(parents=True, exist_ok=True)
        return int(out.strip()), log

    def record(self, job):
        """The job as `scontrol show job -o` has it, as a dict."""
        text = self.tool("scontrol", "show", "job", "-o", job)
        fields = {}
        for word in text.split(" "):
            key, mark, value = word.partition("=")
            if mark and key not in fields:
                fields[key] = value
        comment = text.partition(" AdminComment=")[2]
        fields["AdminComment"] = comment.partition(" StdErr=")[0].strip()
        return fields

    def wait_step(self, log, step, seconds=60):
        wait_for(f"training step {step} in {log}", lambda: step in trainer_log.read(log).steps, seconds)

    def wait_end(self, job, log, seconds=90):
        wait_for(f"job {job} to finish", lambda: trainer_log.read(log).finished, seconds)
        return trainer_log.read(log)

    # --- the faults ---

    def incident(self, condition, what, seconds=20):
        def look():
            for one in json.loads(self.tool("banyan-fault", "incidents", "--json")):
                if condition(one):
                    return one
            return None
        return wait_for(f"incident: {what}", look, seconds)

    def kill_ranks(self, job):
        """SIGKILL to every rank at once: the processes die, the nodes are healthy."""
        at = now_ms()
        for pid, _ in trainer_processes.of_job(self.cluster, job).values():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # the step was ending already
        return at

    def gpu_falls_off(self, node):
        at = now_ms()
        with open(self.cluster / "kmsg" / f"{node}.log", "a", encoding="ascii") as file:
            file.write(XID_79 + "\n")
        return at

    def link(self, action, guid, port):
        at = now_ms()
        done = subprocess.run([self.repository / "scripts/cluster", "link", "--dir", self.cluster, action, guid, str(port)],
                              capture_output=True, text=True, timeout=30)
        if done.returncode != 0:
            raise DemoError(f"link {action}: {done.stderr.strip()}")
        return at

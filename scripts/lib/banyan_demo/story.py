# SPDX-License-Identifier: BSD-3-Clause
"""What the acts of the demo are made of: a job, faults, and waiting for what follows. Notes when each was seen."""

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


LONG = 180       # seconds until something counts as not coming: on a busy host all takes its time


class DemoError(Exception):
    """The demo did not see what it waited for."""


def now_ms():
    return time.time() * 1000


def wait_for(what, condition, check=None):
    """Waits until condition() is true, and returns what it returned. check() ends the wait by DemoError; it may take its time."""
    begun = checked = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        now = time.monotonic()
        if now - begun > LONG:
            raise DemoError(f"not seen within {LONG} s: {what}")
        if check and now - checked > 1:
            check()
            checked = time.monotonic()
        time.sleep(0.01)


class Story:
    def __init__(self, cluster, repository, steps, step_ms):
        """`cluster`: directory of a cluster that is up."""
        self.cluster, self.repository = Path(cluster), Path(repository)
        self.steps, self.step_ms = steps, step_ms
        self.work = self.cluster / "demo"
        self.work.mkdir(exist_ok=True)
        self.stop_file = self.work / "stop"
        self.events = []  # (epoch ms, text)

    def note(self, at, text):
        self.events.append((at, text))
        print(text, flush=True)

    def tool(self, *words, check=True, timeout=LONG):
        """Standard output of one command run in the cluster's environment."""
        done = subprocess.run([self.repository / "scripts/cluster", "exec", "--dir", self.cluster, "--", *map(str, words)],
                              capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
        if check and done.returncode != 0:
            raise DemoError(f"{' '.join(map(str, words))} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    # --- the job ---

    def submit(self, name, nodes, spares, train):
        """`train`: the trainer's words on how long. Returns the job id and the file with what the job prints."""
        log = self.work / f"{name}.log"
        log.unlink(missing_ok=True)
        spare_option = [f"--train-spares={spares}"] if spares else []
        out = self.tool("sbatch", "--parsable", f"--job-name={name}", f"--output={log}", "--open-mode=append", "--no-kill",
                        "--requeue", f"-N{nodes}", "--ntasks-per-node=2", "--gres=gpu:8", f"--train-parallel={SHAPE}", *spare_option,
                        f"--train-ckpt=dir={self.work / 'checkpoints' / name},every=1,flush=10",
                        self.repository / "examples/trainer/job.sh", *train, "--step-ms", self.step_ms)
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

    def submit_until_told(self, name, nodes, spares):
        """As submit: trains at least `steps` steps, and on until tell_to_end."""
        self.stop_file.unlink(missing_ok=True)
        return self.submit(name, nodes, spares, ("--steps", self.steps, "--stop-file", self.stop_file))

    def tell_to_end(self):
        self.stop_file.touch()

    def nodes_beside(self, job):
        """Nodes of the cluster that the job does not have, by name."""
        its = set(self.tool("scontrol", "show", "hostnames", self.record(job)["NodeList"]).split())
        return sorted(set(self.tool("sinfo", "-h", "-N", "-o", "%N").split()) - its)

    def wait_step(self, job, log, step):
        wait_for(f"training step {step} in {log}", lambda: max(trainer_log.read(log).steps, default=0) >= step,
                 lambda: self.must_live(job))

    def wait_end(self, job, log):
        wait_for(f"job {job} to finish", lambda: trainer_log.read(log).finished, lambda: self.must_live(job))
        return trainer_log.read(log)

    def must_live(self, job):
        """Nobody waits for a job that has ended otherwise."""
        state = self.record(job)["JobState"]
        if state not in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "COMPLETED"):
            raise DemoError(f"job {job} is {state}")

    def wait_restored(self, job, log, after, count=16):
        """Waits until `count` ranks have restored after `after` (epoch ms) and train again. Returns what they restored."""
        def fresh():
            read = trainer_log.read(log)
            restored = [one for one in read.restored if one["at"] > after]
            trains = len(restored) >= count and any(at > restored[-1]["at"] for _, at in read.step_times)
            return restored if trains else None
        return wait_for(f"{count} ranks restored and training again", fresh, lambda: self.must_live(job))

    # --- the faults ---

    def incident(self, condition, what):
        def look():
            for one in json.loads(self.tool("banyan-fault", "incidents", "--json")):
                if condition(one):
                    return one
            return None
        return wait_for(f"incident: {what}", look)

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
                              capture_output=True, text=True, timeout=LONG)
        if done.returncode != 0:
            raise DemoError(f"link {action}: {done.stderr.strip()}")
        return at

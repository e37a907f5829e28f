# SPDX-License-Identifier: BSD-3-Clause
"""scripts/demo --pytorch: examples/gpt on the cluster, a rank killed and a node lost, its loss curve and where the seconds went."""

import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import python_venv
from banyan_demo import curve, gpt_log
from banyan_demo.acts import heading
from banyan_demo.figures import Figures
from banyan_demo.story import LONG, VICTIM_GPU, DemoError, Story, now_ms, wait_for

WORLD, NODES = 4, 4  # ranks, two a node; nodes of the cluster: those of the job, its spare, and one beside it
STEPS, FEWEST = 200, 60
SUBMISSION = ("-N3", f"--train-parallel=dp={WORLD}", "--train-spares=1")
TASKS = {"job.sh": 2, "torchrun.sh": 1}  # of a node: ranks, or the launcher of two
SOURCES = {"local": "local memory", "peer": "the buddies' memory"}
WHAT = f"""A small GPT (examples/gpt) by PyTorch's DistributedDataParallel, {WORLD} ranks on 2 nodes and a spare, on a real Slurm:
  save     kill -9 of a rank: all restore from their nodes' memory
  heal     a GPU falls off the bus: the node goes, the spare takes its place
  compare  torchrun without Slurm and banyan: the losses have the same bits; the curve as a picture, the seconds by phase"""


def environment():
    """What the training needs besides the caller's environment. Raises DemoError where there is no PyTorch."""
    if not python_venv.is_ready():
        raise DemoError(f"there is no Python with {python_venv.TORCH} in {python_venv.HOME}: scripts/setup makes it")
    package = python_venv.REPOSITORY / "build" / "python"
    try:
        python_venv.package(package)
    except (python_venv.Failed, OSError) as error:
        raise DemoError(f"banyan_ckpt cannot be built: {error}") from None
    return {"PYTHON": str(python_venv.HOME / "bin" / "python"), "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}


class GptStory(Story):
    """A job of examples/gpt."""

    def __init__(self, cluster, repository, steps, parallel="ddp", script="job.sh"):
        super().__init__(cluster, repository, steps, None)
        self.script = script
        self.flags = ("--parallel", parallel, "--steps", str(steps))
        self.folder = self.repository / "examples" / "gpt"
        self.log = self.work / "gpt.log"
        self.marks = []  # (step, what happened)

    def undisturbed(self):
        """The same program by torchrun alone. Returns what it printed."""
        log = self.work / "undisturbed.log"
        with open(log, "w", encoding="utf-8") as out, open(self.work / "undisturbed.err", "w", encoding="utf-8") as errors:
            words = [python_venv.HOME / "bin" / "torchrun", "--standalone", f"--nproc-per-node={WORLD}", self.folder / "train.py",
                     *self.flags]
            done = subprocess.run(words, stdout=out, stderr=errors, stdin=subprocess.DEVNULL, timeout=2 * LONG, check=False)
        read = gpt_log.read(log)
        if done.returncode != 0 or read.newest() != self.steps - 1:
            raise DemoError(f"torchrun ended with {done.returncode} after step {read.newest()}; see {errors.name}")
        return read

    def submit(self):
        """Returns the job's id."""
        self.log.unlink(missing_ok=True)
        place = Path(tempfile.mkdtemp(prefix="checkpoints-", dir=self.work))
        out = self.tool("sbatch", "--parsable", f"--chdir={self.folder}", f"--output={self.log}", "--open-mode=append", "--gres=gpu:8",
                        *SUBMISSION, f"--ntasks-per-node={TASKS[self.script]}", f"--train-ckpt=dir={place},every=1,flush=50",
                        self.folder / self.script, *self.flags)
        return int(out.strip())

    def wait_step(self, job, step):
        wait_for(f"training step {step} in {self.log}", lambda: gpt_log.read(self.log).newest() >= step, lambda: self.must_live(job))

    def wait_completed(self, job):
        wait_for(f"job {job} to finish", lambda: self.record(job)["JobState"] == "COMPLETED", lambda: self.must_live(job))

    def after(self, job, at, what):
        """Waits until the training goes on after the fault at `at` (ms). Returns ({phase: seconds}, steps lost, starts)."""
        starts, step = wait_for(f"a step after the {what}", lambda: gpt_log.resumed(gpt_log.read(self.log), at / 1000, WORLD),
                                lambda: self.must_live(job))
        log, begins = gpt_log.read(self.log), starts[0]["begins_at"]
        before = max(number for number, _, seen in log.steps if seen < min(one["times"]["process"] for one in starts))
        phases = gpt_log.split(at / 1000, starts, step)
        sources = sorted({SOURCES.get(one["source"], str(one["source"])) for one in starts})
        self.note(1000 * max(one["times"]["restore"] for one in starts),
                  f"step {begins - 1} restored on {', '.join(sorted({one['node'] for one in starts}))} from {' and '.join(sources)}")
        self.note(1000 * step[2], f"step {step[0]} is trained")
        self.marks.append((before, f"{what}: {sum(phases.values()):.1f} s to the next step"))
        return phases, max(before + 1 - begins, 0), starts


def rank_killed(story, job):
    heading("Save: kill -9 of one rank while the job trains")
    story.wait_step(job, story.steps // 3)
    victim = gpt_log.read(story.log).ranks()[WORLD - 1]
    at = now_ms()
    os.kill(victim["pid"], signal.SIGKILL)
    story.note(at, f"kill -9 of rank {victim['rank']} on {victim['node']}")
    return story.after(job, at, f"rank {victim['rank']} killed")


def node_lost(story, job):
    heading("Heal: a GPU falls off the bus of a node that trains")
    story.wait_step(job, 2 * story.steps // 3)
    # Not the batch host: the script of the job runs there, and dies with it.
    victim = next(one["node"] for one in gpt_log.read(story.log).ranks().values() if one["node"] != story.record(job)["BatchHost"])
    at = story.gpu_falls_off(victim)
    story.note(at, f"NVRM line in {victim}'s kernel log: Xid 79, GPU {VICTIM_GPU} fell off the bus")
    incident = story.incident(lambda i: i["object"]["kind"] == "gpu" and i["times"].get("node_out_ms"), "the GPU")
    story.note(incident["times"]["incident_ms"], f"faultd [{incident['id']}]: {incident['cause']}, job {job}")
    story.note(incident["times"]["node_out_ms"], f"{victim} is DOWN and out of the job")
    found = story.after(job, at, f"node {victim} lost")
    if victim in {one["node"] for one in found[2]}:
        raise DemoError(f"{victim} still trains")
    return found


def measure(faults, done, reference, seconds, busy):
    """`faults`: {name: what Story.after returned}."""
    figures = Figures(busy)
    for name, (phases, lost, starts) in faults.items():
        figures.add(f"{name}: to the next step", sum(phases.values()), "s", "log")
        for phase, took in phases.items():
            figures.add(f"  {phase}", took, "s", name)
        figures.at_most("  training steps lost", lost, "steps", 1)
        figures.at_most("  ranks that read from storage", sum(one["source"] == "storage" for one in starts), "ranks", 0)
    same = done.losses() == reference.losses() and done.trained_twice_alike()
    figures.add("loss curve equals torchrun's without banyan, bit for bit", int(same), "bool", "undisturbed run", "= 1", same)
    figures.below("demo after set-up", seconds, "s", 240)
    return figures


def play(options, cluster, timeline, busy):
    """`cluster`: runs scripts/cluster; `timeline`: prints a story's. Returns the figures."""
    start = time.monotonic()
    os.environ.update(environment())
    cluster("up", "--dir", options.dir, "--nodes", NODES)
    story = GptStory(options.dir, python_venv.REPOSITORY, options.steps)
    job = story.submit()
    heading(f"Place: job {job}, sbatch {' '.join(SUBMISSION)} --ntasks-per-node=2 job.sh")
    story.wait_step(job, 1)
    print(story.record(job)["AdminComment"], flush=True)
    faults = {"rank killed": rank_killed(story, job), "node lost": node_lost(story, job)}
    story.wait_completed(job)
    done = gpt_log.read(story.log)
    story.note(1000 * done.steps[-1][2], f"finished: {len(done.losses())} steps")
    heading(f"Compare: torchrun --nproc-per-node={WORLD} train.py --steps {story.steps}, without Slurm and without banyan")
    reference = story.undisturbed()
    last = reference.newest()
    print(f"loss of step {last}: {reference.losses()[last]!r}; of the disturbed run: {done.losses().get(last)!r}", flush=True)
    timeline(story, 1000 * done.steps[0][2])
    heading("Loss")
    picture = story.work / "loss.svg"
    picture.write_text(curve.svg(done.losses(), reference.losses(), story.marks), encoding="utf-8")
    print(curve.sketch(done.losses(), story.marks))
    print(f"As a picture: {picture}")
    heading("Figures")
    return measure(faults, done, reference, time.monotonic() - start, busy)


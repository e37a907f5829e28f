# SPDX-License-Identifier: BSD-3-Clause
"""A cluster on which jobs train: starting a job, following it through a fault, and putting all in order again. For recovery_bench.py,
and for test/live."""

import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "test" / "cluster"), str(REPOSITORY / "scripts" / "lib")]

from harness import Cluster, Failure  # noqa: E402
from trouble import Trouble  # noqa: E402
from banyan_cluster import parts  # noqa: E402
from banyan_demo import trainer_log, trainer_processes  # noqa: E402

SHAPE, RANKS, NODES = "tp=2,pp=2,dp=4", 16, 8
STEPS = 1500       # of the run that nothing happens to: more than any other trains before it is ended
STEP_MS = 40
SETTLED = 8        # steps of the new run, until it counts as one that goes on
LIMIT_S = 200      # for a recovery; one that takes longer is none
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE"}


def now_ms():
    return time.time() * 1000


@dataclass
class Training:
    """A job that trains, when the fault comes."""
    job: int
    batch: str               # the node of its script
    ranks: dict              # rank -> (pid, node)
    spares: list
    at_ms: float = 0         # of the fault
    broken: set = field(default_factory=set)  # nodes that are expected to go

    def plain(self):
        """Nodes with ranks and without the script."""
        return sorted({node for _, node in self.ranks.values()} - {self.batch})


@dataclass
class Outcome:
    kind: str
    first_step_s: float = None  # from the fault; None: not within LIMIT_S
    steps_lost: int = 0
    same: bool = False          # the loss of every step, bit for bit
    noticed_s: float = None     # to the first incident about a broken node
    drains: int = 0             # nodes out of service beyond the broken ones
    restarts: int = 0           # of the job, by the queue
    sources: str = ""
    said: str = ""


class Lab:
    def __init__(self, nodes):
        self.cluster = Cluster(nodes=nodes)
        self.cluster.up()
        self.trouble = Trouble(self.cluster)
        self.reference = None

    def remove(self):
        self.cluster.remove()

    # -- jobs --------------------------------------------------------------------------------------------------------------

    def submit(self, spares, steps=100_000, step_ms=STEP_MS, nodes=NODES, shape=SHAPE, ckpt="every=1", options=(), trainer=()):
        folder = self.cluster.dir / "tmp"
        words = [f"-N{nodes + spares}", "--ntasks-per-node=2", "--gres=gpu:8", "--no-kill", "--requeue", "--open-mode=append",
                 f"--train-parallel={shape}", f"--chdir={folder}", f"--output={folder}/slurm-%j.out", *options]
        if ckpt:
            words.append(f"--train-ckpt={ckpt}")
        if spares:
            words.append(f"--train-spares={spares}")
        return int(self.cluster.out("sbatch", "--parsable", *words, REPOSITORY / "examples/trainer/job.sh", "--steps", steps,
                                    "--step-ms", step_ms, *trainer))

    def log(self, job):
        return trainer_log.read(self.cluster.dir / "tmp" / f"slurm-{job}.out")

    def undisturbed(self, steps=STEPS, **options):
        job = self.submit(0, steps, 1, ckpt=None, **options)  # which change nothing in what it computes
        self.cluster.wait_for_job(job, timeout=600)
        self.reference = trainer_log.losses(self.log(job))

    def start(self, spares, step, **options):
        job = self.submit(spares, **options)

        ended = self.has_ended(job)

        def reached():
            if max(self.log(job).steps, default=0) >= step:
                return True
            if state := ended():
                raise Failure(f"job {job} is {state}:\n{self.cluster.output(job)[-2000:]}")
            return False
        self.cluster.wait_for(reached, f"step {step} of job {job}", pause=0.02)
        facts, ranks = self.cluster.job(job), trainer_processes.of_job(self.cluster.dir, job)
        used = {node for _, node in ranks.values()}
        return Training(job, facts["BatchHost"], ranks, [n for n in self.cluster.hosts(facts["NodeList"]) if n not in used])

    def has_ended(self, job, every=1):
        """A look at the state in which a job has ended, if it has; Slurm is asked now and then, for that costs what is measured."""
        state, asked = "", time.monotonic()

        def look():
            nonlocal state, asked
            if not state and time.monotonic() - asked >= every:
                now = self.cluster.job(job).get("JobState", "COMPLETED")
                state, asked = now if now in ENDED else "", time.monotonic()
            return state
        return look

    def saved(self):
        """Slurm saves its jobs seconds after a change, or at once: what was not saved is lost with it, whatever plugin it has."""
        file, now = self.cluster.dir / "ctld" / "job_state", time.time()
        # Any change of any job makes slurmctld save them all; what was to be saved may have been by now. One that has lost a
        # node takes no change any more: another comes and goes, which never starts.
        other = self.cluster.out("sbatch", "--parsable", "--hold", "-N1", "--job-name=saved", "--output=/dev/null", "--wrap=true")
        self.cluster.run("scancel", other)
        self.cluster.wait_for(lambda: file.exists() and file.stat().st_mtime > now, "the jobs are saved")

    def ranks(self, job):
        """{rank: (pid, node)} of what runs now."""
        return trainer_processes.of_job(self.cluster.dir, job)

    def has_left(self, training, nodes):
        """Whether no rank of the job runs on any of the nodes, and all ranks run."""
        ranks = self.ranks(training.job)
        return len(ranks) == RANKS and not {node for _, node in ranks.values()} & set(nodes)

    def follow(self, training, kind):
        """Until the job trains again, or LIMIT_S."""
        out = Outcome(kind)
        before = len(self.log(training.job).starts)
        end, ended = time.monotonic() + LIMIT_S, self.has_ended(training.job)
        while time.monotonic() < end:
            log = self.log(training.job)
            began = [at for at in log.starts if at > training.at_ms]
            if began:
                after = [at for _, at in log.step_times if at > began[-1]]
                if len(after) >= SETTLED and self.has_left(training, training.broken):
                    out.first_step_s = (min(after) - training.at_ms) / 1000
                    break
            if ended():
                break
            time.sleep(0.05)
        log = self.log(training.job)
        losses = trainer_log.losses(log)
        out.steps_lost = log.replayed
        out.same = bool(losses) and all(self.reference.get(step) == bits for step, bits in losses.items())
        out.restarts = int(self.cluster.job(training.job).get("Restarts", 0))
        last = [r["source"] for r in log.restored[-RANKS:]] if len(log.starts) > before - 1 else []
        out.sources = " ".join(f"{name} {last.count(name)}" for name in sorted(set(last)))
        said = [line for line in self.cluster.output(training.job).splitlines() if line.startswith("banyan")]
        out.said = "; ".join(said[-4:])
        about = [i for i in self.trouble.incidents() if i["object"]["node"] in training.broken and
                 i["times"]["incident_ms"] >= training.at_ms - 5]
        if about:
            # The incident has whole milliseconds.
            out.noticed_s = max(0, min(i["times"]["incident_ms"] for i in about) - training.at_ms) / 1000
        out.drains = len(self.out_of_service() - training.broken)
        return out

    # -- nodes -------------------------------------------------------------------------------------------------------------

    def out_of_service(self):
        lines = [line.split() for line in self.cluster.out("sinfo", "-h", "-N", "-o", "%N %T").splitlines()]
        return {name for name, state in lines if state.rstrip("*") not in ("idle", "allocated", "mixed", "completing")}

    def in_order(self):
        """All parts run, all nodes are idle."""
        self.trouble.start_what_ended()
        self.trouble.return_nodes()

        def idle():
            states = set(self.cluster.out("sinfo", "-h", "-o", "%T").split())
            if states != {"idle"} and not states & {"allocated", "mixed", "completing"}:
                self.trouble.return_nodes()
            return states == {"idle"}
        self.cluster.wait_for(idle, "all nodes are idle", timeout=150, pause=0.2)

    def kmsg(self, node, text):
        self.cluster.kmsg(node, text)

    def goes_on(self, job):
        """Whether an incident says so."""
        return any(a["what"] == "job" and a["target"] == str(job) for i in self.trouble.incidents() for a in i["actions"])

    def start_slurmctld(self):
        parts.start_slurmctld(self.trouble.layout)
        # What was saved may be what was before the last job of saved() went.
        self.cluster.run("scancel", "--name=saved", check=False)

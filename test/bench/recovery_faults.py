# SPDX-License-Identifier: BSD-3-Clause
"""The faults of recovery_bench.py. Each is given the lab, a job that trains and dice; it notes the time of the fault and the nodes that
have to go, and returns what has to be undone, if anything."""

import os
import signal
import time
from dataclasses import dataclass
from typing import Callable

from recovery_lab import now_ms


def line(rest):
    return f"NVRM: Xid (PCI:0000:13:00): {rest}"


XID_79 = line("79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.")
XID_95 = line("95, pid=77, name=python3, Uncontained: LTC TAG (0x2,0x1). RST: Yes, D-RST: No")


def strike(lab, job, node, text=XID_79):
    job.broken.add(node)
    job.at_ms = job.at_ms or now_ms()
    lab.kmsg(node, text)


def process(_, job, dice):
    job.at_ms = now_ms()
    os.kill(job.ranks[dice.choice(sorted(job.ranks))][0], signal.SIGKILL)


def xid_79(lab, job, dice):
    strike(lab, job, dice.choice(job.plain()))


def xid_95(lab, job, dice):
    strike(lab, job, dice.choice(job.plain()), XID_95)


def two_at_once(lab, job, dice):
    for node in dice.sample(job.plain(), 2):
        strike(lab, job, node)


def during_recovery(lab, job, dice):
    one, other = dice.sample(job.plain(), 2)
    strike(lab, job, one)
    time.sleep(dice.uniform(0.05, 1.0))
    strike(lab, job, other)


def spare_too(lab, job, dice):
    """The spare dies when it has come in."""
    strike(lab, job, dice.choice(job.plain()))
    time.sleep(dice.uniform(0.3, 1.0))
    strike(lab, job, job.spares[0])


def batch_host(lab, job, _):
    strike(lab, job, job.batch)


def requeued_by_user(lab, job, _):
    job.at_ms = now_ms()
    lab.cluster.run("scontrol", "requeue", job.job)


def slurmctld_restarts(lab, job, dice):
    """It is away for three seconds, with the fault in them."""
    lab.saved()
    lab.trouble.end("slurmctld")
    time.sleep(0.3)
    strike(lab, job, dice.choice(job.plain()))
    time.sleep(3)
    lab.start_slurmctld()


def faultd_restarts(lab, job, dice):
    strike(lab, job, dice.choice(job.plain()))
    time.sleep(dice.uniform(0.002, 0.03))
    lab.trouble.end("faultd-controller")
    time.sleep(1)
    lab.trouble.start_faultd()


def silent_death(lab, job, dice):
    node = dice.choice(job.plain())
    job.broken.add(node)
    job.at_ms = now_ms()
    lab.trouble.power_off(node)


def stop_stepd(job, node):
    """slurmstepd of the step stands still on the node, as when a process below it cannot be ended. Returns how it goes on."""
    rank = next(pid for pid, where in job.ranks.values() if where == node)
    with open(f"/proc/{rank}/stat", encoding="ascii") as file:
        stepd = int(file.read().rpartition(")")[2].split()[1])
    os.kill(stepd, signal.SIGSTOP)

    def go_on():
        try:
            os.kill(stepd, signal.SIGCONT)
        except OSError:
            pass  # it was ended
    return go_on


def hung_stepd(lab, job, dice):
    node = dice.choice(job.plain())
    go_on = stop_stepd(job, node)
    strike(lab, job, node)
    return go_on


def hung_elsewhere(lab, job, dice):
    node, other = dice.sample(job.plain(), 2)
    go_on = stop_stepd(job, other)
    job.broken.add(other)
    strike(lab, job, node)
    return go_on


def hung_and_no_controller(lab, job, dice):
    """The next controller has to know that somebody waits."""
    go_on = hung_elsewhere(lab, job, dice)
    try:
        lab.cluster.wait_for(lambda: lab.goes_on(job.job), f"job {job.job} is said to go on", pause=0.2)
        time.sleep(dice.uniform(0, 15))
        lab.trouble.end("faultd-controller")
        time.sleep(1)
        lab.trouble.start_faultd()
    except BaseException:
        go_on()
        raise
    return go_on


# From the line to the first new step, in seconds; None: no goal is set. A node that dies has no line,
# and one that hangs is given time.
RUNGS = {"in place": 3, "swap": 5, "requeue": 10, "requeue by its user": 10, "slurmctld away": 15, "silence": None, "hung": None, "faults in a row": None}


@dataclass
class Kind:
    inject: Callable
    spares: int
    rung: str
    what: str
    faults: int = 1  # one after the other: each may cost a step

    @property
    def goal_s(self):
        return RUNGS[self.rung]


KINDS = {
    "process": Kind(process, 0, "in place", "a rank's process is killed"),
    "xid-79": Kind(xid_79, 1, "swap", "a GPU falls off the bus"),
    "xid-95": Kind(xid_95, 1, "swap", "a GPU needs a reset"),
    "two-at-once": Kind(two_at_once, 2, "swap", "two GPUs at once, two spares"),
    "during": Kind(during_recovery, 2, "faults in a row", "a second GPU within a second, two spares", 2),
    "spare-too": Kind(spare_too, 1, "faults in a row", "the spare dies when it has come in: requeue", 2),
    "no-spare": Kind(xid_79, 0, "requeue", "no spare, idle nodes"),
    "batch-host": Kind(batch_host, 1, "requeue", "the node of the script"),
    "user": Kind(requeued_by_user, 0, "requeue by its user", "scontrol requeue"),
    "slurmctld": Kind(slurmctld_restarts, 1, "slurmctld away", "slurmctld is away for 3 s at the fault: swap"),
    "faultd": Kind(faultd_restarts, 1, "swap", "the controller ends in the middle, back after 1 s"),
    "silent": Kind(silent_death, 1, "silence", "a node dies without a word: swap"),
    "hung-stepd": Kind(hung_stepd, 1, "hung", "slurmstepd hangs on the node that goes: swap"),
    "hung-other": Kind(hung_elsewhere, 2, "hung", "slurmstepd hangs on another node: it is taken out, too"),
    "hung-faultd": Kind(hung_and_no_controller, 2, "hung", "the same, and the controller is killed while it waits"),
}

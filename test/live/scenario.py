# SPDX-License-Identifier: BSD-3-Clause
"""A row of the table of scenarios (scenarios.py), and lines of the kernel's that rows are made of.

faults    moves (moves.py, log_moves.py) in order, each with its words
culprits  (part that broke, its node, reason, action) of each incident; none other may be opened. The node is one of moves.py, or "-".
          The action is what was done: "down", "drain"; or else what the policy asked for: "seal", "alert", "log"
outcome   "untouched": the same run trains on; "in place": a new step on the same nodes; "swap": a new step without the broken ones;
          "requeue": it runs again, from the queue; "stopped": it ended, and its output says why it is not started again
out       nodes that are out of service at the end: those of the culprits that were taken out, and `also_out` but for `back`
sources   the logs that the incidents have evidence from, where that is what the row is about
"""

from dataclasses import dataclass

from moves import kernel


@dataclass(frozen=True)
class Scenario:
    name: str
    spares: int
    faults: tuple
    culprits: tuple
    outcome: str
    lost: int = 1          # training steps, at most
    also_out: tuple = ()
    back: tuple = ()
    bug: bool = False      # all ranks end with code 3 at step BUG_AT
    quick: bool = False    # in the nightly run, too: the few that are of every kind
    sources: tuple = ()


def xid(rest, gpu=3):
    return f"NVRM: Xid (PCI:0000:{0x10 + gpu:02x}:00): {rest}"


def verdict(number, words):
    return xid(f"154, pid=77, name=python3, GPU recovery action changed from 0x0 (None) to 0x{number} ({words})")


XID_79 = xid("79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.")
XID_95 = xid("95, pid=77, name=python3, Uncontained: LTC TAG (0x2,0x1). RST: Yes, D-RST: No")
XID_48 = xid("48, pid=77, name=python3, An uncorrectable double bit error (DBE) has been detected")
XID_94 = xid("94, pid=77, name=python3, Contained: CE User Channel (0x9). RST: No, D-RST: No")
XID_13 = xid("13, pid=77, name=python3, Graphics SM Warp Exception on (GPC 0, TPC 1, SM 0): Out Of Range Address")
XID_31 = xid("31, pid=77, name=python3, Ch 00000008, MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7fc0_3c000000")
XID_43 = xid("43, pid=77, name=python3, Ch 00000008")
XID_45 = xid("45, pid=77, name=python3, Ch 00000008")


def node_lost(name, spares, line, reason, kind="gpu", **more):
    """One line after which the job has to leave the node."""
    return Scenario(name, spares, ((kernel, "r2", line),), ((kind, "r2", reason, "down"),), "swap" if spares else "requeue", **more)


def heard(name, spares, line, culprit, **more):
    """One line for which no job and no node is touched."""
    return Scenario(name, spares, ((kernel, "r2", line),), (culprit,) if culprit else (), "untouched", **more)


GONE, RESET = "gpu-xid-79", "gpu-reset"

# SPDX-License-Identifier: BSD-3-Clause
"""Moves (moves.py) that are what a program writes into its log: the subnet manager in its vendor's form, UFM, the fabric manager, NCCL."""

import re
import time

from moves import cables


def _write(stage, name, *lines):
    with open(stage.trouble.layout.path("log", name), "a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def _other_end(stage, leaf, port):
    """(id, port) of what the port leads to."""
    sections = stage.trouble.layout.path("fabric", "discovered").read_text().split("\n\n")
    mine = next(text for text in sections if re.search(rf'^Switch\s+\d+ "{leaf}"', text, re.M))
    found = re.search(rf'^\[{port}\]\s*"([^"]+)"\[(\d+)\]', mine, re.M)
    return found[1], int(found[2])


def manager_names(stage, what, times=1):
    """opensm 5: a port that goes down. One process writes the file, in appending mode, and so do we."""
    for leaf, port in cables(stage, what) * times:
        head = time.strftime("%b %d %H:%M:%S 896261 [85BA8640] 0x02 -> ")
        _write(stage, "opensm.log",
               f"{head}osm_pi_rcv_process: Switch 0x{leaf[2:]} MF0;leaf:MQM9790/U1 port {port} changed state from ACTIVE to DOWN")


def ufm_says(stage, what, code, level, words):
    for leaf, port in cables(stage, what):
        peer, other = _other_end(stage, leaf, port)
        ends = f"(Switch:leaf:1/17/1){leaf[2:]}:{port} - (Switch:spine:1/4/2)0x{peer[2:]}:{other}, cable S/N: MT2243VS00123"
        _write(stage, "ufm.log", time.strftime("%Y-%m-%d %H:%M:%S.442 ") + f"[9021] [{code}] {level} [Link] IBPort [Default / Switch: leaf / "
               f"1/17/1] [dev_id: {leaf[2:]}]: " + words.format(ends=ends))


def fabric_manager(stage, who, words):
    _write(stage, f"fabricmanager-{stage.roles[who]}.log", time.strftime("[%b %d %Y %H:%M:%S] [ERROR] [tid 12727] ") + words)


def nccl(stage, who, *warnings):
    """A rank on that node warns. Its job is known by its cgroup, which the agent finds below the node's root."""
    node = stage.roles[who]
    pid = min(pid for pid, where in stage.lab.ranks(stage.job.job).values() if where == node)
    folder = stage.trouble.layout.path("nodes", node, "proc", str(pid))
    folder.mkdir()
    (folder / "cgroup").write_text(f"0::/system.slice/slurmstepd.scope/job_{stage.job.job}/step_0/user/task_0\n")
    _write(stage, f"nccl-{node}.log", *(f"{node}:{pid}:{pid} [0] {warning}" for warning in warnings))

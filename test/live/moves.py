# SPDX-License-Identifier: BSD-3-Clause
"""What a scenario may do to a cluster. Each move is given the stage (the lab, the job that trains, and who is who) and returns what has
to be undone, if anything. Nodes are named by their part in the job: r1, r2 ... have ranks and not the script, `script` has both, s1 ...
are spares, i1 ... are not in the job."""

import os
import signal
import time
from dataclasses import dataclass

from recovery_faults import stop_stepd

from banyan_cluster import fabric, parts


@dataclass
class Stage:
    lab: object
    job: object  # recovery_lab.Training
    roles: dict  # part -> node

    @property
    def trouble(self):
        return self.lab.trouble


def cast(lab, job):
    """Who is who when the job trains."""
    roles = {"script": job.batch}
    inside = {node for _, node in job.ranks.values()} | set(job.spares)
    outside = [node for node in lab.trouble.layout.node_names if node not in inside]
    for letter, nodes in (("r", job.plain()), ("s", sorted(job.spares)), ("i", outside)):
        roles.update({f"{letter}{number}": node for number, node in enumerate(nodes, 1)})
    return Stage(lab, job, roles)


def kernel(stage, who, *lines):
    for line in lines:
        stage.lab.kmsg(stage.roles[who], line)


def everywhere(stage, *lines, times=1):
    """On each node of the job, by many processes of its."""
    for number in range(times):
        for node in {node for _, node in stage.job.ranks.values()}:
            for line in lines:
                stage.lab.kmsg(node, line.replace("pid=77", f"pid={1000 + number}"))


def kill_rank(stage, *who):
    for one in who:
        node = stage.roles[one]
        os.kill(min(pid for pid, where in stage.lab.ranks(stage.job.job).values() if where == node), signal.SIGKILL)


def power_off(stage, who):
    stage.trouble.power_off(stage.roles[who])


def end(stage, *names):
    """Parts by name; "agent r1" and "slurmd r1" for those of a node."""
    for name in names:
        kind, _, who = name.partition(" ")
        if kind == "slurmctld":
            stage.lab.saved()
        stage.trouble.end({"agent": "faultd", "faultd": "faultd-controller"}.get(kind, kind) + (f"-{stage.roles[who]}" if who else ""))


def start(stage, *names):
    for name in names:
        kind, _, who = name.partition(" ")
        if kind == "slurmctld":
            stage.lab.start_slurmctld()
        elif kind == "faultd":
            stage.trouble.start_faultd()
        elif kind == "agent":
            stage.trouble.start_agent(stage.roles[who])
        else:
            parts.start_slurmd(stage.trouble.layout, stage.roles[who])


def kill_ckptd(stage, *who):
    """Its keeper starts it again."""
    for one in who:
        for pid in stage.trouble.checkpoint_daemons(stage.roles[one]):
            os.kill(pid, signal.SIGKILL)


def administrator_drains(stage, who):
    stage.lab.cluster.run("scontrol", "update", f"nodename={stage.roles[who]}", "state=drain", "reason=maintenance tomorrow")


def trains_without(stage, *who):
    """Waits: no move comes before it."""
    nodes = {stage.roles[one] for one in who}
    stage.lab.cluster.wait_for(lambda: stage.lab.has_left(stage.job, nodes), f"job {stage.job.job} trains without {nodes}", timeout=100)
    reached = max(stage.lab.log(stage.job.job).steps)
    stage.lab.cluster.wait_for(lambda: max(stage.lab.log(stage.job.job).steps) > reached + 3, "and goes on", timeout=100)


def repair(stage, who):
    stage.trouble.repair(stage.roles[who])


def hang(stage, who):
    return stop_stepd(stage.job, stage.roles[who])


def requeue(stage):
    stage.lab.cluster.run("scontrol", "requeue", stage.job.job)


# -- the fabric ------------------------------------------------------------------------------------------------------------

def leaves(layout):
    """{id of a leaf switch: [(port, whether it leads to a spine)]}"""
    found, leaf = {}, None
    for line in layout.path("fabric", "discovered").read_text().splitlines():
        if line.startswith("Switch"):
            leaf = line.split('"')[1] if "leaf" in line else None
        elif leaf and line.startswith("["):
            found.setdefault(leaf, []).append((int(line[1:line.index("]")]), "spine" in line))
    return dict(sorted(found.items()))


def cables(stage, what):
    """[(id, port)] of links: `uplink N` of the leaves to the spines, `hca r1 RAIL`, `host r1` with all of its."""
    kind, *words = what.split()
    if kind in ("hca", "host"):
        rails = words[1:] or range(8)
        return [(fabric.node_id(stage.trouble.layout, f"{stage.roles[words[0]]} mlx5_{rail}"), 1) for rail in rails]
    return [[(leaf, port) for leaf, ports in leaves(stage.trouble.layout).items() for port, up in ports if up][int(words[0]) - 1]]


def link_down(stage, what):
    cut = cables(stage, what)

    def heal():
        for node, port in cut:
            fabric.link(stage.trouble.layout, "up", node, port)
    for node, port in cut:
        fabric.link(stage.trouble.layout, "down", node, port)
    return heal


def host_comes_back(stage, who):
    """All links of a host go down, and come up one by one, each seen by the subnet manager before the next."""
    log = stage.trouble.layout.path("log", "opensm.log")
    earlier = {i["id"] for i in stage.trouble.incidents()}

    def mine(closed):
        return any(bool(i["times"]["closed_ms"]) == closed for i in stage.trouble.incidents() if i["id"] not in earlier)
    ports = cables(stage, f"host {who}")
    for node, port in ports:
        fabric.link(stage.trouble.layout, "down", node, port)
    stage.lab.cluster.wait_for(lambda: mine(False), "the host is seen to be lost")
    for node, port in ports:
        swept = log.read_bytes().count(b"SUBNET UP")
        fabric.link(stage.trouble.layout, "up", node, port)
        stage.lab.cluster.wait_for(lambda swept=swept: log.read_bytes().count(b"SUBNET UP") > swept, "the subnet manager has swept")
    stage.lab.cluster.wait_for(lambda: mine(True), "the host is seen to be back")


def leaf_ends(stage, number):
    """A leaf switch: all its links at once."""
    layout, leaf = stage.trouble.layout, list(leaves(stage.trouble.layout))[number - 1]
    fabric.console(layout, f'Unlink "{leaf}"')
    return lambda: fabric.console(layout, f'ReLink "{leaf}"')


def flap(stage, what, times=3):
    """Each time it is seen to be down, and to be up, before the next."""
    earlier = {i["id"] for i in stage.trouble.incidents()}

    def seen(is_open):
        mine = [i for i in stage.trouble.incidents() if i["id"] not in earlier and i["object"]["kind"] in ("link", "hca")]
        return mine and bool(mine[-1]["times"]["closed_ms"]) != is_open
    for _ in range(times):
        heal = link_down(stage, what)
        try:
            stage.lab.cluster.wait_for(lambda: seen(True), "the link is seen to be down")
        finally:
            heal()
        stage.lab.cluster.wait_for(lambda: seen(False), "the link is seen to be up")


def end_opensm(stage):
    stage.trouble.end("opensm")
    return lambda: fabric.start_opensm(stage.trouble.layout)


def pause(_, seconds):
    """Between two moves: what happens meanwhile is what the scenario is about."""
    time.sleep(seconds)

# SPDX-License-Identifier: BSD-3-Clause
"""Trouble that tests and benchmarks make on a cluster of theirs: parts that end, hosts without power, and how all of it is undone."""

import json
import os
import signal

from banyan_cluster import layout as layouts, parts, process

FAULTD = "/usr/libexec/banyan/banyan-faultd"


def _threads(pid):
    """A process that was killed looks ended while threads of it, on their way out, still have its sockets."""
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0


def cut_power(host):
    """Ends whatever runs in that UTS namespace. All of it is stopped first, the oldest before what it has started: nobody is left to
    tell of the end of another, and no rank trains on beside a daemon that has ended."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
            try:
                if os.readlink(f"/proc/{pid}/ns/uts") == host:
                    os.kill(pid, number)
            except OSError:
                continue  # it ended meanwhile


def on_host(host, program):
    """Process ids of a program of banyan's in that UTS namespace."""
    found = []
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            if os.readlink(f"/proc/{pid}/ns/uts") == host and os.path.basename(os.readlink(f"/proc/{pid}/exe")) == program:
                found.append(pid)
        except OSError:
            continue  # it ended meanwhile
    return found


class Trouble:
    """On one cluster (harness.Cluster)."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.layout = layouts.load(cluster.dir)

    def end(self, part, number=signal.SIGKILL):
        pid = self.cluster.parts()[part]
        os.kill(pid, number)
        self.cluster.wait_for(lambda: process.start_time(pid) is None and _threads(pid) <= 1, f"{part} has ended")

    def restart_slurmctld(self, number=signal.SIGKILL):
        self.end("slurmctld", number)
        parts.start_slurmctld(self.layout)
        self.cluster.wait_for(lambda: self.cluster.run("scontrol", "ping", check=False).returncode == 0, "slurmctld answers")

    def host(self, node):
        """The namespace that is the host of that name."""
        return os.readlink(f"/proc/{self.cluster.parts()[f'slurmd-{node}']}/ns/uts")

    def checkpoint_daemons(self, node):
        return on_host(self.host(node), "banyan-ckptd")

    def power_off(self, node):
        """Ends whatever runs on the host of that name, which is a namespace of its own, and its agent first."""
        known, host = self.cluster.parts(), self.host(node)
        if f"faultd-{node}" in known:
            os.kill(known[f"faultd-{node}"], signal.SIGKILL)
        cut_power(host)

    def start_agent(self, node):
        parts.spawn(self.layout, f"faultd-{node}", parts.on_host(node, [
            FAULTD, "agent", "--config", self.layout.path("etc", "banyan.conf"), "--node", node,
            "--log", self.layout.path("log", f"faultd-{node}.log")]))
        self.cluster.wait_for(lambda: node in (parts.connected_agents(self.layout) or set()), f"the agent of {node} is heard")

    def start_faultd(self, heard=None):
        """Until it hears the agents of those nodes; of all, where none are named."""
        child = parts.spawn(self.layout, "faultd-controller", parts.on_host(self.layout.controllers()[0][1], [
            FAULTD, "controller", "--config", self.layout.path("etc", "banyan.conf"), "--node", "controller",
            "--log", self.layout.path("log", "faultd-controller.log")]))

        def hears_all():
            process.complain_if_dead(self.layout, child, "faultd-controller")
            agents = parts.connected_agents(self.layout)
            return agents is not None and set(self.layout.node_names if heard is None else heard) <= agents
        self.cluster.wait_for(hears_all, "every agent is heard")

    def repair(self, node):
        """It has power, and is in service, as after a person has seen to it."""
        registry = process.Registry(self.layout)
        if not registry.alive(f"slurmd-{node}"):
            parts.start_slurmd(self.layout, node)
        if not registry.alive(f"faultd-{node}"):
            self.start_agent(node)

        def serves():
            if not {"DOWN", "DRAIN"} & {state.rstrip("*") for state in self.cluster.node(node)["state"]}:
                return True
            if self.cluster.run("banyan-fault", "resume", node, check=False).returncode != 0:
                self.cluster.run("scontrol", "update", f"nodename={node}", "state=resume", check=False)
            return False
        self.cluster.wait_for(serves, f"{node} is in service", pause=0.2)

    # -- undoing -----------------------------------------------------------------------------------------------------------

    def start_what_ended(self):
        """Parts that do not run any more; those of the fabric excepted."""
        registry = process.Registry(self.layout)
        if not registry.alive("slurmctld"):
            parts.start_slurmctld(self.layout)
        if "faultd-controller" in registry.all() and not registry.alive("faultd-controller"):
            self.start_faultd()
        for node in self.layout.node_names:
            if not registry.alive(f"slurmd-{node}"):
                parts.start_slurmd(self.layout, node)
            if f"faultd-{node}" in registry.all() and not registry.alive(f"faultd-{node}"):
                self.start_agent(node)

    def incidents(self):
        return json.loads(self.cluster.out("banyan-fault", "incidents", "--json"))

    def return_nodes(self):
        """Every node is in service again, no incident is open, and the limits are as at first."""
        for incident in self.incidents():
            if not incident["times"]["closed_ms"]:
                self.cluster.run("banyan-fault", "resume", incident["object"]["node"], check=False)
                self.cluster.run("banyan-fault", "close", incident["id"], check=False)
        for line in self.cluster.out("sinfo", "-h", "-N", "-o", "%N %T").splitlines():
            name, _, state = line.partition(" ")
            if state.rstrip("*").startswith(("down", "drain")):
                self.cluster.run("scontrol", "update", f"nodename={name}", "state=resume", check=False)
        self.cluster.run("banyan-fault", "reset-breaker", check=False)

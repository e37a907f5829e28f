# SPDX-License-Identifier: BSD-3-Clause
"""The parts, in the order in which they start, and the question by which each shows that it works."""

import json
import secrets
import shutil
import subprocess
import threading
import time

from . import ClusterError, fabric, files, namespace
from .process import Registry, clean_environment, complain_if_dead, spawn, wait_until


class Steps:
    """One line per step with its seconds."""

    def __init__(self, quiet=False):
        self.quiet, self.begin = quiet, time.monotonic()

    def run(self, title, function, *arguments):
        start = time.monotonic()
        function(*arguments)
        if not self.quiet:
            print(f"  {title:<58} {time.monotonic() - start:6.2f} s", flush=True)


def run_tool(layout, *command, timeout=20):
    """Runs a tool of the cluster; one that does not answer in time counts as failed with status 124, as timeout(1) has it."""
    words = [str(word) for word in command]
    try:
        return namespace.run(layout, words, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL,
                              env=tool_environment(layout))
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 124, "", f"{words[0]}: no answer within {timeout} s")
    except OSError as error:
        raise ClusterError(f"{words[0]} cannot be started: {error.strerror}; run scripts/setup, and build")
    except ClusterError as error:
        return subprocess.CompletedProcess(words, 127, "", str(error))


def tool_environment(layout):
    env = clean_environment(layout)
    env["PATH"] = f"{layout.path('bin')}:{env['PATH']}"
    return env


def start_base(layout):
    """What a slurmctld alone needs: the names of hosts, the namespace, munged."""
    layout.path("etc", "hosts").write_text(files.hosts(layout))
    namespace.start(layout)
    start_munged(layout)


def start_munged(layout):
    key = layout.path("etc", "munge.key")
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(128))
    run = layout.path("run")
    child = spawn(layout, "munged", ["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={run}/munge.socket",
                                     f"--pid-file={run}/munged.pid", f"--log-file={layout.path('log', 'munged.log')}",
                                     f"--seed-file={run}/munged.seed"])

    def ready():
        complain_if_dead(layout, child, "munged")
        return answers_munged(layout)
    wait_until(ready, 10, "munged answers")


def answers_munged(layout):
    socket = layout.path("run", "munge.socket")
    return socket.exists() and run_tool(layout, "munge", "-S", socket, "-n").returncode == 0


# Each node and each controller has the name of a host of its own, by which Slurm tells controllers apart.
ON_A_HOST_OF_ITS_OWN = """hostname "$1" && shift && exec "$@" """
# One of several has a folder, too, that the others do not see.
WITH_A_FOLDER_OF_ITS_OWN = """mount -t tmpfs own "$1" && shift && exec "$@" """


def start_slurmctld(layout):
    """Every slurmctld, with `up --backup` the one in standby too."""
    for part, _, _ in layout.controllers():
        start_controller(layout, part)


def start_controller(layout, part):
    child = spawn(layout, part, controller_command(layout, part))

    def ready():
        complain_if_dead(layout, child, part)
        return answers_slurmctld(layout, part)
    wait_until(ready, 30, f"{part} answers", pause=0.05)


def controller_command(layout, part="slurmctld", under=(), options=()):
    """The words that start a slurmctld; `under` is a program that runs it. It starts as root and becomes SlurmUser by itself."""
    host = next(name for mine, name, _ in layout.controllers() if mine == part)
    command = [*under, "slurmctld", "-D", "-f", layout.path("etc", "slurm.conf"), *options]
    if layout.backup:
        own = layout.path("run", "own")
        own.mkdir(exist_ok=True)
        # The namespaces, and the mounts in them, end with the process.
        command = ["unshare", "--mount", "sh", "-ec", WITH_A_FOLDER_OF_ITS_OWN, "sh", own, *command, "-L", layout.path("log", f"{part}.log")]
    return on_host(host, command)


def on_host(name, command):
    return ["unshare", "--uts", "sh", "-ec", ON_A_HOST_OF_ITS_OWN, "sh", name, *command]


def answers_slurmctld(layout, part="slurmctld"):
    host = next(name for mine, name, _ in layout.controllers() if mine == part)
    return f" at {host} is UP" in run_tool(layout, "scontrol", "ping", timeout=8).stdout


def start_slurmd(layout, node):
    """Returns the child: the node shows up when slurmctld has heard it."""
    words = ["slurmd", "-D", "-f", layout.path("etc", "slurm.conf")]
    if layout.options.get("sanitizer"):
        # Prolog and epilog start slurmstepd with an environment of their own.
        words += ["-d", files.sanitized(layout, shutil.which("slurmstepd", path=tool_environment(layout)["PATH"]))]
    return spawn(layout, f"slurmd-{node}", on_host(node, [*words, "-N", node]))


def start_slurmds(layout):
    children = {node: start_slurmd(layout, node) for node in layout.node_names}

    def ready():
        for node, child in children.items():
            complain_if_dead(layout, child, f"slurmd-{node}")
        return all(state == "idle" for state in node_states(layout).values())
    wait_until(ready, 60, "all nodes are idle", pause=0.1)


def node_states(layout):
    """{node: state} as sinfo has it; a node that slurmctld does not list is "unknown"."""
    states = dict.fromkeys(layout.node_names, "unknown")
    for line in run_tool(layout, "sinfo", "-h", "-N", "-o", "%N %T").stdout.splitlines():
        name, _, state = line.partition(" ")
        states[name] = state.strip()
    return states


def start_fabric(layout):
    fabric.generate(layout)
    fabric.start_ibsim(layout)
    fabric.start_opensm(layout)
    fabric.discover(layout)


def write_snapshot(layout):
    run = run_tool(layout, "banyan-topo", "snapshot", layout.path("fabric", "discovered"), "-o", layout.path("fabric.snapshot"))
    if run.returncode != 0:
        raise ClusterError(f"banyan-topo snapshot failed: {run.stderr.strip()}")


def start_faultd(layout):
    """The controller, and one agent per node; ready when the controller hears them all."""
    daemon = "/usr/libexec/banyan/banyan-faultd"
    config = layout.path("etc", "banyan.conf")
    children = {"faultd-controller": spawn(layout, "faultd-controller", on_host(layout.controllers()[0][1], [
        daemon, "controller", "--config", config, "--node", "controller", "--log", layout.path("log", "faultd-controller.log")]))}
    for node in layout.node_names:
        part = f"faultd-{node}"
        children[part] = spawn(layout, part, on_host(node, [daemon, "agent", "--config", config, "--node", node, "--log",
                                                            layout.path("log", f"{part}.log")]))

    def ready():
        for part, child in children.items():
            complain_if_dead(layout, child, part)
        agents = connected_agents(layout)
        return agents is not None and set(layout.node_names) <= agents
    wait_until(ready, 30, "the fault daemon hears every agent", pause=0.05)


def connected_agents(layout):
    """The nodes whose agents the controller hears; None when the controller does not answer."""
    run = run_tool(layout, "banyan-fault", "agents", "--json", timeout=8)
    try:
        answer = json.loads(run.stdout)
        agents = answer.get("agents", []) if isinstance(answer, dict) else answer
        return {agent["node"] for agent in agents if agent.get("connected")} if run.returncode == 0 else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def up(layout, steps):
    """Starts everything. The fabric comes up beside munged; slurmctld needs both."""
    failures = []

    def aside():
        try:
            start_fabric(layout)
        except Exception as error:  # reported by the main thread
            failures.append(error)
    files.write_all(layout)
    steps.run("namespace: banyan is installed, hosts have names", namespace.start, layout)
    beside = threading.Thread(target=aside)
    beside.start()
    try:
        steps.run("munged", start_munged, layout)
    finally:
        beside.join()
    if failures:
        raise failures[0]
    steps.run(f"fabric: ibsim, opensm, {layout.nodes} x {layout.gpus} HCAs discovered", lambda: None)
    if layout.snapshot:
        steps.run("fabric snapshot", write_snapshot, layout)
    steps.run(f"slurmctld with select/{layout.select}", start_slurmctld, layout)
    steps.run(f"{layout.nodes} slurmds, all nodes idle", start_slurmds, layout)
    if layout.fault:
        steps.run("fault daemon and its agents", start_faultd, layout)


def status(layout):
    """[(part, pid or None, answer, good)]"""
    registry = Registry(layout)
    rows = []

    def row(part, answer, good):
        pid = registry.alive(part)
        rows.append((part, pid, answer if pid else "not running", bool(pid) and good))
    row("namespace", "holds /usr and /etc/hosts", True)
    munge = bool(registry.alive("munged")) and answers_munged(layout)
    row("munged", "encodes" if munge else "no answer", munge)
    # Without munged Slurm's tools would try for a long time before they give up.
    good = munge and bool(registry.alive("slurmctld")) and answers_slurmctld(layout)
    row("slurmctld", "is up" if good else "no answer", good)
    for part, _, _ in layout.controllers()[1:]:
        spare = munge and bool(registry.alive(part)) and answers_slurmctld(layout, part)
        row(part, "is up" if spare else "no answer", spare)
        good = good or spare
    states = node_states(layout) if good else {}
    for node in layout.node_names:
        state = states.get(node, "unknown")
        row(f"slurmd-{node}", state, not state.startswith(("unk", "down")) and not state.endswith("*"))
    good = bool(registry.alive("ibsim"))
    row("ibsim", "console open" if good else "no answer", good)
    # A client of a simulator that is gone waits for ever.
    good = good and bool(registry.alive("opensm")) and run_tool(layout, layout.path("bin", "sminfo"), timeout=8).stdout.startswith("sminfo:")
    row("opensm", "subnet manager answers" if good else "no answer", good)
    if layout.fault:
        agents = connected_agents(layout) if registry.alive("faultd-controller") else None
        row("faultd-controller", "no answer" if agents is None else f"hears {len(agents)} agents", agents is not None)
        for node in layout.node_names:
            heard = agents is not None and node in agents
            row(f"faultd-{node}", "connected" if heard else "not heard", heard)
    return rows

# SPDX-License-Identifier: BSD-3-Clause
"""Starting, finding and ending the processes of one cluster.

A process belongs to the cluster by evidence, never by its name: it was recorded with its start time, its environment carries
BANYAN_CLUSTER_DIR or this cluster's SLURM_CLUSTER_NAME, it holds a socket bound below the directory or an abstract socket of this
cluster's fabric, it is a daemon of banyan's whose arguments name a file below the directory (a keeper has an empty environment and no
socket with a name, and starts what we end again), or it descends from one that does.
"""

import json
import os
import signal
import subprocess
import time

from . import ClusterError, namespace
from .files import sanitizer_environment

MARKER = "BANYAN_CLUSTER_DIR"
_started = []  # daemons outlive us: a Popen that is dropped would complain about that


def wait_until(condition, timeout, what, pause=0.02):
    """Waits for condition() to be true and returns its value."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= end:
            raise ClusterError(f"{what}: not within {timeout:g} s")
        time.sleep(pause)


def start_time(pid):
    """The kernel's start time of a process, or None when it is gone or a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


class Registry:
    """Which pid each part has. One file per part, so that a part can be added without a lock."""

    def __init__(self, layout):
        self.folder = layout.path("run", "parts")

    def add(self, part, pid):
        self.folder.mkdir(exist_ok=True)
        (self.folder / f"{part}.json").write_text(json.dumps({"pid": pid, "start": start_time(pid)}))

    def all(self):
        parts = {}
        if self.folder.is_dir():
            for file in sorted(self.folder.glob("*.json")):
                try:
                    record = json.loads(file.read_text())
                    parts[file.stem] = (int(record["pid"]), record["start"])
                except (OSError, ValueError, KeyError, TypeError):
                    continue
        return parts

    def alive(self, part):
        pid, start = self.all().get(part, (None, None))
        return pid if pid and start is not None and start_time(pid) == start else None


def clean_environment(layout):
    """The caller's environment without what would lead a tool to another Slurm or fabric, with the marker of this cluster."""
    dropped = ("SLURM_", "SLURMD_", "SLURMCTLD_", "SBATCH_", "SALLOC_", "SRUN_", "SPANK_", "IBSIM_", "SIM_", "OSM_", "BANYAN_")
    env = {key: value for key, value in os.environ.items() if not key.startswith(dropped) and key != "LD_PRELOAD"}
    env[MARKER] = str(layout.dir)
    env["SLURM_CONF"] = str(layout.path("etc", "slurm.conf"))
    env["BANYAN_CONF"] = str(layout.path("etc", "banyan.conf"))
    # Debian keeps the daemons in sbin, which an ordinary user's PATH lacks.
    env["PATH"] = env.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"
    env.update(sanitizer_environment(layout))
    return env


def spawn(layout, part, command, env=None, stdin=subprocess.DEVNULL, cwd=None):
    """Starts a daemon in the foreground form in the cluster's namespace, in a session of its own, and records it."""
    return spawn_outside(layout, part, namespace.inside(layout, command, cwd or layout.dir), env, stdin, cwd)


def spawn_outside(layout, part, command, env=None, stdin=subprocess.DEVNULL, cwd=None):
    with open(layout.path("log", f"{part}.out"), "ab") as output:
        try:
            child = subprocess.Popen([str(word) for word in command], stdin=stdin, stdout=output, stderr=output,
                                     env={**clean_environment(layout), "TMPDIR": str(layout.path("tmp")), **(env or {})}, cwd=str(cwd or layout.dir),
                                     start_new_session=True)
        except OSError as error:
            raise ClusterError(f"{command[0]} cannot be started: {error.strerror}; run scripts/setup")
    Registry(layout).add(part, child.pid)
    _started.append(child)
    return child


def complain_if_dead(layout, child, part):
    """Turns the early end of a daemon into an error with the last lines of its output."""
    if child.poll() is None:
        return
    lines = []
    for name in (f"{part}.out", f"{part}.log"):
        try:
            lines += layout.path("log", name).read_text(errors="replace").splitlines()[-8:]
        except OSError:
            pass
    raise ClusterError(f"{part} ended with status {child.returncode}:\n  " + "\n  ".join(lines or ["(no output)"]))


# -- finding ---------------------------------------------------------------------------------------------------------------

def find(layout):
    """Every process of this cluster: {pid: start time}, without this process and those it descends from."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    spared = _self_and_ancestors()
    recorded = {pid: start for pid, start in Registry(layout).all().values()}
    marks = (f"{MARKER}={layout.dir}".encode(), f"SLURM_CLUSTER_NAME={layout.cluster_name}".encode())
    sockets = _our_sockets(layout)
    found, parents = {}, {}
    for pid in pids:
        start = start_time(pid)
        if start is None or pid in spared:
            continue
        parents[pid] = (_parent(pid), start)
        if recorded.get(pid) == start or _marked(pid, marks) or (sockets and _holds(pid, sockets)) or _serves(pid, layout):
            found[pid] = start
    grown = True
    while grown:
        grown = False
        for pid, (parent, start) in parents.items():
            if pid not in found and parent in found:
                found[pid] = start
                grown = True
    return found


def _self_and_ancestors():
    pids, pid = set(), os.getpid()
    while pid > 0 and pid not in pids:
        pids.add(pid)
        pid = _parent(pid)
    return pids


def _parent(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except OSError:
        return 0


def _marked(pid, marks):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:
        return False
    return any(mark in variables for mark in marks)


def _serves(pid, layout):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            program, *words = file.read().split(b"\0")
    except OSError:
        return False
    return b"/libexec/banyan/" in program and any(word.startswith(f"{layout.dir}/".encode()) for word in words)


def _our_sockets(layout):
    """The inodes of the Unix sockets bound below the directory or under the fabric's abstract names."""
    inodes = set()
    below, abstract = str(layout.dir) + "/", f"@{layout.sockname}:"
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as file:
        for line in file:
            fields = line.split(None, 7)
            if len(fields) == 8 and fields[7].startswith((below, abstract)):
                inodes.add(f"socket:[{fields[6]}]")
    return inodes


def _holds(pid, sockets):
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                if os.readlink(f"/proc/{pid}/fd/{fd}") in sockets:
                    return True
            except OSError:
                continue
    except OSError:
        pass
    return False


# -- ending ----------------------------------------------------------------------------------------------------------------

def signal_all(processes, number):
    for pid, start in processes.items():
        if start_time(pid) == start:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass


def gone(processes):
    return all(start_time(pid) != start for pid, start in processes.items())


def end_parts(layout, parts, grace):
    """TERM to the named parts, and a wait for their end; what stays is left to end_all."""
    registry = Registry(layout).all()
    chosen = {pid: start for name, (pid, start) in registry.items() if name.startswith(parts) and start_time(pid) == start}
    signal_all(chosen, signal.SIGTERM)
    end = time.monotonic() + grace
    while not gone(chosen) and time.monotonic() < end:
        time.sleep(0.02)


def end_all(layout, timeout=30):
    """KILL to whatever is left, until two scans in a row find nothing. Returns how many were ended."""
    ended, clean = set(), 0
    end = time.monotonic() + timeout
    while clean < 2:
        left = find(layout)
        if not left:
            clean += 1
            continue
        clean = 0
        ended |= set(left.items())
        signal_all(left, signal.SIGKILL)
        if time.monotonic() > end:
            names = ", ".join(f"{pid} ({_command(pid)})" for pid in sorted(left))
            raise ClusterError(f"these processes of {layout.dir} do not end: {names}")
        time.sleep(0.02)
    return len(ended)


def _command(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return "?"

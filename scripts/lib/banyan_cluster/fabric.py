# SPDX-License-Identifier: BSD-3-Clause
"""The simulated fabric: ibsim with its console, opensm on the subnet manager's host, and the discovery of both.

The console is a FIFO in the directory. ibsim opens it for reading and writing, so it never sees an end of file (at which it would
burn a core); an answer shows as a new prompt in its output file.
"""

import fcntl
import os
import re
import subprocess

from . import ClusterError, namespace
from .files import preload_library
from .process import clean_environment, complain_if_dead, spawn, wait_until

PROMPT = b"sim> "
SM_HOST = "sm01"


def generate(layout):
    """The netfile, which is in ibnetdiscover's own format."""
    netfile = layout.path("fabric", "net")
    command = ["banyan-topo", "gen", "--nodes", layout.nodes, "--group-size", layout.group_size, "--rails", layout.gpus, "--spines", 4,
               "--links", 2, "--host-prefix", "n", "--host-digits", layout.digits, "--sm-host", SM_HOST, "-o", netfile]
    run = namespace.run(layout, command, capture_output=True, text=True, env=clean_environment(layout))
    if run.returncode != 0:
        raise ClusterError(f"banyan-topo gen failed: {run.stderr.strip()}")


def start_ibsim(layout):
    netfile = layout.path("fabric", "net")
    text = netfile.read_text()
    nodes = len(re.findall(r"^(?:Switch|Ca|Rt)\s", text, re.M))
    switches = len(re.findall(r"^Switch\s", text, re.M))
    ports = sum(int(n) + 1 for n in re.findall(r"^(?:Switch|Ca|Rt)\s+(\d+)", text, re.M))
    console = layout.path("fabric", "console")
    os.mkfifo(console, 0o600)
    fd = os.open(console, os.O_RDWR)
    try:
        child = spawn(layout, "ibsim", ["ibsim", "-s", "-f", layout.path("fabric", "ibsim.out"), "-N", nodes + 64, "-S",
                                        switches + 16, "-P", ports + 1024, netfile],
                      env={"IBSIM_SOCKNAME": layout.sockname}, stdin=fd, cwd=layout.path("fabric"))
    finally:
        os.close(fd)

    def ready():
        complain_if_dead(layout, child, "ibsim")
        return PROMPT in _answers(layout)
    wait_until(ready, 20, "ibsim reads the fabric")


def start_opensm(layout):
    folder = layout.path("fabric", "osm")
    log = layout.path("log", "opensm.log")
    child = spawn(layout, "opensm", ["opensm", "-R", "ftree", "-d2", "-f", log],
                  env={"IBSIM_SOCKNAME": layout.sockname, "SIM_HOST": f"{SM_HOST} mlx5_0", "LD_PRELOAD": preload_library(),
                       "OSM_TMP_DIR": str(folder), "OSM_CACHE_DIR": str(folder)}, cwd=folder)

    def ready():
        complain_if_dead(layout, child, "opensm")
        try:
            return b"SUBNET UP" in log.read_bytes()
        except FileNotFoundError:
            return False
    wait_until(ready, 60, "opensm brings the subnet up")


def discover(layout):
    """ibnetdiscover sees what the netfile holds."""
    output = layout.path("fabric", "discovered")
    with open(output, "wb") as file:
        run = namespace.run(layout, [layout.path("bin", "ibnetdiscover")], stdout=file, stderr=subprocess.PIPE, timeout=120,
                            env=clean_environment(layout))
    pattern = re.compile(rb"^(?:Switch|Ca)\s", re.M)
    seen, wanted = (len(pattern.findall(path.read_bytes())) for path in (output, layout.path("fabric", "net")))
    if run.returncode != 0 or seen != wanted:
        raise ClusterError(f"ibnetdiscover found {seen} of {wanted} records (status {run.returncode}): "
                           f"{run.stderr.decode(errors='replace').strip()[-500:]}")


def _answers(layout):
    try:
        return layout.path("fabric", "ibsim.out").read_bytes()
    except FileNotFoundError:
        return b""


def console(layout, command):
    """One console command; returns ibsim's answer. A lock keeps two callers' answers apart."""
    if len(command) > 120:
        raise ClusterError("ibsim cuts console lines at 127 bytes")
    with open(layout.path("run", "console.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = len(_answers(layout))
        try:
            fd = os.open(layout.path("fabric", "console"), os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            raise ClusterError(f"ibsim's console does not answer ({error.strerror}): is the cluster up?")
        try:
            os.write(fd, command.encode() + b"\n")
        finally:
            os.close(fd)
        wait_until(lambda: PROMPT in _answers(layout)[before:], 10, f"ibsim answers {command!r}")
        answer = _answers(layout)[before:].replace(PROMPT, b"").decode(errors="replace").strip()
    wrong = [line for line in answer.splitlines() if line.startswith("#")]
    if wrong:
        raise ClusterError(f"ibsim refused {command!r}: {' '.join(wrong)}")
    return answer


def node_id(layout, name):
    """The id that ibsim knows ("S-..." or "H-...") for an id, a GUID or a node description."""
    netfile = layout.path("fabric", "net").read_text()
    ids = dict(re.findall(r'^(?:Switch|Ca)\s+\d+\s+"([SH]-[0-9a-f]{16})"\s+#\s*"([^"]*)"', netfile, re.M))
    bare = name.lower().removeprefix("0x")
    for one, description in ids.items():
        if name in (one, description) or bare == one[2:] or bare.rjust(16, "0") == one[2:]:
            return one
        if description.partition(";")[2].partition(":")[0] == name:
            return one
    raise ClusterError(f"the fabric has no node {name!r}: give a GUID, an id such as \"S-fc6a1c0300000040\", or a description "
                       "such as \"n01 mlx5_0\"")


def link(layout, action, name, port):
    if port < 1:
        raise ClusterError(f"a port is a number from 1, not {port}")
    verb = {"down": "Unlink", "up": "ReLink"}[action]
    return console(layout, f'{verb} "{node_id(layout, name)}"[{port}]')

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""placement_quality_slurm.py ASK ANSWER: has real slurmctlds choose nodes for quality_bench's cases.

No slurmd runs: the nodes are CLOUD nodes, and `sbatch --test-only` makes slurmctld run its node selection and say which nodes it
would take; occupied nodes are excluded with -x. topology/tree comes from this machine's Slurm; topology/block with --segment, which
came with Slurm 24.05, from the root of Debian 13 that `scripts/chroot trixie` makes. What is not there is left out, with the reason.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CHOSEN = re.compile(r" on nodes (\S+) in partition")
TRIXIE = Path(os.environ.get("BANYAN_CHROOTS", Path(__file__).resolve().parents[2] / "build/deps/chroot")) / "trixie" / "root"
CONFIG = """ClusterName=quality
SlurmctldHost=localhost
SlurmctldPort={port}
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
TopologyPlugin=topology/{plugin}
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SchedulerType=sched/backfill
SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=-1
NodeName={nodes} CPUs=8 RealMemory=1000 State=CLOUD
PartitionName=train Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=EXCLUSIVE
"""


class Controller:
    """A slurmctld with one fabric; `root` is the folder it is locked into, or empty."""

    def __init__(self, plugin, site, port, root=""):
        self.plugin, self.root = plugin, root
        self.outside = Path(tempfile.mkdtemp(prefix="quality-", dir=f"{root}/tmp"))
        self.folder = Path("/tmp") / self.outside.name
        for name in ("state", "spool"):
            (self.outside / name).mkdir()
        (self.outside / "slurm.conf").write_text(CONFIG.format(port=port, folder=self.folder, plugin=plugin, nodes=site["all"]))
        (self.outside / "cgroup.conf").write_text("CgroupPlugin=disabled\n" if root else "")
        (self.outside / "topology.conf").write_text(tree_conf(site) if plugin == "tree" else block_conf(site))
        self.process = subprocess.Popen(self.command(["slurmctld", "-D", "-f", f"{self.folder}/slurm.conf"]),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def command(self, words):
        setting = ["env", f"SLURM_CONF={self.folder}/slurm.conf", *words]
        if not self.root:
            return setting
        # exec throughout, so that the process to end is slurmctld itself. It looks its host's name up, and the root knows its own alone.
        inside = 'echo trixie >/proc/sys/kernel/hostname && mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
        return ["unshare", "--mount", "--uts", "sh", "-c", inside, self.root, *setting]

    def wait(self):
        end = time.monotonic() + 20
        while time.monotonic() < end and self.process.poll() is None:
            if subprocess.run(self.command(["scontrol", "ping"]), capture_output=True, check=False).returncode == 0:
                return True
            time.sleep(0.1)
        return False

    def ask(self, case):
        words = ["sbatch", "--test-only", "--exclusive", "-N", str(case["nodes"]), "--wrap=true"]
        if case["busy"]:
            words += ["-x", case["busy"]]
        if self.plugin == "block":
            words.append(f"--segment={case['segment']}")
        try:
            done = subprocess.run(self.command(words), capture_output=True, text=True, timeout=20, check=False)
        except subprocess.TimeoutExpired:
            return None
        found = CHOSEN.search(done.stdout + done.stderr)
        return found.group(1) if found else None

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.outside)


def tree_conf(site):
    spine_groups = {}
    lines = []
    for number, group in enumerate(site["groups"]):
        lines.append(f"SwitchName=leaf{number} Nodes={group['nodes']}")
        spine_groups.setdefault(group["spine_group"], []).append(f"leaf{number}")
    for number, leaves in spine_groups.items():
        lines.append(f"SwitchName=spine{number} Switches={','.join(leaves)}")
    if len(spine_groups) > 1:
        lines.append(f"SwitchName=top Switches={','.join(f'spine{number}' for number in spine_groups)}")
    return "\n".join(lines) + "\n"


def block_conf(site):
    """A block for each leaf group; where the groups of a spine group are a power of two, spine groups are a level too."""
    lines = [f"BlockName=block{number} Nodes={group['nodes']}" for number, group in enumerate(site["groups"])]
    in_spine_group = sum(group["spine_group"] == 0 for group in site["groups"])
    sizes = [site["group_size"]]
    if in_spine_group > 1 and in_spine_group & (in_spine_group - 1) == 0 and len(site["groups"]) % in_spine_group == 0:
        sizes.append(site["group_size"] * in_spine_group)
    return "\n".join(lines) + f"\nBlockSizes={','.join(map(str, sizes))}\n"


def version(root):
    words = (["chroot", root] if root else []) + ["slurmctld", "-V"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False)
    except OSError:
        return ""
    return done.stdout.split()[-1] if done.returncode == 0 and done.stdout else ""


def ask_all(plugin, requests, port, root=""):
    there = version(root)
    if os.geteuid() != 0 or not there:
        why = "root is needed" if os.geteuid() != 0 else f"no slurmctld in {root}" if root else "no slurmctld here"
        return {"by": "", "why": why, "nodes": []}
    nodes = [None] * len(requests["cases"])
    for number, site in enumerate(requests["sites"]):
        mine = [i for i, case in enumerate(requests["cases"]) if case["site"] == number]
        if not mine:
            continue
        controller = Controller(plugin, site, port, root)
        try:
            if not controller.wait():
                log = (controller.outside / "slurmctld.log").read_text()[-300:]
                return {"by": "", "why": f"slurmctld does not answer: {log}", "nodes": []}
            for i in mine:
                nodes[i] = controller.ask(requests["cases"][i])
        finally:
            controller.close()
    return {"by": f"slurmctld {there}", "why": "", "nodes": nodes}


def main():
    requests = json.loads(Path(sys.argv[1]).read_text())
    port = 20000 + os.getpid() % 10000
    answer = {"tree": ask_all("tree", requests, port)}
    if (TRIXIE / "usr/sbin/slurmctld").exists():
        answer["block"] = ask_all("block", requests, port + 10000, str(TRIXIE))
    else:
        answer["block"] = {"by": "", "why": f"no Slurm 24.11 in {TRIXIE}: scripts/chroot trixie makes it", "nodes": []}
    Path(sys.argv[2]).write_text(json.dumps(answer))


main()

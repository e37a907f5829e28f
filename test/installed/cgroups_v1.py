# SPDX-License-Identifier: BSD-3-Clause
"""Control groups of version 1 for hosts that are containers: each has its part of every hierarchy of this host. A kernel has them or
has version 2; where it has version 2 the hosts have that, and their Slurm uses none."""

import os
from pathlib import Path

TOP = Path("/sys/fs/cgroup")


def hierarchies():
    """{name: the folder of this process's group}; empty where there is version 2 alone."""
    found = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, names, group = line.split(":", 2)
        name = names.removeprefix("name=")
        if number != "0" and (TOP / name).is_dir():
            found[name] = TOP / name / group.lstrip("/")
    return found if {"freezer", "memory", "devices", "cpuset", "systemd"} <= set(found) else {}


def make(place):
    """Makes the groups of `place`, a relative path. What a process is to call to enter them."""
    members = []
    for name, top in hierarchies().items():
        group = top
        for part in Path(place).parts:
            outer, group = group, group / part
            group.mkdir(exist_ok=True)
            # Without these nobody can enter the group.
            for file in ("cpuset.cpus", "cpuset.mems") if name == "cpuset" else ():
                (group / file).write_text((outer / file).read_text())
        members.append(group / "cgroup.procs")

    def enter():
        for file in members:
            file.write_text("0")
    return enter


def gone(place):
    """Takes the groups away; false while one has a process, which may be about to end."""
    for top in hierarchies().values():
        for folder, _, _ in os.walk(top / place, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                return False
    return True


def mounts():
    """Lines of shell, for the root of a host in whose cgroup namespace they run."""
    lines = ["umount sys/fs/cgroup", "mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup"] if hierarchies() else []
    for name in hierarchies():
        lines += [f"mkdir sys/fs/cgroup/{name}",
                  f"mount -t cgroup -o {'none,name=systemd' if name == 'systemd' else name} cgroup sys/fs/cgroup/{name}"]
    return "".join(f"{line}\n" for line in lines)

# SPDX-License-Identifier: BSD-3-Clause
"""The mount namespace that a cluster lives in. There /usr has banyan installed in it, its plugins in Slurm's own directory, and the
Slurm that the build was made for where that is another than the host's; /etc/hosts knows the cluster's hosts. The host itself sees nothing
of it. A process of ours holds it, the other parts live in it, and every later command joins it. With its last process it is gone, and its
mounts with it."""

import ctypes
import os
import subprocess
from pathlib import Path

from . import ClusterError, installed
from .installed import LOCK

PART = "namespace"
CLONE_NEWNS = 0x00020000

# $1 hosts file, $2 layers of /usr, the uppermost first, $3 lock of the installed tree, $4 what to write when all is mounted. What is mounted below /usr
# would be hidden by the overlay: it is held open meanwhile, and mounted again. Nothing of the host's is ever mounted below a folder of the
# cluster, where `rm -r` would find it.
HOLD = r"""
set -e
exec {tree}<"$3"
flock --shared "$tree"
declare -A held
while read -r _ _ _ _ at _; do
    printf -v at '%b' "$at"
    case $at in /usr/?*) exec {fd}<"$at"; held[$at]=$fd ;; esac
done </proc/self/mountinfo
mount -t overlay -o "ro,lowerdir=$2" banyan /usr
for at in "${!held[@]}"; do echo "$at"; done | sort | while read -r at; do
    mount --no-canonicalize --bind "/proc/self/fd/${held[$at]}" "$at"
done
mount --bind "$1" /etc/hosts
echo mounted >"$4"
exec -a banyan-cluster-namespace sleep infinity
"""


def layers(layout):
    """What /usr is made of: what this cluster leaves out, what is installed, Slurm, names that come first. Below a Slurm of another tree is
    what this system has, without what is in the way of that Slurm."""
    slurm = layout.installed.slurm / "usr"
    parts = [layout.path("left-out", "usr"), layout.installed.usr, slurm, layout.path("first", "usr")]
    return [str(part) for part in (parts if slurm == Path("/usr") else [*parts, layout.path("in-the-way", "usr"), "/usr"])]


def start(layout):
    """Makes the namespace. Returns when everything is mounted."""
    from .process import Registry, complain_if_dead, spawn_outside, wait_until
    if os.geteuid() != 0:
        raise ClusterError("root is needed: Slurm's daemons start the tasks of any user, and the cluster has mounts of its own")
    leave_out(layout)
    clear_the_way(layout)
    name_first(layout)
    ready = layout.path("run", "mounted")
    ready.unlink(missing_ok=True)
    lower = ":".join(layer.replace("\\", "\\\\").replace(":", "\\:") for layer in layers(layout))
    child = spawn_outside(layout, PART, ["unshare", "--mount", "--propagation", "private", "bash", "-c", HOLD, "bash",
                                         layout.path("etc", "hosts"), lower, layout.installed.root / LOCK, ready])

    def mounted():
        try:
            complain_if_dead(layout, child, PART)
        except ClusterError as error:
            raise ClusterError(f"{error}\nThe cluster lives in a mount namespace with an overlay of /usr: the kernel must know overlayfs "
                               "(modprobe overlay), and a container must be allowed to mount (CAP_SYS_ADMIN)")
        return ready.exists()
    wait_until(mounted, 20, "the cluster's mount namespace", pause=0.005)
    return Registry(layout).alive(PART)


def leave_out(layout):
    """A layer that hides what this cluster does without: slurmctld loads every select plugin that it finds."""
    hide(layout, "left-out", filter(None, map(layout.installed.plugin, layout.left_out())))


def clear_the_way(layout):
    """A layer that hides this system's plugins where another tree has a Slurm of another release with a folder of the same name."""
    slurm = layout.installed.slurm
    if slurm == Path("/"):
        return
    plugin = installed.Tree(slurm).plugin("select_cons_tres.so")
    if plugin is None:
        raise ClusterError(f"{slurm} has no select_cons_tres.so below usr/lib: install Slurm there again, or take another build")
    hide(layout, "in-the-way", [os.path.dirname(plugin)])


def hide(layout, layer, places):
    layout.path(layer, "usr").mkdir(parents=True, exist_ok=True)
    for place in places:
        hidden = layout.path(layer, place[1:])
        hidden.parent.mkdir(parents=True, exist_ok=True)
        hidden.unlink(missing_ok=True)
        os.mknod(hidden, 0o020000, os.makedev(0, 0))  # how an overlay is told that a file is not there


def name_first(layout):
    """A layer that has the names of our plugins alone: readdir, in whose order Slurm loads plugins, begins with the lowest. Ours before
    select/cons_tres is what an installed plugin has to stand; in which order a site's file system has them is chance."""
    folder = layout.path("first", "usr")
    folder.mkdir(parents=True, exist_ok=True)
    for place in filter(None, map(layout.installed.plugin, layout.plugins)):
        name = layout.path("first", place[1:])
        name.parent.mkdir(parents=True, exist_ok=True)
        name.touch()


def file_of(layout):
    """The namespace as a path that setns takes, or None: it is gone."""
    from .process import Registry
    registry = Registry(layout)
    # Should its holder be dead, then each part that lives has it open; but controllers of several have their own.
    parts = [PART, *(part for part in registry.all() if not part.startswith("slurmctld"))]
    for part in parts:
        pid = registry.alive(part)
        if pid:
            return f"/proc/{pid}/ns/mnt"
    return None


def inside(layout, words, cwd=None):
    """The words of a command that does the same in the cluster's namespace; raises where there is none."""
    file = file_of(layout)
    if file is None:
        raise ClusterError(f"the mount namespace of the cluster in {layout.dir} is gone: scripts/cluster down, then up")
    return ["nsenter", f"--mount={file}", f"--wdns={cwd or os.getcwd()}", "--", *map(str, words)]


def enter(layout):
    """Takes this process there, its working directory too. For a process that becomes another program: no thread may run yet."""
    file = file_of(layout)
    if file is None:
        raise ClusterError(f"the mount namespace of the cluster in {layout.dir} is gone: scripts/cluster down, then up")
    folder = os.getcwd()
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise ClusterError(f"{file}: {error.strerror}; joining the cluster's namespace needs root")
    if libc.setns(fd, CLONE_NEWNS) != 0:
        raise ClusterError(f"joining the cluster's mount namespace: {os.strerror(ctypes.get_errno())}; it needs root")
    os.close(fd)
    os.chdir(folder)


def run(layout, words, cwd=None, **options):
    """subprocess.run in the namespace."""
    return subprocess.run(inside(layout, words, cwd), **options)

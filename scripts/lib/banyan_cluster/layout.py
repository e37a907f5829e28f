# SPDX-License-Identifier: BSD-3-Clause
"""Paths, names and ports of one cluster. Chosen once at `up`, kept in state.json, read back by every other command."""

import hashlib
import json
import os
import pwd
import socket
from pathlib import Path

from . import ClusterError, installed

REPOSITORY = Path(__file__).resolve().parents[3]
# Slurm appends "/spool/n01/n01_<job>.<step>" for its sockets, which hold 107 bytes.
LONGEST_DIRECTORY = 68
FOLDERS = ("bin", "ctld", "etc", "fabric/osm", "fabric/cli", "first", "kmsg", "left-out", "log", "nodes", "run", "spool", "tmp")
PORTS = range(8000, 20000)  # below those that jobs have for their ranks: another cluster's daemons would stand in their way
SLURM_USER = "slurm"  # whom Debian's package makes


def default_directory(name="cluster", repository=REPOSITORY):
    """Below the repository, but where SlurmUser cannot get there: a clone in /root is usual."""
    if closed_to_others(repository) is None:
        return repository / "build" / name
    return Path("/var/tmp", f"banyan-{name}-{hashlib.sha256(os.fsencode(repository)).hexdigest()[:8]}")


def default_build():
    return Path(os.environ.get("BANYAN_BUILD", REPOSITORY / "build" / "dev"))


class Layout:
    def __init__(self, directory, options=None):
        self.dir = Path(os.path.abspath(directory))
        self.options = dict(options or {})
        self.tag = hashlib.sha256(str(self.dir).encode()).hexdigest()[:8]
        self.cluster_name = f"banyan{self.tag}"
        self.sockname = f"bn{self.tag}"  # prefix of ibsim's abstract sockets

    def __getattr__(self, name):
        try:
            return self.__dict__["options"][name]
        except KeyError:
            raise AttributeError(name) from None

    def path(self, *parts):
        return self.dir.joinpath(*parts)

    @property
    def state_file(self):
        return self.path("state.json")

    @property
    def digits(self):
        return max(2, len(str(self.nodes)))

    @property
    def node_names(self):
        return [f"n{i:0{self.digits}d}" for i in range(1, self.nodes + 1)]

    def node_range(self):
        return f"n[{1:0{self.digits}d}-{self.nodes:0{self.digits}d}]"

    def address(self, node):
        """Not in 127.0, from which installers give a host's own name an address that says nothing about where others reach it."""
        number = int(node.lstrip("n"))
        return f"127.2.{number // 256}.{number % 256}"

    def controllers(self):
        """[(part, host name, address)] of the slurmctlds, the primary first."""
        both = [("slurmctld", "ctl1", "127.1.0.1"), ("slurmctld-backup", "ctl2", "127.1.0.2")]
        return both if self.backup else both[:1]

    @property
    def backup(self):
        return bool(self.options.get("backup"))

    @property
    def installed(self):
        """The installed tree that the cluster runs on."""
        return installed.Tree(self.tree)

    plugins = ("select_cons_tres_banyan.so", "job_submit_banyan.so", "spank_banyan.so")

    def left_out(self):
        """The plugins that do not stand in Slurm's directory, though they are installed."""
        return [] if self.select == "cons_tres_banyan" else ["select_cons_tres_banyan.so"]

    def ports(self):
        """Ports by use: slurmctld, ckptd (the same on all nodes), faultd, and one per slurmd."""
        return {"slurmctld": self.port, "ckptd": self.port + 1, "faultd": self.port + 2, "metrics": self.port + 3,
                "slurmd": self.port + 8}

    def save(self):
        text = json.dumps({"options": self.options}, indent=1)
        temporary = self.path(f".state.{os.getpid()}")
        temporary.write_text(text + "\n")
        os.replace(temporary, self.state_file)


def load(directory):
    """The layout of a cluster that was brought up, or None."""
    layout = Layout(directory)
    try:
        data = json.loads(layout.state_file.read_text())
        layout.options = dict(data["options"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ClusterError(f"{layout.state_file} cannot be read ({error}); remove {layout.dir} after a look into it")
    return layout


def check_directory(directory):
    length = len(os.fsencode(str(directory)))
    if length > LONGEST_DIRECTORY:
        raise ClusterError(f"the directory {directory} is {length} bytes long; the sockets below it allow "
                           f"{LONGEST_DIRECTORY}: choose a shorter one with --dir")
    if any(c.isspace() or c in "%#,\\\"'" for c in str(directory)):
        raise ClusterError(f"the directory {directory} contains a character that slurm.conf cannot hold: "
                           "choose another one with --dir")
    closed = closed_to_others(directory.parent)  # the directory itself is opened
    if closed:
        raise ClusterError(f"the directory {directory} is out of reach for the user {SLURM_USER}, as whom slurmctld runs: {closed} is "
                           "closed to others. Choose another one with --dir, such as /var/tmp/banyan-cluster")


def slurm_user():
    """Who slurmctld is: (uid, gid)."""
    try:
        entry = pwd.getpwnam(SLURM_USER)
    except KeyError:
        raise ClusterError(f"there is no user {SLURM_USER}, as whom slurmctld runs: run scripts/setup; Slurm's package makes him")
    return entry.pw_uid, entry.pw_gid


def closed_to_others(directory):
    """The first folder on the way to it that users other than root cannot pass, or None."""
    for folder in reversed([directory, *directory.parents]):
        if folder.is_dir() and not folder.stat().st_mode & 0o001:
            return folder
    return None


def is_ours(layout):
    """An earlier `up` made the directory."""
    return layout.path(".banyan-cluster").exists()


def check_foreign(layout):
    """Refuses a directory with files that no `up` made, and one that is somebody else's, before anything is written there."""
    if os.path.lexists(layout.dir) and layout.dir.lstat().st_uid != os.geteuid():
        raise ClusterError(f"{layout.dir} belongs to another user, who could change what root runs there: choose another directory with --dir")
    names = {entry.name for entry in layout.dir.iterdir()} - {"lock"} if layout.dir.exists() else set()
    # Looked for after the names: another `up` that works there just now writes its marker before anything else.
    if names and not is_ours(layout):
        raise ClusterError(f"{layout.dir} holds other files: choose another directory with --dir")


def prepare(layout):
    """Clears what an earlier `up` left in the directory, and makes the folders."""
    marker = layout.path(".banyan-cluster")
    layout.dir.mkdir(parents=True, exist_ok=True)
    marker.write_text("Made by scripts/cluster, which clears this directory at every `up`.\n")
    # slurmctld's user and the jobs of other users reach what lies here.
    os.umask(0o022)
    layout.dir.chmod(0o755)
    clear(layout, keep={".banyan-cluster", "lock"})
    for folder in FOLDERS:
        layout.path(folder).mkdir(parents=True)
    uid, gid = slurm_user()
    logs = [layout.path("log", f"{part}.log") for part, _, _ in layout.controllers()]
    for log in logs:
        log.touch()
    for path in (layout.path("ctld"), *logs):
        os.chown(path, uid, gid)


def clear(layout, keep):
    import shutil
    for entry in layout.dir.iterdir():
        if entry.name in keep:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def choose_port(layout):
    """The first port of a free block. Returns (port, reservation): the reservation is an abstract socket that keeps another
    `up` from choosing the same block before this one's daemons are bound; it goes with the process."""
    size = 8 + layout.nodes
    blocks = len(PORTS) // size
    first = int(layout.tag, 16) % blocks
    for attempt in range(blocks):
        port = PORTS.start + ((first + attempt) % blocks) * size
        held = _reserve(port, size)
        if held is None:
            continue
        if all(port_is_free(p) for p in range(port, port + size)):
            return port, held
        for one in held:
            one.close()
    raise ClusterError(f"no {size} free ports in {PORTS.start}-{PORTS.stop - 1}: end what uses them, or ask for fewer --nodes")


def _reserve(port, size):
    # Blocks of clusters with different node counts overlap, so the reservation is made in units of eight ports.
    held = []
    for unit in range(port // 8, (port + size - 1) // 8 + 1):
        one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        held.append(one)
        try:
            one.bind(f"\0banyan-cluster-ports-{unit}")
        except OSError:
            for other in held:
                other.close()
            return None
    return held


def port_is_free(port):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
            return True
        except OSError:
            return False

# SPDX-License-Identifier: BSD-3-Clause
"""The commands of scripts/cluster."""

import argparse
import fcntl
import os
import shlex
import sys
import time
from pathlib import Path

from . import ClusterError, fabric, installed, layout as layouts, namespace, parts, process
from .layout import Layout

PARTS = ("spank", "submit", "snapshot", "fault")  # what `up --without` can leave out


def main(arguments=None):
    options = parse(arguments)
    try:
        return options.command(options) or 0
    except ClusterError as error:
        print(f"scripts/cluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def parse(arguments):
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--dir", default=os.environ.get(process.MARKER, str(layouts.default_directory())),
                        help=f"the cluster's directory (default: $BANYAN_CLUSTER_DIR, else {layouts.default_directory()})")
    parser = argparse.ArgumentParser(prog="scripts/cluster", description="A development cluster on this host: a real Slurm of many "
                                     "nodes, and a real subnet manager on a simulated fabric.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name, function, text):
        sub = commands.add_parser(name, help=text, description=text, parents=[common])
        sub.set_defaults(command=function)
        return sub
    sub = command("up", up, "Start every part and wait until each answers.")
    sub.add_argument("--nodes", type=number(1, 512), default=16, help="how many nodes (default 16)")
    sub.add_argument("--gpus", type=number(1, 16), default=8, help="GPUs and HCAs of a node (default 8)")
    sub.add_argument("--group-size", type=number(1, 32), default=8, help="nodes of a leaf group (default 8)")
    sub.add_argument("--build", default=str(layouts.default_build()), help="the build to take (default: $BANYAN_BUILD, else build/dev)")
    sub.add_argument("--select", choices=("cons_tres_banyan", "cons_tres"), default="cons_tres_banyan", help="the select plugin")
    sub.add_argument("--backup", action="store_true", help="a second slurmctld that stands by")
    sub.add_argument("--slurm-conf", action="append", default=[], metavar="KEY=VALUE", help="a line of slurm.conf, in the place of our own of "
                     "that key; may be given several times")
    sub.add_argument("--without", default="", metavar="PART,...", help="leave out: spank, submit, snapshot, fault")
    sub.add_argument("--sanitizer", default="", metavar="FOLDER", help="the build has the address sanitizer in it: its runtime is loaded "
                     "into Slurm's programs too, and reports go to FOLDER")
    sub.add_argument("--quiet", action="store_true", help="print nothing but errors")
    command("down", down, "End every process of the cluster; its files stay.").add_argument(
        "--purge", action="store_true", help="remove the directory too")
    command("status", status, "Print the parts with their pids and answers.")
    command("shell", shell, "An interactive shell whose tools point at the cluster.")
    command("env", env, "Print that shell's environment as exports, for a shell in the cluster's mount namespace.")
    sub = command("exec", execute, "Run one command in that environment.")
    sub.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    sub = command("link", link, "Break or heal a link of the fabric.")
    sub.add_argument("action", choices=("down", "up"))
    sub.add_argument("node", help="GUID, node id or node description of one end")
    sub.add_argument("port", type=int)
    sub = command("kmsg", kmsg, "Append a line to a node's kernel log.")
    sub.add_argument("node")
    sub.add_argument("text")
    return parser.parse_args(arguments)


def number(low, high):
    def check(text):
        value = int(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"a number from {low} to {high}, not {text}")
        return value
    return check


class Lock:
    """One `up` or `down` at a time in a directory. The kernel lets go of it when its holder dies."""

    def __init__(self, directory):
        self.path = Path(directory) / "lock"

    def __enter__(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.file = open(self.path, "a+")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.file.seek(0)
            holder = self.file.read().strip() or "unknown"
            raise ClusterError(f"another `up` or `down` (process {holder}) works in {self.path.parent}: wait for it")
        self.file.truncate(0)
        self.file.write(str(os.getpid()))
        self.file.flush()

    def __exit__(self, *_):
        self.file.truncate(0)
        self.file.close()


def opened(options):
    layout = layouts.load(options.dir)
    if layout is None:
        raise ClusterError(f"there is no cluster in {os.path.abspath(options.dir)}: scripts/cluster up starts one")
    return layout


def up(options):
    start = time.monotonic()
    if os.geteuid() != 0:
        raise ClusterError("root is needed: Slurm's daemons start the tasks of any user")
    layout = Layout(options.dir)
    layouts.check_directory(layout.dir)
    if not Path(options.build).is_absolute():
        options.build = os.path.abspath(options.build)
    without = {word for word in options.without.split(",") if word}
    unknown = without - set(PARTS)
    if unknown:
        raise ClusterError(f"--without knows {', '.join(PARTS)}, not {', '.join(sorted(unknown))}")
    layout.options = {"nodes": options.nodes, "gpus": options.gpus, "group_size": options.group_size, "build": options.build,
                      "select": options.select, "backup": options.backup, "sanitizer": options.sanitizer and os.path.abspath(options.sanitizer),
                      "slurm_conf": options.slurm_conf, "port": 0, **{part: part not in without for part in PARTS}}
    layouts.check_foreign(layout)
    layout.options["tree"] = str(installed.of(layout.build).root)
    require_installed(layout)
    with Lock(layout.dir):
        running = process.find(layout)
        if running:
            raise ClusterError(f"{len(running)} processes of a cluster in {layout.dir} run already: scripts/cluster down ends them")
        layouts.prepare(layout)
        layout.options["port"], reservation = layouts.choose_port(layout)
        layout.save()
        steps = parts.Steps(options.quiet)
        if not options.quiet:
            print(f"Cluster in {layout.dir}", flush=True)
        try:
            parts.up(layout, steps)
        except BaseException:
            process.end_all(layout)
            raise
        for one in reservation:
            one.close()
    if not options.quiet:
        print(f"Up after {time.monotonic() - start:.1f} s. scripts/cluster shell gives a prompt in it, scripts/cluster down ends it.")
    return 0


def require_installed(layout):
    """Everything that `up` starts is there, before anything is started."""
    tree = layout.installed
    programs = ["banyan-topo", *(["banyan-ckptd"] if layout.spank else []), *(["banyan-faultd", "banyan-fault"] if layout.fault else [])]
    plugins = [f"{name}.so" for name, needed in (("select_cons_tres_banyan", layout.select == "cons_tres_banyan"),
                                                 ("spank_banyan", layout.spank), ("job_submit_banyan", layout.submit)) if needed]
    missing = [name for name in programs if not tree.program(name)] + [name for name in plugins if not tree.plugin(name)]
    if missing:
        raise ClusterError(f"{layout.build} installs no {', '.join(missing)}: scripts/build builds them; --build names another build, "
                           "--without and --select leave parts out")


def down(options):
    layout = layouts.load(options.dir) or Layout(options.dir)
    if not layouts.is_ours(layout):
        # `up` was never there: nothing runs, and nothing is ours to remove but an empty folder.
        if options.purge and layout.dir.is_dir() and not any(layout.dir.iterdir()):
            layout.dir.rmdir()
        return 0
    with Lock(layout.dir):
        process.end_parts(layout, ("slurmctld", "faultd", "opensm"), grace=3)
        process.end_parts(layout, ("slurmd",), grace=2)
        process.end_all(layout)
        verify_nothing_left(layout)
        for name in ("run", "spool", "fabric"):
            for file in layout.path(name).rglob("*") if layout.path(name).is_dir() else ():
                if file.is_socket() or file.is_fifo():
                    file.unlink()
        if options.purge:
            layouts.clear(layout, keep=())
    if options.purge and layout.dir.is_dir() and not any(layout.dir.iterdir()):
        layout.dir.rmdir()
    return 0


def verify_nothing_left(layout):
    left = process.find(layout)
    if left:
        raise ClusterError(f"still running: {', '.join(map(str, left))}")
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        mounts = [line.split()[4] for line in file if line.split()[4].startswith(f"{layout.dir}/")]
    if mounts:
        raise ClusterError(f"still mounted below {layout.dir}: {', '.join(mounts)}; umount them")


def status(options):
    layout = opened(options)
    if os.geteuid() != 0:
        raise ClusterError("root is needed: the parts are asked in the cluster's mount namespace")
    rows = parts.status(layout)
    width = max(len(row[0]) for row in rows)
    print(f"cluster in {layout.dir}: {layout.nodes} nodes, select/{layout.select}, slurmctld on port {layout.ports()['slurmctld']}")
    for part, pid, answer, good in rows:
        print(f"  {part:<{width}}  {pid or '-':>8}  {answer}")
    return 0 if all(row[3] for row in rows) else 1


def environment(layout):
    return parts.tool_environment(layout)


def env(options):
    layout = opened(options)
    print(f"# The names of hosts and banyan's programs are in a mount namespace: nsenter --mount={namespace.file_of(layout) or '(gone)'}")
    for key, value in environment(layout).items():
        if os.environ.get(key) != value:
            print(f"export {key}={shlex.quote(value)}")
    for key in os.environ:
        if key not in environment(layout):
            print(f"unset {key}")


def execute(options):
    layout = opened(options)
    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    if not words:
        raise ClusterError("exec needs a command: scripts/cluster exec -- sinfo")
    return replace(layout, words)


def shell(options):
    layout = opened(options)
    rc = layout.path("etc", "bashrc")
    rc.write_text("[ -r ~/.bashrc ] && . ~/.bashrc\n" + "".join(
        f"export {key}={shlex.quote(value)}\n" for key, value in environment(layout).items()
        if key in ("PATH", "SLURM_CONF", "BANYAN_CONF", process.MARKER)) + "PS1='[banyan] \\w\\$ '\n")
    return replace(layout, ["bash", "--rcfile", str(rc), "-i"])


def replace(layout, words):
    environ = environment(layout)
    namespace.enter(layout)
    try:
        os.execvpe(words[0], words, environ)
    except OSError as error:
        raise ClusterError(f"{words[0]}: {error.strerror}")


def link(options):
    fabric.link(opened(options), options.action, options.node, options.port)


def kmsg(options):
    layout = opened(options)
    if options.node not in layout.node_names:
        raise ClusterError(f"there is no node {options.node!r}: the nodes are {layout.node_range()}")
    with open(layout.path("kmsg", f"{options.node}.log"), "ab") as file:
        file.write(options.text.encode() + b"\n")

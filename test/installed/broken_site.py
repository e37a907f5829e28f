# SPDX-License-Identifier: BSD-3-Clause
"""A host and its site as files, for banyan-doctor: all in a mount, process, UTS and network namespace of its own, with a munged and
commands of Slurm that print what the site says. Well unless a case spoils it."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BANYAN_BUILD", REPOSITORY / "build" / "dev"))

# $1: the case's folder, $2: the host's name, $3: daemons that run (a sleep of that name), then the command. Later files win.
ENTER = r"""
set -e
ip link set lo up
hostname "$2"
for place in /etc /var/lib /usr/libexec; do
    mkdir -p "$1/over$place/upper" "$1/over$place/work"
done
mount -t tmpfs tmpfs "$1/over"
for place in /etc /var/lib /usr/libexec; do
    mkdir -p "$1/over$place/upper" "$1/over$place/work"
    mount -t overlay overlay -o "lowerdir=$place,upperdir=$1/over$place/upper,workdir=$1/over$place/work" "$place"
done
rm -rf /etc/slurm /etc/banyan /var/lib/banyan /usr/libexec/banyan
mount -t tmpfs -o mode=755 tmpfs /run
install -d /run/banyan /var/lib/banyan
cp -a --no-preserve=ownership "$1/files/." /
[ ! -s "$1/before" ] || . "$1/before"
for daemon in $3; do
    cp /bin/sleep "$1/bin/$daemon"
    "$1/bin/$daemon" 600 &
    until [ "$(cat /proc/$!/comm)" = "$daemon" ]; do :; done
done
shift 3
exec "$@"
"""
# Somebody has the TCP ports of the first argument, and nobody answers for a name. Then the command.
LISTEN = """
import json, socket, subprocess, sys
kept = [socket.create_server(("127.0.0.1", port), backlog=64) for port in json.loads(sys.argv[1])]
names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
names.bind(("127.0.0.1", 53))
sys.exit(subprocess.run(sys.argv[2:], check=False).returncode)
"""
SCONTROL = """#!/bin/sh
case "$*" in
--version) cat {0}/version ;;
"show config") cat {0}/config; [ ! -e {0}/silence ] || {{ cat {0}/silence >&2; exit 1; }} ;;
"-o show node") cat {0}/nodes ;;
esac
"""
SRUN = "#!/bin/sh\ncat {0}/help\n"
FAULT = "#!/bin/sh\ncat {0}/agents\n"
VERSION = "22.05.8"


def plugin(file, version):
    """A shared object that says to be a plugin for that release of Slurm, 0x160508."""
    source = f"#include <stdint.h>\nconst uint32_t plugin_version = {version};\n"
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", file], input=source, text=True, check=True)


class Host:
    """n001 of a site of ten nodes with the controller ctl."""

    def __init__(self, shared):
        self.dir = Path(tempfile.mkdtemp(prefix="case-", dir=shared))
        self.shared = shared
        for name in ("files", "bin", "over", "answers", "plugins"):
            (self.dir / name).mkdir()
        self.dir.chmod(0o755)
        for name, text in (("scontrol", SCONTROL), ("srun", SRUN), ("banyan-fault", FAULT)):
            file = self.dir / "bin" / name
            file.write_text(text.format(self.dir / "answers"))
            file.chmod(0o755)
        for name in ("select_cons_tres_banyan", "job_submit_banyan", "spank_banyan"):
            os.link(shared / "right.so", self.plugins / f"{name}.so")
        self.host, self.daemons, self.before, self.env = "n001", "", "", {}
        self.config = {"AuthType": "auth/munge", "JobRequeue": "1", "JobSubmitPlugins": "banyan", "PluginDir": str(self.plugins),
                       "PlugStackConfig": "/etc/slurm/plugstack.conf", "PrologFlags": "Alloc", "SelectType": "select/cons_tres_banyan",
                       "SelectTypeParameters": "CR_CORE_MEMORY", "SLURM_VERSION": VERSION, "SlurmUser": "daemon(1)",
                       "SlurmctldHost[0]": "ctl(127.0.0.1)", "SlurmctldParameters": "(null)"}
        self.nodes = [{"NodeName": f"n{i:03}", "NodeAddr": "127.0.0.1", "NodeHostName": f"n{i:03}", "RealMemory": "1000", "MemSpecLimit": "300",
                       "State": "IDLE"} for i in range(1, 11)]
        self.write("/etc/slurm/slurm.conf", "ClusterName=site\nSlurmctldHost=ctl(127.0.0.1)\nSlurmUser=daemon\n"
                   "SelectType=select/cons_tres_banyan\nSelectTypeParameters=CR_Core_Memory\nJobSubmitPlugins=banyan\nPrologFlags=Alloc\n"
                   f"PluginDir={self.plugins}\nNodeName=n[001-010] NodeAddr=127.0.0.1 RealMemory=1000 MemSpecLimit=300\n"
                   "PartitionName=all Nodes=ALL\n")
        self.write("/etc/slurm/plugstack.conf", "include plugstack.conf.d/*.conf\n")
        self.write("/etc/slurm/plugstack.conf.d/banyan.conf", "optional spank_banyan.so config=/etc/banyan/banyan.conf\n")
        self.write("/etc/banyan/banyan.conf", f'[munge]\nsocket = "{shared}/munge"\n[ckptd]\nmemory_limit = "200M"\nport = 5710\n'
                   '[fault]\ncontroller = "localhost"\nport = 5720\ndry_run = false\n')
        self.write("/usr/libexec/banyan/banyan-ckptd", "#!/bin/sh\n")
        self.file("/usr/libexec/banyan/banyan-ckptd").chmod(0o755)
        shutil.copy(shared / "snapshot", self.file("/var/lib/banyan/fabric.snapshot"))
        self.answer("version", f"slurm-wlm {VERSION}\n")
        self.answer("help", "      --train-parallel=SPEC\n")
        self.answer("agents", json.dumps({"agents": [{"node": node["NodeName"], "connected": True} for node in self.nodes]}))
        self.listen = [5720]

    @property
    def plugins(self):
        return self.dir / "plugins"

    def file(self, path):
        out = self.dir / "files" / path.lstrip("/")
        out.parent.mkdir(parents=True, exist_ok=True)
        return out

    def write(self, path, text):
        self.file(path).write_text(text)

    def change(self, path, old, new):
        text = self.file(path).read_text()
        if old not in text:
            raise AssertionError(f"{old!r} is not in {path}")
        self.write(path, text.replace(old, new))

    def remove(self, path):
        self.file(path).unlink()

    def answer(self, name, text):
        (self.dir / "answers" / name).write_text(text)

    def silent(self, why="slurm_load_ctl_conf error: Unable to contact slurm controller (connect failure)"):
        self.config = {}
        self.answer("silence", why + "\n")

    def doctor(self, *options, seconds=100):
        """(exit code, findings as "verdict subject: what | fix", the answer)"""
        self.answer("config", "Configuration data as of 2026-11-22T04:00:00\n" * bool(self.config) +
                    "".join(f"{key:<24}= {value}\n" for key, value in self.config.items()))
        self.answer("nodes", "".join(" ".join(f"{key}={value}" for key, value in node.items()) + "\n" for node in self.nodes))
        (self.dir / "before").write_text(self.before)
        done = subprocess.run(["unshare", "--mount", "--pid", "--uts", "--net", "--fork", "--mount-proc", "--kill-child", "sh", "-c", ENTER,
                               "sh", self.dir, self.host, self.daemons, "python3", "-c", LISTEN, json.dumps(self.listen), BUILD / "bin" / "banyan-doctor", "--json",
                               *options], text=True, timeout=seconds, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              env={"PATH": f"{self.dir}/bin:/usr/sbin:/usr/bin:/sbin:/bin", **self.env})
        if done.returncode not in (0, 1) or not done.stdout.startswith("{"):
            raise AssertionError(f"banyan-doctor ended with {done.returncode}: {done.stdout}{done.stderr}")
        told = json.loads(done.stdout)
        return done.returncode, [f"{f['verdict']} {f['subject']}: {f['what']} | {f['fix']}" for f in told["findings"]], told

# SPDX-License-Identifier: BSD-3-Clause
"""The text of every file that the parts read: slurm.conf, gres.conf, plugstack.conf, banyan.conf, the simulated nodes' files, and
the wrappers that lead the fabric's tools to the simulator."""

import glob
import os
import shutil
import subprocess

from . import ClusterError
from .layout import SLURM_USER

FABRIC_TOOLS = ("ibnetdiscover", "iblinkinfo", "ibqueryerrors", "perfquery", "ibswitches", "ibhosts", "ibstat", "sminfo", "saquery",
                "smpquery", "ibtracert", "ibportstate", "dump_lfts", "dump_fts")


def preload_library():
    for hit in sorted(glob.glob("/usr/lib/*/umad2sim/libumad2sim.so")):
        return hit
    raise ClusterError("ibsim's client library is not installed: run scripts/setup")


def sanitizer_environment(layout):
    """What loads the sanitizers' runtime into programs that load our plugins, and leads reports into the folder of `up --sanitizer`.
    Slurm leaks, and its programs are not linked against the runtime; both are its own matter."""
    folder = layout.options.get("sanitizer")
    if not folder:
        return {}
    runtime = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout.strip()
    forks = os.path.join(layout.build, "lib", "fork_safe_malloc.so")  # says itself what it is for
    preloaded = [forks] if os.path.exists(forks) else []
    return {"LD_PRELOAD": " ".join([*preloaded, os.path.realpath(runtime)]),
            "ASAN_OPTIONS": f"log_path={folder}/asan:log_exe_name=1:detect_leaks=0:handle_abort=1:detect_stack_use_after_return=0"
                            ":verify_asan_link_order=0",
            "UBSAN_OPTIONS": f"log_path={folder}/ubsan:log_exe_name=1:print_stacktrace=1"}


def sanitized(layout, program):
    """The program itself, or with `up --sanitizer` a wrapper for one that is started with an environment of somebody else's choice."""
    variables = sanitizer_environment(layout)
    if not variables:
        return program
    wrapper_file = layout.path("bin", f"sanitized-{os.path.basename(program)}")
    exports = "".join(f"export {key}='{value}'\n" for key, value in variables.items())
    wrapper_file.write_text(f"#!/bin/sh\n{exports}exec {program} \"$@\"\n")
    wrapper_file.chmod(0o755)
    return str(wrapper_file)


def controller_conf(layout, topology="none"):
    """Lines of slurm.conf that each slurmctld of ours needs, with or without slurmds."""
    ports = layout.ports()
    return [
        f"ClusterName={layout.cluster_name}",
        *controller_lines(layout),
        f"SlurmctldPort={ports['slurmctld']}",
        f"SlurmdPort={ports['slurmd']}",
        "AuthType=auth/munge",
        "CredType=cred/munge",
        f"AuthInfo=socket={layout.path('run', 'munge.socket')}",
        f"SlurmUser={SLURM_USER}",
        "SlurmdUser=root",
        f"StateSaveLocation={layout.path('ctld')}",
        f"SlurmctldLogFile={layout.path('log', 'slurmctld.log')}",
        "SlurmctldDebug=info",
        f"MailProg={shutil.which('true')}",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "MpiDefault=none",
        "SwitchType=switch/none",
        f"TopologyPlugin=topology/{topology}",
        f"SelectType=select/{layout.select}",
        "PriorityType=priority/basic",
        f"PlugStackConfig={layout.path('etc', 'plugstack.conf')}",
        *(["JobSubmitPlugins=banyan"] if layout.submit else []),
    ]


def cloud_conf():
    """Lines of slurm.conf for nodes in State=CLOUD, which need no slurmd and are never given back."""
    true = shutil.which("true")
    return [f"SuspendProgram={true}", f"ResumeProgram={true}", "SuspendTime=864000", "ResumeTimeout=64000", "SuspendTimeout=1"]


def slurm_conf(layout):
    first = layout.ports()["slurmd"]
    lines = [
        *controller_conf(layout),
        f"SlurmdSpoolDir={layout.path('spool')}/%n",
        f"SlurmdPidFile={layout.path('run')}/slurmd-%n.pid",
        f"SlurmdLogFile={layout.path('log')}/slurmd-%n.log",
        "SlurmdDebug=info",
        "JobAcctGatherType=jobacct_gather/none",
        "SelectTypeParameters=CR_Core",
        "GresTypes=gpu",
        "SchedulerType=sched/backfill",
        "SchedulerParameters=permit_job_expansion,batch_sched_delay=0,sched_interval=2,bf_interval=2,sched_min_interval=0",
        "ReturnToService=2",
        "SlurmdTimeout=30",
        "KillWait=5",
        "EpilogMsgTime=1",
        "SlurmdParameters=config_overrides",
        "PropagateResourceLimits=NONE",
        "PrologFlags=Alloc",
    ]
    for index, name in enumerate(layout.node_names):
        lines.append(f"NodeName={name} Port={first + index} CPUs={max(8, layout.gpus)} RealMemory=1000 Gres=gpu:{layout.gpus} State=UNKNOWN")
    lines.append("PartitionName=train Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=EXCLUSIVE")
    own = layout.options.get("slurm_conf", [])
    replaced = {line.partition("=")[0] for line in own}
    return "\n".join([*(line for line in lines if line.partition("=")[0] not in replaced), *own]) + "\n"


def controller_lines(layout):
    if not layout.backup:
        return [f"SlurmctldHost={layout.controllers()[0][1]}", f"SlurmctldPidFile={layout.path('run', 'slurmctld.pid')}"]
    return [
        *(f"SlurmctldHost={name}" for _, name, _ in layout.controllers()),
        # Both listen on the same port, each on the address that /etc/hosts gives its name.
        "CommunicationParameters=NoCtldInAddrAny",
        # A slurmctld ends the one that it finds in its pid file: each sees a file of its own there.
        f"SlurmctldPidFile={layout.path('run', 'own')}/slurmctld.pid",
        # How long the backup waits for a sign of life. Below 4 the primary would give them without a pause.
        "SlurmctldTimeout=6",
    ]


def hosts(layout):
    """/etc/hosts of the cluster: its hosts by name, then what this host knows."""
    own = [(name, address) for _, name, address in layout.controllers()]
    own += [(name, layout.address(name)) for name in layout.node_names]
    with open("/etc/hosts", encoding="utf-8", errors="surrogateescape") as file:
        return "".join(f"{address} {name}\n" for name, address in own) + file.read()


def gres_conf(layout):
    return "".join(f"NodeName={name} Name=gpu File={layout.path('nodes', name, 'dev')}/nvidia[0-{layout.gpus - 1}]\n"
                   for name in layout.node_names)


def plugstack_conf(layout):
    if not layout.spank:
        return "# spank_banyan.so is left out of this cluster\n"
    words = ["optional", "spank_banyan.so", f"config={layout.path('etc', 'banyan.conf')}", f"ckptd_log={layout.path('log')}/ckptd-%n.log"]
    if layout.options.get("sanitizer"):
        words.append(f"ckptd={sanitized(layout, '/usr/libexec/banyan/banyan-ckptd')}")
    return " ".join(words) + "\n"


def banyan_conf(layout):
    ports = layout.ports()
    controller = layout.controllers()[0][1]
    d = layout.dir
    return f"""# Written by scripts/cluster.
[munge]
socket = "{d}/run/munge.socket"

[topo]
snapshot = "{d}/fabric.snapshot"
avoid = "{d}/avoid.links"

[ckptd]
socket = "{d}/run/ckptd-%n.sock"
port = {ports['ckptd']}
memory_limit = "8G"

[fault]
controller = "{controller}"
port = {ports['faultd']}
bind = "{controller}"
socket = "{d}/run/faultd.sock"
agent_socket = "{d}/run/agent-%n.sock"
dry_run = false
history = "{d}/incidents.db"
opensm_log = "{d}/log/opensm.log"
ufm_log = "{d}/log/ufm.log"
logs = ["fabric-manager:{d}/log/fabricmanager-%n.log", "nccl:{d}/log/nccl-%n.log"]
kmsg = "{d}/kmsg/%n.log"
kmsg_trust = "injected"
root = "{d}/nodes/%n"
fabric_dump_command = ["{d}/bin/ibnetdiscover"]
sm_probe_command = ["{d}/bin/sminfo"]
"""


def wrapper(layout, tool, target, host):
    """A wrapper, since LD_PRELOAD must not reach a process that is no client of the simulator. The client writes ./sys-PID."""
    return f"""#!/bin/sh
# {tool} on the simulated fabric. Runs in a folder of its own, since a client of the simulator writes to its working directory.
export IBSIM_SOCKNAME={layout.sockname} BANYAN_CLUSTER_DIR={layout.dir}
[ -n "$SIM_HOST" ] || SIM_HOST="{host}"
export SIM_HOST
cd {layout.path('fabric', 'cli')} || exit 1
LD_PRELOAD={preload_library()} exec {target} "$@"
"""


def write_all(layout):
    etc = layout.path("etc")
    (etc / "hosts").write_text(hosts(layout))
    (etc / "slurm.conf").write_text(slurm_conf(layout))
    (etc / "gres.conf").write_text(gres_conf(layout))
    (etc / "plugstack.conf").write_text(plugstack_conf(layout))
    (etc / "banyan.conf").write_text(banyan_conf(layout))
    write_nodes(layout)
    write_wrappers(layout)


def write_nodes(layout):
    """Each node's GPUs as plain files: the devices that gres.conf names, and what the driver says about them. Logs that nobody writes but
    a test."""
    layout.path("log", "ufm.log").touch()
    for node_index, name in enumerate(layout.node_names):
        layout.path("spool", name).mkdir()
        layout.path("kmsg", f"{name}.log").touch()
        for program in ("fabricmanager", "nccl"):
            layout.path("log", f"{program}-{name}.log").touch()
        devices = layout.path("nodes", name, "dev")
        devices.mkdir(parents=True)
        for gpu in range(layout.gpus):
            (devices / f"nvidia{gpu}").touch()
            bus = f"0000:{0x10 + gpu:02x}:00.0"
            folder = layout.path("nodes", name, "proc", "driver", "nvidia", "gpus", bus)
            folder.mkdir(parents=True)
            (folder / "information").write_text(
                "Model: \t\t NVIDIA H100 80GB HBM3\n"
                f"IRQ:   \t\t {100 + gpu}\n"
                f"GPU UUID: \t GPU-{node_index + 1:08x}-0000-0000-0000-{gpu:012x}\n"
                "Video BIOS: \t 96.00.00.00.01\n"
                "Bus Type: \t PCIe\n"
                "DMA Size: \t 52 bits\n"
                f"Bus Location: \t {bus}\n"
                f"Device Minor: \t {gpu}\n"
                "GPU Excluded:\t No\n")


def write_wrappers(layout):
    folder = layout.path("bin")
    for tool in FABRIC_TOOLS:
        target = shutil.which(tool, path="/usr/sbin:/usr/bin:/sbin:/bin")
        if target:
            file = folder / tool
            file.write_text(wrapper(layout, tool, target, f"{layout.node_names[0]} mlx5_0"))
            file.chmod(0o755)


# SPDX-License-Identifier: BSD-3-Clause
"""What a site's files and jobs say."""

import secrets
import shutil
import socket

BANYAN, PLAIN = "select/cons_tres_banyan", "select/cons_tres"
# Runs a step for every file that appears, until "end" does: srun's options stand in the file.
STEPS_ON_DEMAND = """#!/bin/bash
for name in $(seq 1 100); do
    until [ -e go-$SLURM_JOB_ID-$name ] || [ -e go-$SLURM_JOB_ID-end ]; do sleep 0.05; done
    [ -e go-$SLURM_JOB_ID-end ] && exit 0
    srun $(cat go-$SLURM_JOB_ID-$name) bash -c "echo rank $name "'$SLURM_PROCID $SLURMD_NODENAME'
    echo "step $name ended with $?"
done
"""


def free_ports(count):
    """The first of so many in a row that nobody listens on."""
    for first in range(14000 + secrets.randbelow(4000), 19900, count):
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("", port))
            return first
        except OSError:
            continue
    raise AssertionError(f"no {count} free ports in a row")


def slurm_conf(site, select):
    """The whole of a site's slurm.conf, with job_submit/banyan where SelectType is banyan's."""
    lines = [
        "ClusterName=site", "SlurmctldHost=localhost", f"SlurmctldPidFile={site.dir}/run/slurmctld.pid", f"SlurmctldPort={site.port}",
        f"AuthInfo=socket={site.dir}/run/munge", "SlurmUser=root", "SlurmdUser=root", f"StateSaveLocation={site.dir}/ctld",
        f"SlurmctldLogFile={site.dir}/log/slurmctld.log", "SlurmctldDebug=verbose", f"SlurmdSpoolDir={site.dir}/spool/%n",
        f"SlurmdPidFile={site.dir}/run/slurmd-%n.pid", f"SlurmdLogFile={site.dir}/log/slurmd-%n.log", "SlurmdDebug=verbose",
        "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none", "MpiDefault=none", "JobAcctGatherType=jobacct_gather/none",
        f"MailProg={shutil.which('true')}", f"PlugStackConfig={site.dir}/plugstack.conf", "PrologFlags=Alloc", "GresTypes=gpu",
        f"SelectType={select}", "SelectTypeParameters=CR_Core", "SchedulerType=sched/backfill",
        "SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,sched_min_interval=0", "SlurmdParameters=config_overrides",
        "ReturnToService=2", "SlurmdTimeout=300", "KillWait=5", "EpilogMsgTime=1", "BatchStartTimeout=1", "PropagateResourceLimits=NONE",
        f"NodeName={site.all} NodeHostname=localhost NodeAddr=127.0.0.1 Port=[{site.port + 1}-{site.port + len(site.names)}] CPUs=2 "
        "RealMemory=1000 Gres=gpu:2 State=UNKNOWN",
        "PartitionName=train Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=EXCLUSIVE",
        *(["JobSubmitPlugins=banyan"] if select == BANYAN else [])]
    return "\n".join(lines) + "\n"

# SPDX-License-Identifier: BSD-3-Clause
"""What an ordinary site has before banyan comes, as its admins have set it up: slurm.conf where Slurm does not look for it, compute
nodes that have none, slurmdbd with a data base, a node without GPUs, and plugins of its own."""

import cgroups_v1

CONF = "/etc/hpc/slurm/slurm.conf"
SLURM_CONF = """ClusterName=site
SlurmctldHost=ctl
SlurmUser=slurm
AuthType=auth/munge
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
SlurmctldParameters=enable_configless
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=ctl
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu
ReturnToService=2
JobSubmitPlugins=lua
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
MailProg=/bin/true
GresTypes=gpu
DefMemPerCPU=200
NodeName=n[01-02] CPUs=4 RealMemory=2000 Gres=gpu:2 State=UNKNOWN
NodeName=n03 CPUs=4 RealMemory=2000 State=UNKNOWN
PartitionName=main Nodes=n[01-02] Default=YES MaxTime=INFINITE State=UP
PartitionName=cpu Nodes=n03 MaxTime=INFINITE State=UP
"""
WITH_CGROUPS = """ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
JobAcctGatherType=jobacct_gather/cgroup
"""
WITHOUT_CGROUPS = """ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
"""
# slurmd does not start where it finds both versions and is not told which.
CGROUP_CONF = """CgroupPlugin=cgroup/v1
ConstrainDevices=yes
ConstrainRAMSpace=yes
"""
GRES_CONF = "NodeName=n[01-02] Name=gpu File=/dev/nvidia[0-1]\n"
SLURMDBD_CONF = """AuthType=auth/munge
DbdHost=ctl
SlurmUser=slurm
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StoragePass=password
StorageLoc=slurm_acct_db
LogFile=/var/log/slurm/slurmdbd.log
PidFile=/run/slurmdbd.pid
"""
# Made here: where slurmdbd of Debian 13 makes it itself, it ends with error 5027 of libmariadb 3.4.10.
DATABASE = "CREATE DATABASE slurm_acct_db; CREATE USER slurm@localhost IDENTIFIED BY 'password'; GRANT ALL ON slurm_acct_db.* TO slurm@localhost"
ACCOUNTS = """sacctmgr -i add cluster site
sacctmgr -i add account lab cluster=site
sacctmgr -i add user alice account=lab
"""
# Debian's units ask for /etc/slurm/slurm.conf.
ELSEWHERE = "[Unit]\nConditionPathExists=\n"
JOB_SUBMIT = """function slurm_job_submit(job, partitions, uid)
    if job.comment == "no" then
        slurm.log_user("the site says no")
        return slurm.ERROR
    end
    return slurm.SUCCESS
end
function slurm_job_modify(job, record, partitions, uid)
    return slurm.SUCCESS
end
"""
# Has an option. Compiled into /site/scratch.so.
SPANK = """#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
SPANK_PLUGIN(scratch, 1);
static int given(int value, const char* text, int remote) { return 0; }
int slurm_spank_init(spank_t sp, int argc, char** argv) {
    struct spank_option option = {"scratch", "SIZE", "space of the job's own", 1, 0, given};
    return spank_option_register(sp, &option);
}
"""


def prepare(name):
    """What a host of that name has before its systemd begins, as lines of shell: GPUs are device files without a driver."""
    gpus = name in ("n01", "n02")
    return cgroups_v1.mounts() + "".join(f"mknod -m 666 dev/nvidia{i} c 195 {i}\n" for i in range(2) if gpus)


def give_files(host):
    """To a host with a slurm.conf of its own."""
    slurm_conf = SLURM_CONF + (WITH_CGROUPS if cgroups_v1.hierarchies() else WITHOUT_CGROUPS)
    for name, text in (("slurm.conf", slurm_conf), ("cgroup.conf", CGROUP_CONF), ("gres.conf", GRES_CONF), ("job_submit.lua", JOB_SUBMIT),
                       ("plugstack.conf", "required /site/scratch.so\n")):
        host.write(f"/etc/hpc/slurm/{name}", text)
    host.write("/etc/profile.d/slurm.sh", f"export SLURM_CONF={CONF}\n")


def start_accounting(site):
    site.ctl.run("systemctl start mariadb")
    site.ctl.run(f'mariadb -e "{DATABASE}"')
    # Where slurmdbd has it without being told; it reads no slurm.conf.
    site.ctl.write("/etc/slurm/slurmdbd.conf", SLURMDBD_CONF)
    site.ctl.run("chown slurm: /etc/slurm/slurmdbd.conf; chmod 600 /etc/slurm/slurmdbd.conf; systemctl start slurmdbd")
    site.wait(lambda: site.ctl.run("sacctmgr -n show cluster", check=False).returncode == 0, "slurmdbd answers")
    site.ctl.run(ACCOUNTS)


def start(site):
    """All daemons of a site whose hosts run."""
    for host in site.with_conf:
        give_files(host)
    site.ctl.write("/etc/default/slurmctld", f"SLURM_CONF={CONF}\n")
    for host in site.nodes:
        host.write("/etc/default/slurmd", 'SLURMD_OPTIONS="--conf-server ctl"\n')
    for host, daemon in [(site.ctl, "slurmctld"), *((host, "slurmd") for host in site.nodes)]:
        host.write(f"/etc/systemd/system/{daemon}.service.d/site.conf", ELSEWHERE)
        host.run("systemctl daemon-reload")
    for host in site.hosts.values():
        host.run("systemctl start munge")
    start_accounting(site)
    site.ctl.run("systemctl start slurmctld")
    site.wait(lambda: site.ctl.run("scontrol ping", check=False).returncode == 0, "slurmctld answers")
    for host in site.nodes:
        host.run("systemctl start slurmd")
    site.wait(site.idle, "all nodes are idle")

# SPDX-License-Identifier: BSD-3-Clause
"""The snapshot, munge, ports, banyan.conf, memory and opensm of a host that is spoilt."""

import os
import time
from pathlib import Path

from spoilt import BANYAN, SITE, SNAPSHOT, STACK, case, h_agents


# -- snapshot ----------------------------------------------------------------------------------------------------------------------

@case(r"wrong .*fabric.snapshot: No such file")
def snapshot_missing(h):
    h.host, h.daemons = "ctl", "opensm"
    h.remove(SNAPSHOT)


@case()
def site_without_infiniband(h):
    """It needs no snapshot."""
    h.host = "ctl"
    h.remove(SNAPSHOT)


@case(r"wrong .*fabric.snapshot: is 9 days old, more than max_age")
def snapshot_stale(h):
    h.host = "ctl"
    then = time.time() - 9 * 24 * 3600
    os.utime(h.file(SNAPSHOT), (then, then))


@case(r"wrong .*fabric.snapshot: .*")
def snapshot_cut_off(h):
    h.host = "ctl"
    h.file(SNAPSHOT).write_bytes(h.file(SNAPSHOT).read_bytes()[:200])


@case(r"wrong .*fabric.snapshot: SlurmUser daemon cannot read it: .*mode 0600")
def snapshot_of_root_alone(h):
    h.host = "ctl"
    h.file(SNAPSHOT).chmod(0o600)


@case(r"wrong .*fabric.snapshot: SlurmUser daemon cannot read it: /var/lib/banyan has mode 0700")
def snapshot_in_a_closed_folder(h):
    h.host, h.before = "ctl", "chmod 700 /var/lib/banyan\n"


@case(r"wrong .*fabric.snapshot: SlurmUser slurm-of-elsewhere cannot read it: there is no user")
def slurm_user_unknown(h):
    h.host = "ctl"
    h.config["SlurmUser"] = "slurm-of-elsewhere(4711)"


@case(r"wrong fabric snapshot: 0 of the 10 nodes .*it lacks x\[001-010\]")
def nodes_by_other_names(h):
    h.host = "ctl"
    for node in h.nodes:
        node["NodeName"] = node["NodeName"].replace("n", "x")
    h.answer("agents", h_agents(h))


@case(r"wrong /var/lib/banyan: owner 1, mode")
def folder_of_somebody(h):
    h.host, h.before = "ctl", "chown 1 /var/lib/banyan\n"


@case(r"wrong /var/lib/banyan: owner 0, mode 0777")
def folder_of_everybody(h):
    h.host, h.before = "ctl", "chmod 777 /var/lib/banyan\n"


# -- munge, ports, names -----------------------------------------------------------------------------------------------------------

@case(r"wrong munge: ")
def munged_down(h):
    h.change(BANYAN, f"{h.shared}/munge", f"{h.shared}/none")


@case(r"unknown slurmctld: .*uthentication.*one munge key on all hosts")
def another_munge_key(h):
    h.silent("slurm_load_ctl_conf error: Protocol authentication error")


@case(r"wrong port 5720 of localhost.*: nobody listens")
def controller_not_listening(h):
    h.listen = []


@case(r"wrong port 572 of localhost.*: nobody listens.*\| \[fault\] controller = \"HOST\" in banyan.conf, .*slurmctld's: ctl$")
def controller_not_named(h):
    h.write(BANYAN, f'[munge]\nsocket = "{h.shared}/munge"\n[ckptd]\nmemory_limit = "200M"\nport = 5710\n')


@case(r"wrong port 5710 \(banyan-ckptd\): no address for n\[002-004\]")
def addresses_that_do_not_resolve(h):
    for node in h.nodes[1:4]:
        node["NodeAddr"] = f"{node['NodeName']}.invalid"


@case(r"wrong port 5720 of no-such-host.invalid.*: the name has no address")
def controller_without_an_address(h):
    h.change(BANYAN, '"localhost"', '"no-such-host.invalid"')


@case(r"wrong agents: the controller hears 8 of 9 nodes that are up; it does not hear n003")
def an_agent_is_gone(h):
    h.host = "ctl"
    h.nodes[8]["State"] = "IDLE+CLOUD+POWERED_DOWN"
    h.answer("agents", h_agents(h, without=("n003", "n009")))


@case()
def nodes_that_slurm_knows_are_gone(h):
    h.host = "ctl"
    for node, state in zip(h.nodes, ("DOWN", "DOWN*+DRAIN", "IDLE+POWERED_DOWN", "FUTURE", "IDLE*")):
        node |= {"State": state, "NodeAddr": "203.0.113.1"}
    h.answer("agents", h_agents(h, without=("n001", "n002", "n003", "n004", "n005")))


# -- banyan.conf, memory -----------------------------------------------------------------------------------------------------------

@case(r"wrong /etc/banyan/banyan.conf: .*(write|mode|trusted)")
def configuration_of_everybody(h):
    h.before = "chmod 666 /etc/banyan/banyan.conf\n"


@case(r"wrong /etc/banyan/banyan.conf: .*memory_limits")
def a_key_that_nobody_knows(h):
    h.change(BANYAN, "memory_limit", "memory_limits")


@case(r"wrong /etc/banyan/banyan.conf.d/site.conf: users cannot read it: .*mode 0600 \| chmod 644 /etc/banyan/banyan.conf.d/site.conf$")
def settings_of_root_alone(h):
    h.write(SITE, "[fault]\ndry_run = false\n")
    h.file(SITE).chmod(0o600)


@case(r"wrong /etc/slurm/plugstack.conf: config=: cannot open /etc/banyan/banyan.conf.*\| bring it back", r"wrong port 572 of localhost", r"wrong munge|wrong memory")
def configuration_is_gone(h):
    h.remove(BANYAN)
    h.write(STACK, "optional spank_banyan.so config=/etc/banyan/banyan.conf\n")
    h.listen = []


@case(r"wrong /etc/banyan/banyan.conf: .*has no key \"link\"")
def a_key_of_the_sweep_that_nobody_knows(h):
    h.write(SITE, "")
    h.change(BANYAN, "[fault]", "[sweep]\nlink = 1\n[fault]")


@case(r"wrong memory: \[ckptd\] memory_limit is 1.0 MiB: no training fits \| memory_limit in banyan.conf: six times")
def memory_limit_in_which_nothing_fits(h):
    h.change(BANYAN, "200M", "1M")


@case(r"wrong memory: jobs may take")
def mem_spec_limit_too_small(h):
    total = int(Path("/proc/meminfo").read_text().split()[1]) // 1024
    h.nodes[0] |= {"RealMemory": str(total), "MemSpecLimit": "10"}


@case(r"wrong memory: \[ckptd\] memory_limit is 8.8 TiB")
def more_for_checkpoints_than_there_is(h):
    h.change(BANYAN, '"200M"', '"9000G"')


# -- opensm ------------------------------------------------------------------------------------------------------------------------

@case(r"wrong opensm: keeps lines of its log back")
def opensm_that_buffers(h):
    opensm(h, "force_log_flush true\n")


@case(r"wrong opensm: logs to /var/log/other.log, and \[fault\] opensm_log is /run/opensm.log")
def opensm_that_logs_elsewhere(h):
    opensm(h, "force_log_flush TRUE\n", log="/var/log/other.log")


@case(r"wrong /run/opensm.log: No such file")
def opensm_without_a_log(h):
    opensm(h, "force_log_flush TRUE\n")
    h.remove("/run/opensm.log")


@case()
def opensm_that_is_well(h):
    opensm(h, "# force_log_flush FALSE\nforce_log_flush TRUE # at once\n")


def opensm(h, text, log="/run/opensm.log"):
    h.host, h.daemons = "ctl", "opensm"
    h.write("/etc/opensm/opensm.conf", text + f"log_file {log}\n")
    h.write("/run/opensm.log", "")
    h.change(BANYAN, "[fault]\n", '[fault]\nopensm_log = "/run/opensm.log"\n')

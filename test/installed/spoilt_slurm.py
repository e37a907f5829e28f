# SPDX-License-Identifier: BSD-3-Clause
"""Plugins, plugstack.conf and slurm.conf that are spoilt."""

import os
import secrets
from pathlib import Path

from spoilt import CKPTD, CONF, LINE, STACK, case, h_agents, running


# -- plugins -----------------------------------------------------------------------------------------------------------------------

@case(r"wrong .*select_cons_tres_banyan.so: is built for Slurm 22.05.7, and 22.05.8 is here .*install the banyan-slurm-plugins of Slurm 22.05.8")
def plugin_of_another_micro(h):
    (h.plugins / "select_cons_tres_banyan.so").unlink()
    os.link(h.shared / "older.so", h.plugins / "select_cons_tres_banyan.so")


@case(r"wrong .*select_cons_tres_banyan.so: is built for Slurm 22.05.8, and 22.05.9 is here")
def slurm_upgraded_here_alone(h):
    h.answer("version", "slurm 22.05.9\n")


@case(r"unknown slurmctld: .*find plugin.*install on this host the plugins",
      r"wrong .*select_cons_tres_banyan.so: is built for Slurm 22.05.8, and 22.05.9 is here",
      r"wrong .*job_submit_banyan.so: is built for Slurm 22.05.8, and 22.05.9 is here")
def slurm_upgraded_and_slurmctld_down(h):
    h.host = "ctl"
    h.answer("version", "slurm 22.05.9\n")
    h.silent("scontrol: error: Incompatible Slurm plugin version\nscontrol: fatal: Can't find plugin for select/cons_tres_banyan")


@case(r"wrong select_cons_tres_banyan.so: is in no folder of PluginDir=/opt", r"wrong spank_banyan.so: is in no folder")
def plugin_dir_elsewhere(h):
    h.config["PluginDir"] = "/opt/slurm/lib/slurm:/opt/other"


@case(r"unknown .*select_cons_tres_banyan.so: .*is no plugin of Slurm")
def plugin_that_is_none(h):
    (h.plugins / "select_cons_tres_banyan.so").unlink()
    (h.plugins / "select_cons_tres_banyan.so").write_bytes(b"\x7fELF" + secrets.token_bytes(400))


@case()
def plugin_dir_is_one_of_two(h):
    h.config["PluginDir"] = f"/opt/none:{h.plugins}"


# -- plugstack.conf ----------------------------------------------------------------------------------------------------------------

@case(r"wrong /etc/slurm/plugstack.conf: .*No such file")
def plugstack_missing(h):
    h.remove(STACK)


@case(r"wrong /etc/slurm/plugstack.conf: has no line for spank_banyan.so")
def plugstack_without_the_line(h):
    h.write(STACK, "# optional spank_banyan.so\noptional other.so\n")


@case(r"wrong /etc/slurm/plugstack.conf: loads spank_banyan.so as required \| write optional")
def plugstack_required(h):
    h.write(STACK, "required\tspank_banyan.so\tconfig=/etc/banyan/banyan.conf\n")


@case(r"wrong /opt/slurm/spank_banyan.so: is not there, and plugstack.conf names it")
def plugstack_names_a_file_that_is_gone(h):
    h.write(STACK, "optional /opt/slurm/spank_banyan.so\n")


@case(r"wrong /etc/slurm/plugstack.conf: config=: .*nowhere.conf")
def plugstack_names_no_configuration(h):
    h.write(STACK, "optional spank_banyan.so config=/etc/banyan/nowhere.conf\n")


@case(r"wrong /etc/slurm/plugstack.conf: .*includes itself")
def plugstack_includes_itself(h):
    h.write(STACK, "include plugstack.conf\n")


@case(r"wrong /etc/slurm/plugstack.conf: has no line for spank_banyan.so \| write the line .* into /etc/slurm/plugstack.conf")
def plugstack_of_the_controller(h):
    """Where users log in there, too."""
    h.host = "ctl"
    h.write(STACK, "optional other.so\n")


@case(r"wrong /etc/slurm/plugstack.conf: is not read, since PlugStackConfig=/etc/banyan-plugstack.conf")
def plugstack_of_the_site_is_not_read(h):
    h.write(STACK, "optional scratch.so\n")
    h.write("/etc/banyan-plugstack.conf", "optional spank_banyan.so config=/etc/banyan/banyan.conf\n")
    h.config["PlugStackConfig"] = "/etc/banyan-plugstack.conf"
    h.change(CONF, "PartitionName=", "PlugStackConfig=/etc/banyan-plugstack.conf\nPartitionName=")


@case(r"wrong /run/slurm/conf/plugstack.conf: has no line .*\| on slurmctld's host write the line .*scontrol reconfigure")
def plugstack_copy_without_what_it_included(h):
    """22.05 gives out plugstack.conf, and not the files that it includes."""
    h.write("/run/slurm/conf/slurm.conf", h.file(CONF).read_text())
    h.write("/run/slurm/conf/plugstack.conf", "include plugstack.conf.d/*.conf\n")
    h.before = "rm -rf /etc/slurm\n"


@case(r"wrong /etc/slurm/plugstack.conf: includes /etc/slurm/plugstack.conf.d/banyan.conf, and nodes without .*\| on slurmctld's host write the line")
def plugstack_that_is_given_out(h):
    h.host = "ctl"
    h.config["SlurmctldParameters"] = "enable_configless"


@case(r"wrong /etc/slurm/plugstack.conf: users cannot read it: .*mode 0600 \| chmod 644 /etc/slurm/plugstack.conf$")
def plugstack_of_root_alone(h):
    h.file(STACK).chmod(0o600)


@case(r"wrong /etc/slurm/plugstack.conf.d/banyan.conf: users cannot read it: .*mode 0600 \| chmod 644")
def plugstack_includes_a_file_of_root_alone(h):
    h.host = "login1"
    h.file(LINE).chmod(0o600)


@case(r"wrong /etc/slurm/plugstack.conf.d/banyan.conf: confg=/etc/banyan/banyan.conf .*ignored.*did you mean config=")
def plugstack_with_an_argument_that_nobody_knows(h):
    h.change(LINE, "config=", "confg=")


@case(r"wrong /opt/ckptd: No such file .*\| take ckptd= out of that line of /etc/slurm/plugstack.conf.d/banyan.conf")
def plugstack_names_no_daemon(h):
    h.change(LINE, "config=", "ckptd=/opt/ckptd config=")


@case(r"wrong /usr/libexec/banyan/banyan-ckptd: No such file .*\| install the package banyan-ckptd")
def daemon_not_installed(h):
    h.remove(CKPTD)


@case(r"wrong /usr/libexec/banyan/banyan-ckptd: .* /usr/libexec/banyan can be written by others \(mode 775\) \| chmod go-w /usr/libexec/banyan$")
def daemon_in_a_folder_of_a_group(h):
    h.before = "chmod 775 /usr/libexec/banyan\n"


# -- slurm.conf --------------------------------------------------------------------------------------------------------------------

@case(r"wrong slurm.conf: SelectType=select/cons_tres \|")
def select_type_of_slurm(h):
    h.config["SelectType"] = "select/cons_tres"


@case(r"wrong slurm.conf: PrologFlags= \|")
def prolog_flags_missing(h):
    h.config["PrologFlags"] = "(null)"


@case()
def prolog_flags_contain(h):
    h.config["PrologFlags"] = "Alloc,Contain,X11"


@case()
def parameters_without_memory(h):
    h.config["SelectTypeParameters"] = "CR_ONE_TASK_PER_CORE,CR_SOCKET"


@case(r"wrong slurm.conf: JobSubmitPlugins=lua \|")
def job_submit_of_others(h):
    h.config["JobSubmitPlugins"] = "lua"


@case(r"wrong slurm.conf: JobSubmitPlugins=banyan,lua \| put banyan last")
def job_submit_of_others_behind(h):
    h.config["JobSubmitPlugins"] = "banyan,lua"


@case()
def login_host_with_slurms_own_select_type(h):
    """It needs no package."""
    h.host = "login1"
    h.change(CONF, "SelectType=select/cons_tres_banyan", "SelectType=select/cons_tres")
    (h.plugins / "select_cons_tres_banyan.so").unlink()


@case(r"wrong banyan-faultd controller: cannot reach Slurm: there is no /etc/slurm/slurm.conf \| SLURM_CONF=/run/elsewhere/slurm.conf in "
      r"/etc/default/banyan-faultd")
def slurm_conf_elsewhere(h):
    """The shell knows it, and the fault daemon's unit does not."""
    h.host = "ctl"
    for name in ("slurm.conf", "plugstack.conf", "plugstack.conf.d/banyan.conf"):
        h.write(f"/run/elsewhere/{name}", h.file(f"/etc/slurm/{name}").read_text())
    h.config["PlugStackConfig"] = "/run/elsewhere/plugstack.conf"
    h.env = {"SLURM_CONF": "/run/elsewhere/slurm.conf"}
    h.before = running("banyan-faultd", "controller") + "rm -rf /etc/slurm\n"


@case(r"wrong agents: the controller hears 9 of 10 nodes; it does not hear n001.hpc.example.org; the agent of .* calls itself n001 \| "
      r"OPTIONS=\"--node NAME\" in /etc/default/banyan-faultd")
def agent_by_its_short_name(h):
    h.host = "ctl"
    heard = h_agents(h)
    h.nodes[0]["NodeName"] = h.nodes[0]["NodeHostName"] = "n001.hpc.example.org"
    h.answer("agents", heard)


@case(r"wrong banyan-faultd agent: calls itself n001, and slurm.conf has the node as n001.hpc.example.org \| OPTIONS=\"--node n001.hpc.example.org\"")
def agent_that_does_not_know_the_node(h):
    h.nodes[0]["NodeName"] = h.nodes[0]["NodeHostName"] = "n001.hpc.example.org"
    h.before = running("banyan-faultd", "agent")


@case(r"wrong /etc/slurm/slurm.conf: SelectType=select/cons_tres, and slurmctld runs with select/cons_tres_banyan .*systemctl restart slurmctld")
def slurmctld_not_started_again(h):
    h.host = "ctl"
    h.change(CONF, "SelectType=select/cons_tres_banyan", "SelectType=select/cons_tres")


@case(r"unknown slurmctld: .*connect failure")
def slurmctld_down(h):
    h.silent()


@case(r"unknown slurmctld: ", r"wrong slurm.conf: JobSubmitPlugins=lua")
def slurmctld_down_and_a_file_in_any_style(h):
    h.silent()
    h.write(CONF, "CLUSTERNAME=Site # mine\nInclude %c.conf\nslurmctldhost=ctl\npluginDIR=\"" + str(h.plugins) + "\"\n  include nodes.conf\n"
            "#JobSubmitPlugins=banyan\nJobSubmitPlugins=lua # banyan\n")
    h.write("/etc/slurm/site.conf", "selecttype = select/cons_tres_banyan  SelectTypeParameters=cr_core_memory\\\n,CR_x\nPROLOGFLAGS=\\\nalloc\n")
    h.write("/etc/slurm/nodes.conf", "NodeName=DEFAULT RealMemory=1000 \\\n  MemSpecLimit=300\nnodename=n[001-004,7,010] nodeaddr=127.0.0.1\n")


@case(r"unknown slurmctld: ", r"wrong memory: jobs may take .*MemSpecLimit")
def slurmctld_down_and_memory_of_its_node(h):
    h.silent()
    h.before = "rm -f /etc/slurm/x\n"
    total = int(Path("/proc/meminfo").read_text().split()[1]) // 1024
    h.change(CONF, "RealMemory=1000 MemSpecLimit=300", f"RealMemory={total} MemSpecLimit=10")


@case(r"unknown slurm.conf: .*gone.conf")
def include_of_nothing(h):
    h.write(CONF, "Include gone.conf\n")


@case(r"unknown slurmctld: .*", r"unknown slurm.conf: .*includes itself")
def include_of_itself_and_slurmctld_down(h):
    h.silent()
    h.write(CONF, "Include slurm.conf\n")
    h.daemons = ""


@case(r"unknown slurmctld: .*scontrol.*PATH=")
def no_slurm_at_all(h):
    for name in ("scontrol", "srun"):
        (h.dir / "bin" / name).unlink()
    h.remove(CONF)
    h.before = "for p in /usr/bin/scontrol /usr/bin/srun; do [ ! -e $p ] || mount --bind /dev/null $p; done\n"


@case()
def a_copy_of_slurmctlds_files(h):
    """A node without files of its own: slurmd has got them."""
    for name in ("slurm.conf", "plugstack.conf"):
        h.write(f"/run/slurm/conf/{name}", h.file(f"/etc/slurm/{name}").read_text().replace("include ", "include /run/slurm/conf/"))
    h.write("/run/slurm/conf/plugstack.conf.d/banyan.conf", "optional spank_banyan.so config=/etc/banyan/banyan.conf\n")
    h.before = "rm -rf /etc/slurm\n"


@case()
def no_file_of_slurms(h):
    """A login host that finds slurmctld by DNS."""
    h.host, h.before = "login1", "rm -rf /etc/slurm\n"


@case(r"unknown slurmctld: .*configuration source.* \| export SLURM_CONF=FILE")
def no_slurm_conf_that_this_shell_knows(h):
    """And no daemon of Slurm's by which to find it, as on a login host."""
    h.host, h.before = "login1", "rm -rf /etc/slurm\n"
    h.silent("scontrol: error: fetch_config: DNS SRV lookup failed\nscontrol: fatal: Could not establish a configuration source")


@case(r"wrong srun --help: has no --train options")
def no_file_of_slurms_and_no_options(h):
    h.host, h.before = "login1", "rm -rf /etc/slurm\n"
    h.answer("help", "usage\n")

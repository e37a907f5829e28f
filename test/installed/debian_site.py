# SPDX-License-Identifier: BSD-3-Clause
"""A site of several Debian 12 hosts on this one: each a systemd as process 1 of namespaces of its own, on an overlay of a Debian
that debootstrap made, on a network of their own. It has a Slurm as an admin would have set it up, before banyan came."""

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from waiting import wait_until

REPOSITORY = Path(__file__).resolve().parents[2]
DEPS = Path(os.environ.get("BANYAN_DEPS", REPOSITORY / "build" / "deps"))
BASE = DEPS / "debian12"
DEADLINE = 90
# The site's own; banyan's packages bring what they depend on.
PACKAGES = ("systemd", "systemd-sysv", "dbus", "iproute2", "munge", "slurmctld", "slurmd", "slurm-client", "logrotate", "cron",
            "infiniband-diags", "procps")
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
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
JobSubmitPlugins=lua
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
MailProg=/bin/true
NodeName=n[01-{last:02d}] CPUs=4 RealMemory=2000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

# What a site has of its own: a job_submit script, and a SPANK plugin with an option.
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
SPANK = """#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
SPANK_PLUGIN(scratch, 1);
static int given(int value, const char* text, int remote) { return 0; }
int slurm_spank_init(spank_t sp, int argc, char** argv) {
    struct spank_option option = {"scratch", "SIZE", "space of the job's own", 1, 0, given};
    return spank_option_register(sp, &option);
}
"""


class Failure(AssertionError):
    """A command of an admin or user that should have worked."""


def run(*words, **options):
    options.setdefault("check", True)
    return subprocess.run([str(word) for word in words], text=True, capture_output=True, **options)


def mirror():
    """Where this host takes Debian from."""
    for line in run("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Created-By: Packages").stdout.splitlines():
        uri, _, release = line.partition(" ")
        if release == "bookworm":
            return uri
    raise Failure("apt knows no source of Debian 12 (bookworm) on this host")


def build_base(packages):
    """A Debian with the site's Slurm, and in its cache what `packages` (banyan's) depend on: later the hosts have no network.
    Made once, and anew when the lists change."""
    dependencies = sorted({name.strip() for package in packages
                           for name in run("dpkg-deb", "-f", package, "Depends").stdout.replace("|", ",").split(",")})
    stamp = "\n".join([*PACKAGES, *dependencies])
    if (BASE / ".stamp").exists() and (BASE / ".stamp").read_text() == stamp:
        return
    shutil.rmtree(BASE, ignore_errors=True)
    BASE.parent.mkdir(parents=True, exist_ok=True)
    try:
        run("debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", "bookworm", BASE, mirror())
        names = [name.split()[0] for name in dependencies if not name.startswith(("banyan-", "libbanyan-"))]
        run("chroot", BASE, "env", "LC_ALL=C", "apt-get", "install", "-y", "--no-install-recommends", "--download-only", *names)
    except subprocess.CalledProcessError as error:
        raise Failure(f"no Debian could be made: {error.stderr}{error.stdout}"[-4000:]) from error
    (BASE / "etc" / "munge" / "munge.key").write_bytes(os.urandom(128))
    run("chroot", BASE, "chown", "munge:", "/etc/munge/munge.key")
    run("chroot", BASE, "useradd", "--create-home", "alice")
    # A container has no terminal to log in at.
    run("chroot", BASE, "systemctl", "mask", "console-getty.service")
    (BASE / ".stamp").write_text(stamp)


class Host:
    def __init__(self, site, name, address):
        self.site, self.name, self.address = site, name, address
        self.folder = site.folder / name
        for part in ("up", "root"):
            (self.folder / part).mkdir(parents=True)
        (self.folder / "console").touch()
        self.boot = subprocess.Popen(["unshare", "--fork", "--pid", "--mount", "--cgroup", "--net", "--ipc", "--uts", "--kill-child",
                                      Path(__file__).with_name("host_boot.sh"), self.folder, BASE, name])
        self.init = site.wait(self._find_init, f"{name}: systemd begins")
        self.root = Path(f"/proc/{self.init}/root")

    def _find_init(self):
        if self.boot.poll() is not None:
            raise Failure(f"{self.name} ended with {self.boot.returncode} before systemd began")
        text = Path(f"/proc/{self.boot.pid}/task/{self.boot.pid}/children").read_text().split()
        return int(text[0]) if text and "systemd" in Path(f"/proc/{text[0]}/cmdline").read_text() else None

    def run(self, script, user="root", cwd="/", check=True, timeout=DEADLINE):
        """Runs lines of shell as somebody who has logged in there. Returns the CompletedProcess, both outputs in stdout."""
        become = [] if user == "root" else ["setpriv", "--reuid", user, "--regid", user, "--init-groups"]
        home = "/root" if user == "root" else f"/home/{user}"
        done = subprocess.run(["nsenter", "-t", str(self.init), "-m", "-p", "-u", "-i", "-n", "-C", f"--root=/proc/{self.init}/root",
                               "env", "-i", "--chdir=/", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                               f"HOME={home}", f"USER={user}", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", *become,
                               "sh", "-ec", f"cd {cwd}\n{script}"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, timeout=timeout,
                              check=False)
        if check and done.returncode != 0:
            raise Failure(f"{user}@{self.name}$ {script}\nended with {done.returncode}:\n{done.stdout}\n{self.site.evidence()}")
        return done

    def file(self, path):
        return self.root / str(path).lstrip("/")


class Site:
    """Hosts ctl (10.77.0.1), n01 (10.77.0.11), n02, … with names and a Slurm whose daemons run."""

    def __init__(self, nodes=2):
        self.folder = Path(tempfile.mkdtemp(prefix="banyan-site-"))
        self.shared = self.folder / "shared"  # /site on every host
        self.shared.mkdir()
        self.bridge = None
        self.hosts = {}
        self.names = {"ctl": "10.77.0.1", "login1": "10.77.0.2", **{f"n{i:02d}": f"10.77.0.{10 + i}" for i in range(1, nodes + 1)}}
        (self.folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(f"{ip} {name}\n" for name, ip in self.names.items()))

    def up(self):
        run("cp", "-a", BASE / "home", self.shared / "home")
        run("gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", self.shared / "scratch.so", input=SPANK)
        # The network lives in a namespace of its own, held by this process.
        self.bridge = subprocess.Popen(["unshare", "--net", "--kill-child", "--fork", "sh", "-c",
                                        "ip link add br0 type bridge && ip link set br0 up && echo up && exec sleep infinity"],
                                       stdout=subprocess.PIPE, text=True)
        if self.bridge.stdout.readline() != "up\n":
            raise Failure("no bridge in a network namespace can be made on this host")
        for name, address in self.names.items():
            host = self.hosts[name] = Host(self, name, address)
            self.plug(host)
        for host in self.hosts.values():
            self.wait(lambda host=host: host.run("systemctl is-system-running", check=False).stdout.strip() in ("running", "degraded"),
                      f"{host.name} has booted")
            host.file("/etc/slurm/slurm.conf").write_text(SLURM_CONF.format(last=len(self.nodes)))
            host.file("/etc/slurm/job_submit.lua").write_text(JOB_SUBMIT)
            host.file("/etc/slurm/plugstack.conf").write_text("required /site/scratch.so\n")
            # Nothing here asks for cgroups, and slurmd does not start where the kernel has both versions.
            host.file("/etc/slurm/cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
            host.run("systemctl start munge")
        self.ctl.run("systemctl start slurmctld")
        for host in self.nodes:
            host.run("systemctl start slurmd")
        self.wait(self.idle, "all nodes are idle")

    def plug(self, host):
        """A cable from the host to the bridge."""
        holder = Path(f"/proc/{self.bridge.pid}/task/{self.bridge.pid}/children").read_text().split()[0]
        run("nsenter", "-t", holder, "-n", "sh", "-ec",
            f"ip link add v-{host.name} type veth peer name eth0 netns {host.init}; ip link set v-{host.name} master br0 up")
        run("nsenter", "-t", host.init, "-n", "sh", "-ec", f"ip addr add {host.address}/24 dev eth0; ip link set eth0 up")

    @property
    def ctl(self):
        return self.hosts["ctl"]

    @property
    def login(self):
        return self.hosts["login1"]

    @property
    def nodes(self):
        return [self.hosts[name] for name in self.names if name.startswith("n") and name in self.hosts]

    def idle(self):
        states = self.ctl.run("sinfo -h -N -o '%N %T'", check=False).stdout.split("\n")
        return len([state for state in states if state.endswith(" idle")]) == len(self.nodes)

    def wait(self, condition, what, timeout=DEADLINE):
        return wait_until(condition, what, timeout, self.evidence, Failure)

    def evidence(self):
        """The last lines of the logs that explain most failures."""
        text = ""
        for host in self.hosts.values():
            for log in ("/var/log/slurm/slurmctld.log", "/var/log/slurm/slurmd.log"):
                if host.file(log).exists():
                    text += f"--- {host.name}:{log}\n" + "\n".join(host.file(log).read_text(errors="replace").splitlines()[-15:]) + "\n"
            text += f"--- {host.name}: units\n" + host.run("systemctl --failed --plain --no-legend; journalctl -q -n 15", check=False).stdout
        return text

    def down(self):
        for host in self.hosts.values():
            host.boot.send_signal(signal.SIGKILL)  # takes its process 1, and that all others
        for host in self.hosts.values():
            host.boot.wait()
        if self.bridge:
            self.bridge.send_signal(signal.SIGKILL)
            self.bridge.wait()
            self.bridge.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

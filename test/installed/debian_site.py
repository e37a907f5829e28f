# SPDX-License-Identifier: BSD-3-Clause
"""A site of several Debian hosts on this one: each a systemd as process 1 of namespaces of its own, on an overlay of a Debian
that debootstrap made, on a network of their own. It has a Slurm as ordinary_site.py sets it up, before banyan comes."""

import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import cgroups_v1
import ordinary_site
from debian_base import BASE, Failure, run
from waiting import wait_until

DEADLINE = 90


class Host:
    def __init__(self, site, name, address):
        self.site, self.name, self.address = site, name, address
        self.folder = site.folder / name
        for part in ("up", "root"):
            (self.folder / part).mkdir(parents=True)
        (self.folder / "console").touch()
        (self.folder / "prepare").write_text(ordinary_site.prepare(name))
        self.boot = subprocess.Popen(["unshare", "--fork", "--pid", "--mount", "--cgroup", "--net", "--ipc", "--uts", "--kill-child",
                                      Path(__file__).with_name("host_boot.sh"), self.folder, BASE, name],
                                     preexec_fn=cgroups_v1.make(f"{site.folder.name}/{name}"))
        self.init = site.wait(self._find_init, f"{name}: systemd begins")
        self.root = Path(f"/proc/{self.init}/root")

    def _find_init(self):
        if self.boot.poll() is not None:
            raise Failure(f"{self.name} ended with {self.boot.returncode} before systemd began")
        text = Path(f"/proc/{self.boot.pid}/task/{self.boot.pid}/children").read_text().split()
        return int(text[0]) if text and "systemd" in Path(f"/proc/{text[0]}/cmdline").read_text() else None

    def run(self, script, user="root", cwd="/", check=True, timeout=DEADLINE):
        """Runs lines of shell as somebody who has logged in there, with what the site's profile sets. Returns the
        CompletedProcess, both outputs in stdout."""
        become = [] if user == "root" else ["setpriv", "--reuid", user, "--regid", user, "--init-groups"]
        home = "/root" if user == "root" else f"/home/{user}"
        done = subprocess.run(["nsenter", "-t", str(self.init), "-m", "-p", "-u", "-i", "-n", "-C", f"--root=/proc/{self.init}/root",
                               "env", "-i", "--chdir=/", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                               f"HOME={home}", f"USER={user}", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", *become,
                               "sh", "-lec", f"cd {cwd}\n{script}"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, timeout=timeout,
                              check=False)
        if check and done.returncode != 0:
            raise Failure(f"{user}@{self.name}$ {script}\nended with {done.returncode}:\n{done.stdout}\n{self.site.evidence()}")
        return done

    def file(self, path):
        return self.root / str(path).lstrip("/")

    def write(self, path, text):
        self.file(path).parent.mkdir(parents=True, exist_ok=True)
        self.file(path).write_text(text)


class Site:
    """Hosts ctl (10.77.0.1), login1, n01 (10.77.0.11), n02, n03 with names and a Slurm whose daemons run."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="banyan-site-"))
        self.shared = self.folder / "shared"  # /site on every host
        self.shared.mkdir()
        self.bridge = None
        self.hosts = {}
        self.names = {"ctl": "10.77.0.1", "login1": "10.77.0.2", **{f"n{i:02d}": f"10.77.0.{10 + i}" for i in range(1, 4)}}
        (self.folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(f"{ip} {name}\n" for name, ip in self.names.items()))

    def up(self):
        run("cp", "-a", BASE / "home", self.shared / "home")
        run("gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", self.shared / "scratch.so", input=ordinary_site.SPANK)
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
        ordinary_site.start(self)

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
    def with_conf(self):
        """Those with a slurm.conf of their own."""
        return [self.ctl, self.login]

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
            for log in ("/var/log/slurm/slurmctld.log", "/var/log/slurm/slurmdbd.log", "/var/log/slurm/slurmd.log"):
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
        # What hosts had inside them ends a moment after they did.
        wait_until(lambda: cgroups_v1.gone(self.folder.name), "no process is left of the hosts", DEADLINE)
        shutil.rmtree(self.folder, ignore_errors=True)

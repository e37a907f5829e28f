# SPDX-License-Identifier: BSD-3-Clause
"""A site's Slurm as small as it can be, with the plugins that Slurm finds in its own directory."""

import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from site_texts import BANYAN, STEPS_ON_DEMAND, free_ports, slurm_conf
from waiting import wait_until

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BANYAN_BUILD", REPOSITORY / "build" / "dev"))
DEADLINE = 90


class Site:
    """munged, slurmctld and one slurmd per node, by the names that everybody calls them."""

    def __init__(self, select=BANYAN, nodes=4):
        self.dir = Path(tempfile.mkdtemp(prefix="site-"))
        self.dir.chmod(0o755)
        self.names = [f"n{i:02}" for i in range(1, nodes + 1)]
        self.parts = {}
        self.steps = {}
        for folder in ("log", "run", "ctld", "spool", "tmp", "dev"):
            (self.dir / folder).mkdir()
        self.env = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM", "SBATCH", "BANYAN_"))}
        self.env |= {"SLURM_CONF": f"{self.dir}/slurm.conf", "BANYAN_CONF": f"{self.dir}/banyan.conf",
                     "PATH": f"{self.env.get('PATH', '/usr/bin:/bin')}:/usr/sbin:/sbin"}
        self.port = free_ports(1 + nodes)
        self.configure(select)
        (self.dir / "gres.conf").write_text(f"NodeName={self.all} Name=gpu File={self.dir}/dev/gpu[0-1]\n")
        for gpu in range(2):
            (self.dir / "dev" / f"gpu{gpu}").touch()
        (self.dir / "plugstack.conf").write_text(f"optional spank_banyan.so config={self.dir}/banyan.conf\n")
        (self.dir / "banyan.conf").write_text(f'[munge]\nsocket = "{self.dir}/run/munge"\n[topo]\nsnapshot = "{self.dir}/snapshot"\n')
        topo, dump = BUILD / "bin" / "banyan-topo", self.dir / "dump"
        self.run(topo, "gen", "--nodes", nodes, "--group-size", 2, "-o", dump)
        self.run(topo, "snapshot", dump, "-o", self.dir / "snapshot")

    @property
    def all(self):
        return f"n[01-{len(self.names):02}]"

    def configure(self, select):
        """Writes slurm.conf. Who runs reads it when he is started anew."""
        (self.dir / "slurm.conf").write_text(slurm_conf(self, select))

    # -- life --------------------------------------------------------------------------------------------------------------

    def start(self, part, *command):
        with open(self.dir / "log" / f"{part}.out", "ab") as output:
            self.parts[part] = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                                env=self.env, cwd=self.dir, start_new_session=True)

    def up(self):
        key = self.dir / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))
        run = self.dir / "run"
        self.start("munged", "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={run}/munge", f"--pid-file={run}/munged.pid",
                   f"--log-file={self.dir}/log/munged.log", f"--seed-file={run}/seed")
        self.wait_for(lambda: self.run("munge", "-S", run / "munge", "-n", check=False).returncode == 0, "munged answers")
        self.start_controller()
        for name in self.names:
            self.start_node(name)
        self.wait_for_idle()

    def start_controller(self):
        self.start("slurmctld", "slurmctld", "-D")
        self.wait_for(lambda: "UP" in self.out("scontrol", "ping", check=False), "slurmctld answers")

    def start_node(self, name):
        self.start(f"slurmd-{name}", "slurmd", "-D", "-N", name)

    def end(self, part, number=signal.SIGTERM):
        """Ends it, and returns how it ended."""
        self.parts[part].send_signal(number)
        return self.parts.pop(part).wait(DEADLINE)

    def restart_controller(self):
        """And waits until every node has registered. Returns how the old one ended."""
        status = self.end("slurmctld")
        self.start_controller()
        self.wait_for(lambda: self.registrations() >= len(self.names), "every node has registered")
        return status

    def restart_nodes(self):
        before = self.registrations()
        for name in self.names:
            if status := self.end(f"slurmd-{name}"):
                raise AssertionError(f"the slurmd of {name} ended with {status}\n{self.evidence()}")
            self.start_node(name)
        self.wait_for(lambda: self.registrations() >= before + len(self.names), "every node has registered again")

    def registrations(self):
        found = re.search(r"MESSAGE_NODE_REGISTRATION_STATUS\s.*count:(\d+)", self.out("sdiag", check=False))
        return int(found.group(1)) if found else 0

    def down(self):
        for part in ("slurmctld", *(f"slurmd-{name}" for name in self.names), "munged"):
            if part in self.parts:
                self.end(part, signal.SIGKILL if part == "slurmctld" else signal.SIGTERM)
        shutil.rmtree(self.dir, ignore_errors=True)

    # -- commands ----------------------------------------------------------------------------------------------------------

    def run(self, *words, check=True, input=None):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=DEADLINE, env=self.env,
                              input=input, cwd=self.dir / "tmp")
        if check and done.returncode:
            raise AssertionError(f"{words} ended with {done.returncode}: {done.stdout}{done.stderr}\n{self.evidence()}")
        return done

    def out(self, *words, **options):
        return self.run(*words, **options).stdout.strip()

    def wait_for(self, condition, what):
        return wait_until(condition, what, DEADLINE, self.evidence)

    def wait_for_idle(self):
        self.wait_for(lambda: set(self.out("sinfo", "-h", "-o", "%T", check=False).split()) == {"idle"}, "all nodes are idle")

    def sbatch(self, *options, script=STEPS_ON_DEMAND):
        return int(self.out("sbatch", "--parsable", "--open-mode=append", "--output=%j.out", "--gres=gpu:2", *options, input=script))

    def state(self, job):
        found = re.search(r"JobState=(\S+)", self.out("scontrol", "-o", "show", "job", job, check=False))
        return found.group(1) if found else "unknown"

    def wait_for_job(self, job, state="COMPLETED"):
        ended = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")

        def reached():
            now = self.state(job)
            if now != state and now in ended:
                raise AssertionError(f"job {job} is {now}, not {state}; it printed:\n{self.output(job)}\n{self.evidence()}")
            return now == state
        self.wait_for(reached, f"job {job} is {state}")

    def output(self, job):
        file = self.dir / "tmp" / f"{job}.out"
        return file.read_text(errors="replace") if file.exists() else ""

    def step(self, job, options=""):
        """Runs a step of a job that has STEPS_ON_DEMAND. Returns its (exit status, nodes by rank)."""
        name = self.steps[job] = self.steps.get(job, 0) + 1
        new = self.dir / "tmp" / f"go-{job}.new"
        new.write_text(options)
        new.rename(self.dir / "tmp" / f"go-{job}-{name}")
        line = f"step {name} ended with "
        self.wait_for(lambda: line in self.output(job), f"step {name} of job {job} ends")
        ranks = dict(re.findall(rf"^rank {name} (\d+) (\S+)$", self.output(job), re.M))
        return int(self.output(job).partition(line)[2].split()[0]), [ranks[rank] for rank in sorted(ranks, key=int)]

    def tell_to_end(self, job):
        (self.dir / "tmp" / f"go-{job}-end").touch()

    def let_end(self, job):
        self.tell_to_end(job)
        self.wait_for_job(job)

    def log(self, name="slurmctld.log"):
        return (self.dir / "log" / name).read_text(errors="replace")

    def evidence(self):
        logs = sorted((self.dir / "log").iterdir())
        return "\n".join(f"--- {file.name}\n" + "\n".join(file.read_text(errors="replace").splitlines()[-12:]) for file in logs)

# SPDX-License-Identifier: BSD-3-Clause
"""What the cluster tests stand on: one cluster per test file, brought up by scripts/cluster as a developer does it.

    class Placement(ClusterCase):
        def test_it(self):
            job = self.cluster.sbatch("-N4", script="srun hostname\\n")
            self.cluster.wait_for_job(job, "COMPLETED")

Tests wait on conditions; the deadline of a wait is generous, since it passes only when something is wrong.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BANYAN_BUILD", REPOSITORY / "build" / "dev"))
HELPERS = Path(os.environ.get("BANYAN_HELPERS", BUILD))  # what tests alone start
SELECT = os.environ.get("BANYAN_SELECT", "cons_tres_banyan")  # cons_tres: as where no plugin of banyan's is in slurmctld
DEADLINE = 60
sys.path.insert(0, str(REPOSITORY / "scripts" / "lib"))

from banyan_cluster import installed, layout as layouts  # noqa: E402
from waiting import wait_until  # noqa: E402


def needs_select(what):
    """A case that promises what only the select plugin can do."""
    return unittest.skipIf(SELECT != "cons_tres_banyan", f"without the select plugin: {what}")


def program(name):
    """A program of banyan as it is installed, for tests that need no cluster; on one it is in the PATH or in /usr/libexec/banyan."""
    return installed.program(BUILD, name)


def release():
    """(22, 5) of the Slurm that the build is for, and its clusters have. Build without Slurm: (0, 0)."""
    built_for = subprocess.run([program("banyan-topo"), "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"\(Slurm (\d+)\.(\d+)", built_for)
    return (int(found[1]), int(found[2])) if found else (0, 0)


class Failure(AssertionError):
    """A command that should have worked, with what it printed."""


class Cluster:
    def __init__(self, directory=None, nodes=16, options=()):
        # Short, since Slurm's sockets lie below it.
        self.dir = Path(directory or tempfile.mkdtemp(prefix="banyan-"))
        if not directory:
            self.dir.chmod(0o755)  # jobs of other users reach the sockets in it
        self.nodes = nodes
        self.options = [str(option) for option in options]
        if SELECT != "cons_tres_banyan" and "--select" not in self.options:
            self.options = _without_select(self.options)

    # -- life --------------------------------------------------------------------------------------------------------------

    def script(self, *words, check=True, timeout=120):
        """Runs scripts/cluster WORDS on this cluster."""
        return _run([REPOSITORY / "scripts" / "cluster", *words[:1], "--dir", self.dir, *words[1:]], check, timeout)

    def up(self):
        return self.script("up", "--nodes", self.nodes, "--build", BUILD, *self.options)

    def down(self):
        return self.script("down")

    def remove(self):
        """Ends it and removes its directory, after a look at what it leaves."""
        self.script("down", "--purge")

    # -- commands ----------------------------------------------------------------------------------------------------------

    def run(self, *words, check=True, timeout=DEADLINE, env=None, cwd=None, input=None):
        """Runs a command with the tools pointing at the cluster. Returns the CompletedProcess with text output."""
        return _run([REPOSITORY / "scripts" / "cluster", "exec", "--dir", self.dir, "--", *words], check, timeout, env, cwd, input)

    def start(self, *words, **popen):
        """Starts a command and does not wait for it. The caller waits, or `down` ends it."""
        popen.setdefault("stdout", subprocess.PIPE)
        popen.setdefault("stderr", subprocess.STDOUT)
        command = [REPOSITORY / "scripts" / "cluster", "exec", "--dir", self.dir, "--", *words]
        return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, text=True, **popen)

    def out(self, *words, **options):
        return self.run(*words, **options).stdout.strip()

    def release(self):
        return release()

    def asks_about_steps(self):
        """Up to 24.11 slurmctld asks the select plugin about each step. Without that srun refuses a training step whose allocation it
        makes: nobody knows the nodes in time."""
        return self.release() < (25, 5)

    def reconfigure(self):
        """`scontrol reconfigure`. Since 23.11 every daemon starts anew with it, and a step that is launched meanwhile fails."""
        logs = list((self.dir / "log").glob("slurmd-*.log"))

        def starts():
            return [log.read_text(errors="replace").count("slurmd started on") for log in logs]
        before = starts()
        self.run("scontrol", "reconfigure")
        if self.release() >= (23, 11):
            self.wait_for(lambda: all(now > then for now, then in zip(starts(), before)), "each slurmd has started anew")

    def srun(self, *options):
        """The words before a program that trains in an allocation of its own."""
        return ("srun", *options) if self.asks_about_steps() else ("salloc", "-Q", *options, "srun")

    def sbatch(self, *options, script, env=None):
        """Submits a batch script; its output goes to slurm-JOB.out in the cluster's directory. Returns the job id."""
        text = script if script.startswith("#!") else "#!/bin/bash\n" + script
        work = self.dir / "tmp"
        return int(self.out("sbatch", "--parsable", f"--chdir={work}", f"--output={work}/slurm-%j.out", *options, input=text,
                            env=env).split(";")[0])

    def output(self, job):
        """What a batch script has printed so far."""
        try:
            return (self.dir / "tmp" / f"slurm-{job}.out").read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def job(self, job):
        """The fields of `scontrol show job`."""
        words = self.run("scontrol", "-o", "show", "job", job, check=False).stdout
        fields = {}
        for word in words.split():
            key, equals, value = word.partition("=")
            if equals:
                fields.setdefault(key, value)
        comment = re.search(r"AdminComment=(.*?) +(?:Comment|StdErr|Power)=", words)
        if comment:
            fields["AdminComment"] = comment.group(1)
        return fields

    def node(self, node):
        """The node as `scontrol show node` has it: its state flags, and its reason."""
        words = self.out("scontrol", "-o", "show", "node", node)
        state = words.partition(" State=")[2].split(" ")[0]
        reason = words.partition(" Reason=")[2].rpartition(" [")[0]
        return {"state": state.split("+"), "reason": reason, "text": words}

    def address(self, node):
        """The address of a node, whose name means something in the cluster's namespace alone."""
        return layouts.load(self.dir).address(node)

    def hosts(self, expression):
        """The names in a compressed host list."""
        return self.out("scontrol", "show", "hostnames", expression).split() if expression else []

    # -- waiting -----------------------------------------------------------------------------------------------------------

    def wait_for(self, condition, what, timeout=DEADLINE, pause=0.05):
        """Waits until condition() is true, and returns what it returned."""
        return wait_until(condition, what, timeout, self.evidence, Failure, pause)

    def wait_for_job(self, job, state="COMPLETED", timeout=DEADLINE):
        ends = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE"}

        def reached():
            now = self.job(job).get("JobState")
            if now != state and now in ends:
                raise Failure(f"job {job} is {now}, not {state}; it printed:\n{self.output(job)}\n{self.evidence()}")
            return now == state
        self.wait_for(reached, f"job {job} is {state}", timeout)

    def wait_for_nodes_idle(self, timeout=DEADLINE):
        self.wait_for(lambda: set(self.out("sinfo", "-h", "-o", "%T").split()) == {"idle"}, "all nodes are idle", timeout)

    # -- trouble -----------------------------------------------------------------------------------------------------------

    def kmsg(self, node, text):
        """Appends a line to a node's kernel log; returns the time right before."""
        before = time.monotonic()
        with open(self.dir / "kmsg" / f"{node}.log", "ab") as file:
            file.write(text.encode() + b"\n")
        return before

    def link(self, action, node, port):
        self.script("link", action, node, port)

    def parts(self):
        """{part: pid} as recorded."""
        return {file.stem: json.loads(file.read_text())["pid"] for file in (self.dir / "run" / "parts").glob("*.json")}

    def evidence(self):
        """The jobs, and the last lines of the logs that explain most failures."""
        lines = []
        with contextlib.suppress(Failure):
            lines = self.run("squeue", "--all", check=False, timeout=10).stdout.splitlines()
        logs = [self.dir / "log" / name for name in ("slurmctld.log", "slurmd-n01.log", "faultd-controller.log", "faultd-controller.out", "opensm.log")]
        for file in [*logs, *sorted(self.dir.glob("**/ckptd*.log"))[:4]]:
            if file.exists():
                lines += [f"--- {file.name}", *file.read_text(errors="replace").splitlines()[-15:]]
        return "\n".join(lines)


def _without_select(options):
    """The same with SELECT in slurmctld alone; the parts that are left out are said once."""
    options = list(options)
    left_out = ["submit"]
    if "--without" in options:
        at = options.index("--without")
        left_out += options[at + 1].split(",")
        del options[at:at + 2]
    return [*options, "--select", SELECT, "--without", ",".join(dict.fromkeys(left_out))]


def _run(command, check, timeout, env=None, cwd=None, input=None):
    """Runs a command to its end. Its output goes through files: a daemon that inherits them must not hold us up."""
    command = [str(word) for word in command]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err, tempfile.TemporaryFile("w+") as stdin:
        if input is not None:
            stdin.write(input)
            stdin.seek(0)
        try:
            run = subprocess.run(command, stdin=stdin, stdout=out, stderr=err, timeout=timeout, cwd=cwd,
                                 env={**os.environ, **(env or {})})
            status = run.returncode
        except subprocess.TimeoutExpired:
            status = None
        out.seek(0)
        err.seek(0)
        done = subprocess.CompletedProcess(command, status, out.read(), err.read())
    if status is None or (check and status != 0):
        ended = f"did not end within {timeout} s" if status is None else f"ended with {status}"
        raise Failure(f"{' '.join(command)} {ended}\n--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}")
    return done


class ClusterCase(unittest.TestCase):
    """A test file whose tests share one cluster."""
    nodes = 16
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(nodes=cls.nodes, options=cls.options)
        cls.addClassCleanup(cls.cluster.remove)
        cls.cluster.up()

    def setUp(self):
        self.cluster.wait_for_nodes_idle()

    def run(self, result=None):
        # With a failed test the logs are worth more than a clean folder.
        before = len(result.failures) + len(result.errors)
        super().run(result)
        if len(result.failures) + len(result.errors) == before:
            return
        # Its jobs would fail the tests after it.
        if jobs := self.cluster.run("squeue", "--all", "-h", "-o", "%A", check=False).stdout.split():
            self.cluster.run("scancel", *jobs, check=False)
        if os.environ.get("BANYAN_KEEP"):
            keep = Path(os.environ["BANYAN_KEEP"]) / f"{self.id()}"
            shutil.copytree(self.cluster.dir / "log", keep, dirs_exist_ok=True)


# -- what may be left of a cluster: looked for without the code that ends it -----------------------------------------------

def processes_of(directory):
    """Processes with the directory in their environment, command line, working directory or open files."""
    found = {}
    needle = os.fsencode(str(directory))
    spared = {os.getpid(), os.getppid()}
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) in spared:
            continue
        try:
            stat = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
            if stat[0] in (b"Z", b"X"):
                continue
            seen = Path(f"/proc/{name}/environ").read_bytes() + Path(f"/proc/{name}/cmdline").read_bytes()
            for link in [f"/proc/{name}/cwd", *(f"/proc/{name}/fd/{fd}" for fd in os.listdir(f"/proc/{name}/fd"))]:
                try:
                    seen += os.fsencode(os.readlink(link))
                except OSError:
                    continue
        except OSError:
            continue
        if needle in seen:
            found[int(name)] = Path(f"/proc/{name}/comm").read_text().strip() if os.path.exists(f"/proc/{name}/comm") else "?"
    return found


def sockets_of(directory, sockname):
    """Unix sockets bound below the directory or under the fabric's abstract prefix."""
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as file:
        return [line.split()[-1] for line in file if str(directory) in line or f"@{sockname}" in line]


def mounts_of(directory):
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f" {directory}" in line]


def main():
    unittest.main(verbosity=2)

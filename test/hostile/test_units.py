#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Our units under a real systemd, which is process 1 of its own namespaces: that the daemons work with what the units leave
them, and what they leave. Then a user's program whose name looks like the driver's line crashes on that node."""

import os
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from harness import REPOSITORY, main, program
from waiting import wait_until

DEADLINE = 60
UNITS = ("banyan-faultd-controller.service", "banyan-faultd-agent.service", "banyan-ckptd@n01.service")
FORGED = "NVRM: Xid (PCI:0000:10:00): 79, pid=1, GPU has fallen off the bus."
# Nothing but what a test starts; the daemons' logs go to files, since no journal runs here.
PREPARE = """
printf '[Unit]\\nDescription=Nothing but what a test starts\\nDefaultDependencies=no\\n' >etc/systemd/system/bare.target
mkdir -p etc/systemd/system.conf.d
printf '[Manager]\\nDefaultStandardOutput=null\\n' >etc/systemd/system.conf.d/test.conf
"""
SAVE = """
import os, pathlib, sys
from lone_ckptd import ALICE, Link, as_user, saves_to_storage
socket, place = "/run/banyan/ckptd.sock", pathlib.Path("/srv/shared")
place.mkdir()
os.chown(place, ALICE, ALICE)
place.chmod(0o2770)
call = lambda kind, meta: Link(socket).call(kind, meta)
said = call("session_open", dict(job=1, restart=0, uid=ALICE, gid=ALICE, self="n01", world=1, dir=str(place), every=1, flush=1, buffers=3, bytes=0,
                                 nodes=[dict(name="n01", addr="127.0.0.1", ranks=[0], buddy=0)], spares=[]))
if "error" in said:
    sys.exit(said["error"])
call("step_open", dict(job=1, step=0, nodes=["n01"]))
print("saved" if as_user(ALICE, lambda: saves_to_storage(socket, 1, 1)) else call("status", {}), oct((place / f"step-{1:012}").stat().st_mode & 0o7777))
"""
SYSTEMD = Path("/lib/systemd/systemd")


def can_boot():
    return os.geteuid() == 0 and SYSTEMD.exists() and Path("/dev/kmsg").exists() and shutil.which("unshare")


@unittest.skipUnless(can_boot(), "needs root, systemd and /dev/kmsg")
class Units(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = Path(tempfile.mkdtemp(prefix="banyan-units-"))
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)
        for name in ("up", "root"):
            (cls.dir / name).mkdir()
        (cls.dir / "console").touch()
        (cls.dir / "prepare").write_text(PREPARE)
        boot = subprocess.Popen(["unshare", "--fork", "--pid", "--mount", "--cgroup", "--net", "--ipc", "--uts", "--kill-child",
                                 REPOSITORY / "test" / "installed" / "host_boot.sh", cls.dir, "/", "n01", "--unit=bare.target"])
        cls.addClassCleanup(boot.wait)
        cls.addClassCleanup(boot.send_signal, signal.SIGKILL)
        cls.boot = boot
        cls.init = cls.wait(cls.find_init, "systemd begins")
        cls.root = Path(f"/proc/{cls.init}/root")
        cls.wait(lambda: cls.inside("systemctl", "is-active", "bare.target").stdout.strip() == "active", "systemd is up")
        cls.install()

    @classmethod
    def find_init(cls):
        if cls.boot.poll() is not None:
            raise unittest.SkipTest("a systemd cannot be process 1 of a namespace on this host")
        text = Path(f"/proc/{cls.boot.pid}/task/{cls.boot.pid}/children").read_text().split()
        if not text or "systemd" not in Path(f"/proc/{text[0]}/cmdline").read_text():
            return None
        return int(text[0])

    @classmethod
    def wait(cls, condition, what):
        return wait_until(condition, what, DEADLINE, cls.evidence)

    @classmethod
    def evidence(cls):
        text = (cls.dir / "console").read_text(errors="replace")[-4000:]
        for unit in UNITS:
            log = Path(f"/proc/{getattr(cls, 'init', 0)}/root/var/log/{unit}.log")
            text += f"\n--- {unit}\n" + (log.read_text(errors="replace")[-3000:] if log.exists() else "no log")
        return text

    @classmethod
    def inside(cls, *words, check=False):
        return subprocess.run(["nsenter", "-t", str(cls.init), "-m", "-p", "-u", "-i", "-n", "-C", f"--root=/proc/{cls.init}/root",
                               "--wd=/", "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *words], capture_output=True, text=True,
                              timeout=DEADLINE, check=check)

    @classmethod
    def install(cls):
        for folder in ("usr/libexec/banyan", "etc/banyan"):
            (cls.root / folder).mkdir(parents=True, exist_ok=True)
        for name in ("banyan-faultd", "banyan-ckptd"):
            shutil.copy(program(name), cls.root / "usr/libexec/banyan")
        for name in ("banyan-fault", "banyan-ckpt"):
            shutil.copy(program(name), cls.root / "usr/bin")
        system = cls.root / "etc/systemd/system"
        for file in (REPOSITORY / "etc/systemd").glob("banyan-*.service"):
            shutil.copy(file, system)
        (cls.root / "etc/banyan/agent.conf").write_text('[fault]\ncontroller = "127.0.0.1"\nmetrics = "127.0.0.1:9712"\n')
        agent = "Environment=BANYAN_CONF=/etc/banyan/agent.conf\n"
        for unit in UNITS:
            extra = system / f"{unit}.d"
            extra.mkdir()
            (extra / "log.conf").write_text(f"[Service]\nStandardError=append:/var/log/{unit}.log\n"
                                            f"{agent if unit == UNITS[1] else ''}[Unit]\nDefaultDependencies=no\n"
                                            "Wants=\nAfter=\n")
        # munge is the distribution's; its key is this test's own.
        key = cls.root / "etc/munge/munge.key"
        key.write_bytes(os.urandom(64))
        for path in (key, key.parent):
            shutil.chown(path, "munge", "munge")
        key.chmod(0o400)
        extra = system / "munge.service.d"
        extra.mkdir()
        (extra / "bare.conf").write_text("[Unit]\nDefaultDependencies=no\nAfter=\nRequires=\nWants=\n")
        (cls.root / "etc/banyan/banyan.conf").write_text('[fault]\ncontroller = "127.0.0.1"\n')
        cls.inside("systemctl", "daemon-reload", check=True)
        cls.inside("systemctl", "start", "munge.service")
        cls.inside("systemctl", "start", "--no-block", *UNITS, check=True)

    def shown(self, unit, *names):
        text = self.inside("systemctl", "show", unit, *(f"-p{name}" for name in names)).stdout
        return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)

    def agents(self):
        return self.inside("banyan-fault", "agents").stdout

    def test_they_run(self):
        self.wait(lambda: "connected" in self.agents(), "the agent reaches the controller")
        for unit in UNITS:
            with self.subTest(unit):
                self.wait(lambda: self.shown(unit, "ActiveState")["ActiveState"] == "active", f"{unit} runs")
                self.assertEqual(self.shown(unit, "NRestarts")["NRestarts"], "0", self.evidence())
        self.assertIn("running", self.inside("banyan-fault", "status", check=True).stdout)

    def test_they_have_little(self):
        """What the kernel says of the processes, not what the units ask for."""
        allowed = {"banyan-faultd-agent.service": {10, 34}, "banyan-faultd-controller.service": {2, 10}}
        for unit, capabilities in allowed.items():
            self.wait(lambda: self.shown(unit, "ActiveState")["ActiveState"] == "active", f"{unit} runs")
            pid = self.shown(unit, "MainPID")["MainPID"]
            text = (self.root / "proc" / pid / "status").read_text()
            fields = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
            for name in ("CapBnd", "CapEff"):
                have = {bit for bit in range(64) if int(fields[name], 16) >> bit & 1}
                self.assertLessEqual(have, capabilities, f"{unit} {name}")
            self.assertEqual(fields["NoNewPrivs"].strip(), "1")
            self.assertEqual(fields["Seccomp"].strip(), "2")
            limits = (self.root / "proc" / pid / "limits").read_text()
            files = next(line for line in limits.splitlines() if line.startswith("Max open files")).split()
            self.assertEqual(files[3], files[4], "the daemon raises its limit to the hard one")

    def test_a_save_under_the_units_filter(self):
        """A user's rank saves into a directory for sharing: with his identity, and with what else a save asks the kernel for."""
        unit = UNITS[2]
        self.wait(lambda: self.shown(unit, "ActiveState")["ActiveState"] == "active", f"{unit} runs")
        daemon = self.shown(unit, "MainPID")["MainPID"]
        for pid in [daemon, *(self.root / "proc" / daemon / "task" / daemon / "children").read_text().split()]:
            self.assertIn("Seccomp:\t2", (self.root / "proc" / pid / "status").read_text())
        tools = self.root / "opt/hostile"
        tools.mkdir()
        shutil.copy(REPOSITORY / "test/hostile/lone_ckptd.py", tools)
        (tools / "harness.py").write_text("def program(name):\n    return name\n")
        (tools / "save.py").write_text(SAVE)
        done = self.inside("python3", "/opt/hostile/save.py")
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "saved 0o2770"), done.stderr + self.evidence())

    def test_a_programs_name_is_no_fault(self):
        self.wait(lambda: "connected" in self.agents(), "the agent reaches the controller")
        source = self.dir / "crash.c"
        # The file's name stands in the middle of the kernel's line; a short name before it keeps it whole.
        source.write_text('#include <sys/prctl.h>\n'
                          'int main(void) { prctl(PR_SET_NAME, "a.out", 0, 0, 0); *(volatile int *)0 = 1; return 0; }\n')
        work = self.dir / "work"
        work.mkdir(mode=0o755)
        self.dir.chmod(0o755)
        crash = work / FORGED
        subprocess.run(["cc", "-o", crash, source], check=True)
        crash.chmod(0o755)
        ended = subprocess.run(["setpriv", "--reuid=61001", "--regid=61001", "--clear-groups", crash], check=False)
        self.assertEqual(ended.returncode, -signal.SIGSEGV)
        # Root's own write comes after it. A new agent reads the log from its oldest record on.
        with open("/dev/kmsg", "wb", buffering=0) as kmsg:
            # Without the newline the record stays open, and unread, until the next one comes.
            kmsg.write(b"<2>" + FORGED.encode() + b"\n")
        self.assertIn(f"in {FORGED}[", subprocess.run(["dmesg"], capture_output=True, text=True, errors="replace",
                                                      check=True).stdout, "the kernel printed no name: exception-trace is off")
        records = records_in_the_log()
        self.inside("systemctl", "restart", UNITS[1], check=True)
        self.wait(lambda: self.lines_read() >= records, "the agent has read the log")
        self.wait(lambda: "connected" in self.agents(), "the agent reaches the controller")
        log = self.root / f"var/log/{UNITS[1]}.log"
        self.wait(lambda: "looks like a fault, but" in log.read_text(), "what root wrote is not believed, which is said")
        # Jobs of other tests that ran out of memory stand in the host's log, too.
        self.assertNotRegex(self.inside("banyan-fault", "incidents").stdout, "GPU|Xid")

    def lines_read(self):
        asked = self.inside("python3", "-c", "import urllib.request as r; print(r.urlopen('http://127.0.0.1:9712/metrics').read().decode())")
        counts = [line.split()[-1] for line in asked.stdout.splitlines() if line.startswith("banyan_fault_log_lines_total{")]
        return sum(float(count) for count in counts)


def records_in_the_log():
    """How many records /dev/kmsg holds."""
    log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    count = 0
    try:
        while True:
            try:
                os.read(log, 16384)
                count += 1
            except BlockingIOError:
                return count
            except BrokenPipeError:
                count = 0
    finally:
        os.close(log)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""Real checkpoint daemons on loopback, with a munged of their own: a node each."""

import contextlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path

BUILD = Path(os.environ.get("BANYAN_BUILD", Path(__file__).resolve().parents[2] / "build" / "demo"))
OPEN, STEP, DETACH, CLOSE, SEAL_NOW, STATUS = 0x10, 0x11, 0x12, 0x13, 0x19, 0x1A
TOO_LONG = 60  # seconds: then something is broken
_count = 0


def until(condition, what):
    """Waits for a condition; the limit only ends what is broken."""
    end = time.monotonic() + TOO_LONG
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"never: {what}")
        time.sleep(0.01)
    return found


def ask(path, kind, meta, timeout=40):
    """One request on a daemon's socket, and its answer."""
    text = json.dumps(meta).encode()
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(timeout)
        s.connect(str(path))
        s.sendall(b"BNYN" + struct.pack("<HHII", 1, kind, len(text), 0) + text)
        with s.makefile("rb") as stream:
            head = stream.read(16)
            return json.loads(stream.read(struct.unpack("<HHII", head[4:])[2]))


class Daemons:
    """Nodes 1 to `nodes`. `extra`: lines of [ckptd] in banyan.conf."""

    def __init__(self, nodes=1, extra=""):
        global _count
        _count += 1
        self.dir = Path(tempfile.mkdtemp(prefix="banyan-python-"))
        self.dir.chmod(0o755)
        self.nodes, self.base, self.processes = nodes, 30 + (os.getpid() + _count * 7) % 200, {}
        self._start_munged()
        with socket.socket() as s:
            s.bind((self.addr(1), 0))
            port = s.getsockname()[1]
        (self.dir / "banyan.conf").write_text(
            f'[munge]\nsocket = "{self.dir}/munge/socket"\n[fault]\nagent_socket = "{self.dir}/agent-%n.sock"\n'
            f'[ckptd]\nsocket = "{self.dir}/%n.sock"\nport = {port}\n{extra}')
        for node in range(1, nodes + 1):
            self.start(node)

    def _start_munged(self):
        key, home = self.dir / "munge.key", self.dir / "munge"
        key.write_bytes(bytes((i * 37 + 11) & 255 for i in range(128)))
        key.chmod(0o600)
        home.mkdir()
        home.chmod(0o755)
        words = ["munged", "--foreground", "--force", "--key-file", key, "--socket", home / "socket", "--pid-file", home / "pid",
                 "--log-file", home / "log", "--seed-file", home / "seed"]
        with open(self.dir / "munged.out", "wb") as out:
            self.munged = subprocess.Popen([str(w) for w in words], stdout=out, stderr=out)
        until((home / "socket").exists, "munged answers")

    def addr(self, node):
        return f"127.{self.base}.0.{node}"

    def socket(self, node):
        return self.dir / f"n{node}.sock"

    def start(self, node):
        words = [BUILD / "bin" / "banyan-ckptd", "--config", self.dir / "banyan.conf", "--node", f"n{node}", "--bind", self.addr(node)]
        with open(self.dir / f"n{node}.log", "ab") as log:
            self.processes[node] = subprocess.Popen([str(w) for w in words], stdout=log, stderr=log)
        until(lambda: self.status(node) is not None, f"the daemon of n{node} answers: see {self.dir}")

    def status(self, node):
        with contextlib.suppress(OSError):
            return ask(self.socket(node), STATUS, {}, 2)
        return None

    def kill(self, node, number=signal.SIGKILL):
        self.processes[node].send_signal(number)
        if number == signal.SIGKILL:
            self.processes.pop(node).wait()

    def open(self, job, per_node=1, nodes=None, directory="", flush=0, **more):
        """Opens the job's session on its nodes, `per_node` ranks each, and begins its step."""
        nodes = nodes or list(range(1, self.nodes + 1))
        listed = [{"name": f"n{n}", "addr": self.addr(n), "ranks": list(range(i * per_node, (i + 1) * per_node)), "buddy": (i + 1) % len(nodes)}
                  for i, n in enumerate(nodes)]
        request = {"job": job, "restart": 0, "uid": os.geteuid(), "gid": os.getegid(), "self": "", "world": per_node * len(nodes),
                   "nodes": listed, "spares": [], "dir": str(directory), "every": 1, "flush": flush, "buffers": 3, "bytes": 0, **more}
        for node in nodes:
            answer = ask(self.socket(node), OPEN, {**request, "self": f"n{node}"})
            assert "error" not in answer, answer
        self.begin(job, more.get("step", 0), nodes)

    def begin(self, job, step, nodes=None):
        """The next launch of the job's program."""
        nodes = nodes or list(range(1, self.nodes + 1))
        for node in nodes:
            answer = ask(self.socket(node), STEP, {"job": job, "step": step, "nodes": [f"n{n}" for n in nodes]})
            assert "error" not in answer, answer

    def detach(self, job, node):
        """The job has ended there."""
        answer = ask(self.socket(node), DETACH, {"job": job})
        assert "error" not in answer, answer

    def close(self, job, node):
        """Nothing of the job is left in this node's memory."""
        answer = ask(self.socket(node), CLOSE, {"job": job})
        assert "error" not in answer, answer

    def session(self, node, job):
        found = [s for s in self.status(node)["sessions"] if s["job"] == job]
        return found[0] if found else None

    def environment(self, job, rank, world, node=1):
        return {"BANYAN_JOB": str(job), "RANK": str(rank), "WORLD_SIZE": str(world), "BANYAN_CKPT_SOCKET": str(self.socket(node)),
                "BANYAN_LIB": str(BUILD / "lib" / "libbanyan_ckpt.so.0"), "BANYAN_CKPT_WAIT_MS": "1500"}

    def stop(self):
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
        self.munged.terminate()
        self.munged.wait()
        if keep := os.environ.get("BANYAN_KEEP"):
            to = Path(keep) / "python" / self.dir.name
            to.mkdir(parents=True, exist_ok=True)
            for log in self.dir.glob("*.log"):
                shutil.copy(log, to)
        shutil.rmtree(self.dir, ignore_errors=True)

# SPDX-License-Identifier: BSD-3-Clause
"""One real banyan-ckptd of root with jobs of one node, and attackers who are real other users."""
import array
import contextlib
import json
import mmap
import os
import pathlib
import platform
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback

from harness import program

ALICE, MALLORY, TRUDY = 61001, 61002, 61003
PAGE = 65536 if platform.machine() == "aarch64" else 4096
TYPES = dict(reply=1, session_open=0x10, step_open=0x11, session_detach=0x12, session_close=0x13, attach=0x14, sealed=0x15,
             skipped=0x16, restore=0x17, finalize=0x18, seal_now=0x19, status=0x1a, attach_part=0x1b, given_up=0x1d)
MASK = (1 << 64) - 1


def frame(kind, meta, claimed=None):
    text = json.dumps({"protocol": [1, 1], **meta} if kind == "attach" else meta).encode()
    return struct.pack("<4sHHII", b"BNYN", 1, TYPES[kind], len(text) if claimed is None else claimed, 0) + text


def receive(link, count):
    data = b""
    while len(data) < count:
        part = link.recv(count - len(data))
        if not part:
            raise EOFError(f"closed after {len(data)} of {count} bytes")
        data += part
    return data


def nonce(sequence, step, generation, count):
    z = (sequence * 0x9e3779b97f4a7c15 & MASK) ^ (step * 0xbf58476d1ce4e5b9 & MASK) ^ (generation * 0x94d049bb133111eb & MASK) ^ count
    z = ((z ^ (z >> 30)) * 0xbf58476d1ce4e5b9) & MASK
    z = ((z ^ (z >> 27)) * 0x94d049bb133111eb) & MASK
    return z ^ (z >> 31)


def eventually(done, seconds=60):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if done():
            return True
        time.sleep(0.02)
    return bool(done())


def as_user(uid, body):
    """body() in a process of its own as `uid`; what it returns goes through JSON. An exception there is one here."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            answer = {"value": body()}
        except BaseException:
            answer = {"error": traceback.format_exc()}
        os.write(write, json.dumps(answer).encode())
        os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    answer = json.loads(text or b'{"error": "the process ended"}')
    if "error" in answer:
        raise AssertionError(f"as uid {uid}: {answer['error']}")
    return answer["value"]


class Link:
    """A connection to the daemon's socket."""

    def __init__(self, path, seconds=30):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(seconds)
        self.socket.connect(str(path))

    def call(self, kind, meta=None):
        return self.call_passing(kind, meta)[0]

    def call_passing(self, kind, meta=None):
        """The reply, and the descriptor that came with it or None."""
        self.socket.sendall(frame(kind, meta or {}))
        descriptors = array.array("i")
        head, extra, _, _ = self.socket.recvmsg(16, socket.CMSG_LEN(16))
        if not head:
            raise EOFError("closed")
        for level, kind_, data in extra:
            if level == socket.SOL_SOCKET and kind_ == socket.SCM_RIGHTS:
                descriptors.frombytes(data[:len(data) - len(data) % 4])
        head += receive(self.socket, 16 - len(head))
        _, _, _, count, _ = struct.unpack("<4sHHII", head)
        return json.loads(receive(self.socket, count) or b"{}"), (descriptors[0] if descriptors else None)

    def close(self):
        self.socket.close()


class Rank:
    """Rank 0 of a job, by hand: what a hostile program can do with the memory that it is given."""

    def __init__(self, path, job, count=50_000, link=None):
        self.link = link or Link(path)
        self.reply, self.fd = self.link.call_passing("attach", dict(job=job, rank=0, world=1, bytes=count))
        if self.fd is None:
            raise RuntimeError(self.reply.get("error", str(self.reply)))
        self.memory = mmap.mmap(self.fd, os.fstat(self.fd).st_size)
        self.generation, self.buffer_bytes = self.reply["generation"], self.reply["buffer_bytes"]

    def restore(self):
        """What a process that may not be the rank's first one does before it saves."""
        reply = self.link.call("restore")
        while "waits" in reply:
            reply = self.link.call("restore")
        self.generation = reply["generation"]

    def seal(self, buffer, step, data, count=None, generation=None):
        at, place = 576 + 64 * buffer, PAGE + buffer * self.buffer_bytes
        self.memory[place:place + len(data)] = data
        sequence = struct.unpack_from("<Q", self.memory, at)[0] // 2 * 2 + 2
        count = len(data) if count is None else count
        generation = self.generation if generation is None else generation
        struct.pack_into("<QQQQQ", self.memory, at, sequence, step, generation, count, nonce(sequence, step, generation, count))
        self.link.socket.sendall(frame("sealed", {"buffer": buffer}))

    def durable(self):
        """The newest step in storage, plus 1."""
        return struct.unpack_from("<Q", self.memory, 48)[0]

    def warning(self):
        return self.memory[64:64 + 512].split(b"\0")[0].decode()


class Daemon:
    def __init__(self, extra="", before=(), descriptors=None):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="banyan-hostile-"))
        self.dir.chmod(0o755)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.socket, self.log = self.dir / "ckptd.sock", self.dir / "log"
        (self.dir / "banyan.conf").write_text(f'[ckptd]\nsocket = "{self.socket}"\nport = {port}\n{extra}\n')
        limit = ["prlimit", f"--nofile={descriptors}:{descriptors}"] if descriptors else []
        self.process = subprocess.Popen([*limit, *before, program("banyan-ckptd"), "--config", self.dir / "banyan.conf", "--node", "n1",
                                         "--bind", "127.0.0.1", "--log", self.log], stderr=(self.dir / "err").open("wb"))
        if not eventually(lambda: self.socket.exists() and self.alive()):
            raise RuntimeError((self.dir / "err").read_text())

    def alive(self):
        with contextlib.suppress(OSError, EOFError):
            return "node" in self.call("status")
        return False

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.process.kill()
        self.process.wait()
        if kind:
            sys.stderr.write((self.log.read_text(errors="replace") if self.log.exists() else "") + (self.dir / "err").read_text(errors="replace"))
        shutil.rmtree(self.dir, ignore_errors=True)

    def call(self, kind, meta=None, seconds=30):
        link = Link(self.socket, seconds)
        try:
            return link.call(kind, meta)
        finally:
            link.close()

    def folder(self, name, uid, mode=0o700):
        path = self.dir / name
        path.mkdir()
        os.chown(path, uid, uid)
        path.chmod(mode)
        return path

    def open(self, job, uid, directory="", flush=0, **more):
        meta = dict(job=job, restart=0, uid=uid, gid=uid, self="n1", world=1, dir=str(directory), every=1, flush=flush, buffers=3, bytes=0,
                    nodes=[dict(name="n1", addr="127.0.0.1", ranks=[0], buddy=0)], spares=[], **more)
        answer = self.call("session_open", meta)
        if "error" in answer:
            return answer
        self.call("step_open", dict(job=job, step=0, nodes=["n1"]))
        return answer

    def session(self, job):
        return next((s for s in self.call("status")["sessions"] if s["job"] == job), None)

    def memory(self, key="VmRSS"):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
        raise RuntimeError(key)

    def processor_time(self):
        """In seconds."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def waits_in(self):
        """Where in the kernel the daemon's own thread is."""
        return pathlib.Path(f"/proc/{self.process.pid}/stack").read_text()

    def descriptors(self, kind=""):
        """How many it has, of a kind: socket, anon_inode:[pidfd], /memfd:."""
        count = 0
        for fd in pathlib.Path(f"/proc/{self.process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                count += os.readlink(fd).startswith(kind)
        return count

    def forget_peak(self):
        pathlib.Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")


def saves_to_storage(path, job, step):
    """Whether a rank of `job` can save a step to storage now; how a user sees that his checkpoints work."""
    rank = Rank(path, job)
    rank.restore()
    rank.seal(step % 3, step, b"a" * 40_000)
    done = eventually(lambda: rank.durable() == step + 1)
    rank.link.close()
    return done


def stop(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Another user of the controller's host against banyan-faultd: its socket, its descriptors, its disk, its numbers' port.

No Slurm: a controller of its own, on a port and in a folder of its own. Users are numbers; none is made.
"""

import json
import os
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import tempfile
import time
import unittest
import warnings
from pathlib import Path

from harness import main, program

DEADLINE = 30
MAGIC = b"BNYN"
ADMIN = 0x40  # message::admin of fault/net/protocol.hpp


def frame(kind, meta, meta_bytes=None):
    text = json.dumps(meta).encode()
    return struct.pack("<4sHHII", MAGIC, 1, kind, len(text) if meta_bytes is None else meta_bytes, 0) + text


def receive(peer):
    head = b""
    while len(head) < 16:
        more = peer.recv(16 - len(head))
        if not more:
            return None
        head += more
    size = struct.unpack("<4sHHII", head)[3]
    text = b""
    while len(text) < size:
        text += peer.recv(size - len(text))
    return json.loads(text)


class Attack(unittest.TestCase):
    def setUp(self):
        self.dir = Path(tempfile.mkdtemp(prefix="banyan-hostile-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.dir.chmod(0o755)
        self.socket = str(self.dir / "faultd.sock")
        self.log = self.dir / "log"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.conf = self.dir / "banyan.conf"
        self.controller = None

    def start(self, history=None, more="", prefix=()):
        self.conf.write_text(f'[fault]\nport = {self.port}\nbind = "127.0.0.1"\nsocket = "{self.socket}"\n'
                             f'history = "{history or self.dir / "incidents.db"}"\n{more}\n')
        self.controller = subprocess.Popen([*prefix, program("banyan-faultd"), "controller", "--config", self.conf,
                                            "--log", self.log])
        self.addCleanup(self.stop)
        self.wait(self.listens, "the controller listens")

    def listens(self):
        """Its socket is there before it listens."""
        with socket.socket(socket.AF_UNIX) as peer:
            return self.controller.poll() is None and peer.connect_ex(self.socket) == 0

    def stop(self):
        if self.controller.poll() is None:
            self.controller.send_signal(signal.SIGTERM)
            self.controller.wait(DEADLINE)

    def wait(self, condition, what):
        end = time.monotonic() + DEADLINE
        while not condition():
            if time.monotonic() > end:
                self.fail(f"{what}: not within {DEADLINE} s\n{self.log.read_text() if self.log.exists() else ''}")
            time.sleep(0.02)

    def tool(self, *words):
        return subprocess.run([program("banyan-fault"), "--config", self.conf, *words], capture_output=True, text=True,
                              timeout=DEADLINE, check=False)

    def connect(self):
        peer = socket.socket(socket.AF_UNIX)
        self.addCleanup(peer.close)
        peer.settimeout(DEADLINE)
        peer.connect(self.socket)
        return peer

    def as_user(self, uid, action):
        """Runs action() in a process of that user; its result comes back as JSON."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            warnings.simplefilter("ignore", ResourceWarning)  # what it leaves open ends with it
            try:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                os.write(writer, json.dumps(action()).encode())
                status = 0
            finally:
                os._exit(status)
        os.close(writer)
        with os.fdopen(reader) as answer:
            text = answer.read()
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        return json.loads(text)

    def held_by_user(self, uid, count):
        """A process of that user which keeps `count` idle connections until the test ends."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                peers = []
                for _ in range(count):
                    peer = socket.socket(socket.AF_UNIX)
                    peer.connect(self.socket)  # waits while the queue is full
                    peers.append(peer)
                os.write(writer, b"x")
                signal.pause()
            finally:
                os._exit(0)
        os.close(writer)
        self.addCleanup(os.waitpid, child, 0)
        self.addCleanup(os.kill, child, signal.SIGKILL)
        os.read(reader, 1)
        os.close(reader)
        return child

    def test_idle_connections_leave_room(self):
        self.start()
        for uid in (61001, 61002):
            self.held_by_user(uid, 200)
        descriptors = Path(f"/proc/{self.controller.pid}/fd")
        before = len(list(descriptors.iterdir()))
        answer = self.tool("status")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertGreater(len(list(descriptors.iterdir())), before / 2, "root waited until the idle ones were thrown out")
        # Another user is served as well.
        def ask():
            peer = socket.socket(socket.AF_UNIX)
            peer.settimeout(DEADLINE)
            peer.connect(self.socket)
            peer.sendall(frame(ADMIN, {"cmd": "status"}))
            return receive(peer)
        self.assertIn("pid", self.as_user(61003, ask))

    def test_ever_new_uids_lock_nobody_out(self):
        """One person has thousands of them, by /etc/subuid."""
        self.start()
        for uid in range(200_000, 200_096):
            self.held_by_user(uid, 1)

        def ask():
            with socket.socket(socket.AF_UNIX) as peer:
                peer.settimeout(DEADLINE)
                peer.connect(self.socket)
                peer.sendall(frame(ADMIN, {"cmd": "status"}))
                return receive(peer)
        self.assertIn("pid", self.as_user(61003, ask))

    def test_a_user_learns_that_he_has_too_many(self):
        self.start()
        def many():
            peers = [socket.socket(socket.AF_UNIX) for _ in range(9)]
            for peer in peers:
                peer.settimeout(DEADLINE)
                peer.connect(self.socket)
            return receive(peers[-1])
        self.assertIn("too many", self.as_user(61001, many)["error"])

    def test_silence_and_size_end_the_connection(self):
        self.start()
        silent, half, huge = self.connect(), self.connect(), self.connect()
        half.sendall(frame(ADMIN, {"cmd": "status"})[:10])
        huge.sendall(frame(ADMIN, {"cmd": "status"}, meta_bytes=4 << 20))
        for peer in (huge, silent, half):
            try:
                self.assertEqual(peer.recv(1), b"")
            except ConnectionResetError:
                pass  # ended with bytes unread

    def test_a_user_changes_nothing_and_polls_little(self):
        self.start()
        def ask():
            answers = []
            for meta in ({"cmd": "close", "number": 1}, {"cmd": "resume", "node": "n01"}, {"cmd": "reset-breaker"}):
                peer = socket.socket(socket.AF_UNIX)
                peer.settimeout(DEADLINE)
                peer.connect(self.socket)
                peer.sendall(frame(ADMIN, meta))
                answers.append(receive(peer).get("error", ""))
                peer.close()
            return answers
        for text in self.as_user(61001, ask):
            self.assertIn("for root only", text)
        def poll():
            peers, found = [], []
            for _ in range(4):
                peer = socket.socket(socket.AF_UNIX)
                peer.settimeout(DEADLINE)
                peer.connect(self.socket)
                peers.append(peer)
            peers[0].sendall(frame(ADMIN, {"cmd": "incidents"}))
            now = receive(peers.pop(0))["revision"]
            for peer in peers:
                peer.sendall(frame(ADMIN, {"cmd": "incidents", "revision": now}))
            for peer in peers:
                found.append(receive(peer).get("error", ""))
            return found
        self.assertEqual(sum("already" in text for text in self.as_user(61002, poll)), 1)

    def test_no_descriptors(self):
        """At the limit it says so once, does not spin, and takes connections again afterwards."""
        self.start(prefix=("prlimit", "--nofile=24:24"))
        pid = self.controller.pid
        held = [self.connect() for _ in range(40)]
        self.wait(lambda: "cannot take a connection" in self.log.read_text(), "it says that there are no descriptors")
        before = cpu_seconds(pid)
        time.sleep(1)
        self.assertLess(cpu_seconds(pid) - before, 0.5, "the accept loop spins")
        for peer in held:
            peer.close()
        self.wait(lambda: self.tool("status").returncode == 0, "it answers again")
        text = self.log.read_text()
        self.assertEqual(text.count("cannot take a connection"), 1)
        self.assertEqual(text.count("this process may open 24 files"), 1)

    def test_full_disk_under_the_history(self):
        disk = self.dir / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=False)
        self.start(history=disk / "incidents.db")
        # Not while it begins: without a history it does not.
        self.wait(lambda: self.tool("incidents").returncode == 0, "the controller answers")
        with open(disk / "ballast", "wb", buffering=0) as ballast:
            with self.assertRaises(OSError):
                while True:
                    ballast.write(b"x" * 4096)
        for _ in range(3):
            done = self.tool("reset-breaker")
            self.assertEqual(done.returncode, 0, done.stderr + self.log.read_text())
        self.wait(lambda: "the history cannot be used" in self.log.read_text(), "it says that the disk is full")
        self.assertEqual(self.tool("incidents").returncode, 0)
        os.unlink(disk / "ballast")
        self.assertEqual(self.tool("reset-breaker").returncode, 0)
        self.assertEqual(self.log.read_text().count("the history cannot be used"), 1)
        self.stop()
        with sqlite3.connect(disk / "incidents.db") as history:
            self.assertEqual(history.execute("SELECT value FROM flags WHERE name='breaker'").fetchall(), [(0,)])

    def remember(self, *incidents):
        """A history with these, as an earlier controller left it."""
        self.start()
        self.wait(lambda: self.tool("status").returncode == 0, "the history is there")
        self.stop()
        with sqlite3.connect(self.dir / "incidents.db") as history:
            for number, more in enumerate(incidents, 1):
                whole = {"number": number, "object": {"kind": "gpu", "node": f"n{number:02}", "bdf": "0000:03:00", "gpu": 3}, "severity": "error",
                         "reason": "gpu-reset", "state": "done", "cause": "Xid 119 GPU 3", "precedence": 4, "boot": "b", "actions": [],
                         "times": {"line_ms": number * 1000, "incident_ms": number * 1000, "last_ms": number * 1000}} | more
                history.execute("INSERT INTO incidents VALUES(?,?,0,?)", (number, whole["state"], json.dumps(whole)))

    def test_incidents_are_found_by_what_they_are(self):
        self.remember({}, {"jobs": [7]}, {"reason": "memory", "times": {"incident_ms": 3000, "closed_ms": 4000}}, {})
        self.start()
        self.wait(lambda: self.tool("status").returncode == 0, "the controller answers")

        def ids(*words):
            done = self.tool("incidents", "--json", *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            return [int(i["number"]) for i in json.loads(done.stdout)]
        self.assertEqual(ids(), [1, 2, 3, 4])
        for words, expected in ((["--node", "n[02-03]"], [2, 3]), (["--reason", "memory"], [3]), (["--state", "open"], [1, 2, 4]),
                                (["--state", "closed"], [3]), (["--job", "7"], [2]), (["--job", "8"], []), (["--until", "1970-01-01T00:00:02Z"], [1, 2]),
                                (["--since", "1970-01-01T00:00:03Z"], [3, 4]), (["--since", "1h"], []), (["--node", "n01", "--state", "closed"], [])):
            with self.subTest(words=words):
                self.assertEqual(ids(*words), expected)
        self.assertEqual(self.tool("incidents", "--node", "n09").stdout, "no incidents\n")
        for words, told in ((["--state", "x"], "possible are open"), (["--reason", "x"], "possible are checkpoint-damaged, disk"), (["--since", "x"], "no time"),
                            (["--node", "n[1-"], "n[1-"), (["--job", "x"], "--job")):
            with self.subTest(words=words):
                done = self.tool("incidents", *words)
                self.assertEqual(done.returncode, 2)
                self.assertIn(told, done.stderr)
        # A caller that is not banyan-fault.
        peer = self.connect()
        for wrong in ({"nodes": "n[1-9999999]"}, {"nodes": 7}, {"state": "x"}, {"job": -1}, {"since_ms": "x"}):
            peer.sendall(frame(ADMIN, {"cmd": "incidents"} | wrong))
            self.assertIn("error", receive(peer))

    def test_who_may_rule_on_what_is_held_back(self):
        self.remember({"state": "held", "held_ms": 1}, {"state": "done", "precedence": 2, "reason": "gpu-app"})
        self.start()
        self.wait(lambda: self.tool("status").returncode == 0, "the controller answers")

        def state():
            return json.loads(self.tool("explain", "f00001", "--json").stdout)["state"]

        def as_stranger(command):
            with socket.socket(socket.AF_UNIX) as peer:
                peer.connect(self.socket)
                peer.sendall(frame(ADMIN, {"cmd": command, "number": 1}))
                return receive(peer)
        for command in ("approve", "retry", "cancel"):
            self.assertIn("for root only", json.dumps(self.as_user(4711, lambda command=command: as_stranger(command))))
            for words, status in (([command], 2), ([command, "x"], 2), ([command, "f00099"], 3), ([command, "f00002"], 3)):
                with self.subTest(words=words):
                    done = self.tool(*words)
                    self.assertEqual(done.returncode, status, done.stderr)
        # Slurm does not answer here: it stays held.
        self.wait(lambda: state() == "held", "it was looked at")

        def ruled(command):
            done = None

            def settled():
                nonlocal done
                done = self.tool(command, "f00001")
                return "being acted on" not in done.stderr
            self.wait(settled, f"{command} is taken")
            return done
        done = ruled("approve")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("dry run: n01 stays in"), done.stdout)
        done = ruled("cancel")
        self.assertEqual((done.returncode, state()), (0, "done"), done.stderr)
        told = json.loads(self.tool("explain", "f00001", "--json").stdout)
        self.assertEqual([(a["what"], a["result"]) for a in told["actions"] if a["what"] in ("approve", "cancel")],
                         [("approve", "by uid 0, in dry run"), ("cancel", "by uid 0")])
        self.assertEqual(told["cancelled_by"], "uid 0")
        self.assertEqual(ruled("retry").returncode, 3)
        self.stop()
        self.start()
        self.wait(lambda: self.tool("status").returncode == 0, "the controller answers")
        self.assertEqual(state(), "done")

    def test_silent_callers_of_the_metrics(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.start(more=f'metrics = "127.0.0.1:{port}"')
        self.wait(lambda: "metrics on" in self.log.read_text(), "the metrics are served")
        held = []
        for _ in range(8):
            peer = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)
            self.addCleanup(peer.close)
            held.append(peer)
        with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE) as peer:
            peer.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            self.assertIn(b"200", peer.recv(64))
        self.assertEqual(self.tool("status").returncode, 0)


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    if os.geteuid() != 0:
        raise SystemExit("this test needs root: it runs as other users")
    main()

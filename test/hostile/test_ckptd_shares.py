# SPDX-License-Identifier: BSD-3-Clause
"""What all users of a node's banyan-ckptd share, and one of them wants for himself: its time, its memory, its log, its connections, the
memory of jobs that have ended; and a directory that a group shares."""
import contextlib
import ctypes
import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

from harness import program
from lone_ckptd import ALICE, MALLORY, TRUDY, Daemon, Link, Rank, as_user, eventually, frame, saves_to_storage, stop

MIB = 1 << 20


def forked(uid, body, gid=None):
    """body() in a process of its own as `uid`, which the caller ends."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.setgroups([])
            os.setgid(uid if gid is None else gid)
            os.setuid(uid)
            body()
        os._exit(0)
    return child


def open_world(daemon, job, uid, world, **more):
    """A job of so many ranks, all of them here."""
    meta = dict(job=job, restart=0, uid=uid, gid=uid, self="n1", world=world, dir="", every=1, flush=0, buffers=3, bytes=0,
                nodes=[dict(name="n1", addr="127.0.0.1", ranks=list(range(world)), buddy=0)], spares=[])
    meta.update(more)
    answer = daemon.call("session_open", meta)
    daemon.call("step_open", dict(job=job, step=0, nodes=["n1"]))
    return answer


class Memory(unittest.TestCase):
    def test_a_long_token_in_a_manifest(self):
        size = 48 * MIB
        for job, (head, filling, end) in enumerate(((b'"x":1', b"1", b"}"), (b'"x":"', b"a", b'"}'), (b'"', b"a", b'":1}'), (b'"x":', b" ", b"1}")), 1):
            with self.subTest(head=head), Daemon() as daemon:
                trap = daemon.folder("trap", MALLORY)
                daemon.open(job, MALLORY, trap, flush=1)
                ready, go = os.pipe(), os.pipe()

                def save():
                    rank = Rank(daemon.socket, job)
                    rank.restore()
                    os.write(ready[1], b"x")
                    os.read(go[0], 1)
                    # A step of that number is there already: the commit looks whose it is.
                    rank.seal(1, 1, b"m" * 40_000)
                    eventually(lambda: rank.durable() == 2 or rank.warning(), 40)

                child = forked(MALLORY, save)
                os.read(ready[0], 1)
                daemon.forget_peak()
                before = daemon.memory()

                def plant():
                    folder = trap / f"step-{1:012}"
                    folder.mkdir()
                    (folder / "COMMIT").write_text("00000000 1\n")
                    with (folder / "MANIFEST.json").open("wb") as manifest:
                        manifest.write(b'{"step":1,"job":9,"generation":1,"world":1,"files":[],' + head)
                        for _ in range(size // MIB):
                            manifest.write(filling * MIB)
                        manifest.write(end)

                as_user(MALLORY, plant)
                os.write(go[1], b"x")
                os.waitpid(child, 0)
                self.assertLess(daemon.memory("VmHWM") - before, 32 * MIB)
                self.assertTrue(daemon.alive())

    def test_a_request_that_cannot_be_met_gives_up_no_job(self):
        with Daemon('memory_limit = "300M"') as daemon:
            daemon.open(1, TRUDY)
            runs = forked(TRUDY, lambda: (Rank(daemon.socket, 1, 30 * MIB), signal.pause()))
            self.addCleanup(stop, runs)
            self.assertTrue(eventually(lambda: daemon.session(1)["memory_bytes"] > 80 * MIB))
            ended = ((2, ALICE), (3, ALICE), (4, 61004))
            for job, uid in ended:
                daemon.open(job, uid)

                def save(job=job):
                    rank = Rank(daemon.socket, job, 10 * MIB)
                    rank.restore()
                    rank.seal(1, 7, b"a" * 5000)
                    return eventually(lambda: struct.unpack_from("<Q", rank.memory, 32)[0] == 8)

                self.assertTrue(as_user(uid, save))
                daemon.call("session_detach", dict(job=job))
            daemon.open(9, MALLORY)
            ask = lambda size: Link(daemon.socket).call("attach", dict(job=9, rank=0, world=1, bytes=size))
            # Of 300 MiB 90 are a running job's: 270 are not to be had, whoever gives up what.
            self.assertIn("error", as_user(MALLORY, lambda: ask(90 * MIB)))
            self.assertTrue(all(daemon.session(job) for job, _ in ended), daemon.call("status"))
            # 195 are.
            self.assertNotIn("error", as_user(MALLORY, lambda: ask(65 * MIB)))
            self.assertFalse(all(daemon.session(job) for job, _ in ended))


class Words(unittest.TestCase):
    def test_a_long_name_in_a_shard(self):
        for size in (3 * MIB, 30 * MIB):
            with self.subTest(size=size), Daemon('memory_limit = "1G"') as daemon:
                open_world(daemon, 2, MALLORY, 1, slots=[dict(ranks=[0], buddy=0)], min_nodes=1, group=1)
                text = ('{"__metadata__":{"format":"banyan-ckpt 1","job":"2","rank":"1","world":"1","step":"000000000001"},"' + "n" * size +
                        '":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}').encode()
                image = struct.pack("<Q", len(text)) + text + b"\0"

                def save():
                    rank = Rank(daemon.socket, 2, len(image) + 4096)
                    rank.restore()
                    rank.seal(1, 1, image)
                    return eventually(lambda: struct.unpack_from("<Q", rank.memory, 32)[0] == 2)

                self.assertTrue(as_user(MALLORY, save))
                daemon.forget_peak()
                before = daemon.memory()

                def restore():
                    link = Link(daemon.socket, 60)
                    link.call_passing("attach", dict(job=2, rank=0, world=1, bytes=len(image) + 4096))
                    return "error" in link.call("restore")

                self.assertTrue(as_user(MALLORY, restore))
                told = daemon.session(2)["warning"]
                self.assertTrue(told)
                self.assertLessEqual(len(told), 1024)
                self.assertLess(daemon.log.stat().st_size, 64 << 10)
                self.assertLess(daemon.memory("VmHWM") - before, 32 * MIB)

    def test_who_fills_the_log_silences_nobody(self):
        with tempfile.TemporaryDirectory() as place:
            agent = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self.addCleanup(agent.close)
            agent.bind(f"{place}/agent.sock")
            agent.settimeout(5)
            with Daemon(f'\n[fault]\nagent_socket = "{place}/agent.sock"') as daemon:
                daemon.open(1, ALICE)
                jobs = range(100, 170)
                for job in jobs:
                    open_world(daemon, job, MALLORY, 2)

                def crowd():
                    for job in jobs:
                        for kind in ("attach", "given_up"):
                            with contextlib.closing(Link(daemon.socket)) as link:  # of another number of ranks
                                link.call(kind, dict(job=job, rank=1, world=9, bytes=1, step=1, why="x"))
                    # Processes that end, whose word goes into the log as well.
                    for job in jobs:
                        stop_here = os.fork()
                        if stop_here == 0:
                            open_rank = Link(daemon.socket)
                            open_rank.call_passing("attach", dict(job=job, rank=0, world=2, bytes=4096))
                            os._exit(0)
                        os.waitpid(stop_here, 0)

                as_user(MALLORY, crowd)
                agent.settimeout(0.5)
                with contextlib.suppress(TimeoutError):
                    while True:
                        agent.recv(4096)
                agent.settimeout(5)
                said = as_user(ALICE, lambda: Link(daemon.socket).call("given_up", dict(job=1, step=1, why="no node is left")))
                self.assertNotIn("error", said)
                self.assertIn(b"no node is left", agent.recv(4096))


class Time(unittest.TestCase):
    def test_attached_ranks_ask_no_faster_than_others(self):
        with Daemon(descriptors=4096) as daemon:
            open_world(daemon, 2, MALLORY, 32)

            def flood():
                asks, selector = frame("status", {}), selectors.DefaultSelector()
                for rank in range(32):
                    link = Link(daemon.socket, 60)
                    _, memory = link.call_passing("attach", dict(job=2, rank=rank, world=32, bytes=4096))
                    os.close(memory)
                    selector.register(link.socket, selectors.EVENT_READ)
                    link.socket.sendall(asks)
                answers, began = 0, time.monotonic()
                while time.monotonic() - began < 3:
                    for key, _ in selector.select(0.5):
                        head = key.fileobj.recv(16, socket.MSG_WAITALL)
                        key.fileobj.recv(struct.unpack("<4sHHII", head)[3], socket.MSG_WAITALL)
                        answers += 1
                        key.fileobj.sendall(asks)
                return [answers, time.monotonic() - began]

            answers, seconds = as_user(MALLORY, flood)
            self.assertLess(answers, 100 + 500 * seconds + 32)
            self.assertGreater(answers, 32)

    def test_uids_without_a_session_lock_nobody_out(self):
        with Daemon(descriptors=256) as daemon:  # 64 connections of users
            daemon.open(1, ALICE)
            held = []
            for uid in range(200_000, 200_080):
                read, write = os.pipe()

                def hold(write=write):
                    link = None
                    with contextlib.suppress(OSError):
                        link = Link(daemon.socket, 5)
                    os.write(write, b"x")
                    signal.pause()
                    link.close()

                held.append(forked(uid, hold))
                self.addCleanup(stop, held[-1])
                os.read(read, 1)
                os.close(read)
                os.close(write)
            self.assertEqual(as_user(ALICE, lambda: Rank(daemon.socket, 1).reply["buffers"]), 3)
            self.assertEqual(daemon.call("status", seconds=5)["node"], "n1")


class Answers(unittest.TestCase):
    """A user of 250 jobs, whose status is long."""
    JOBS = range(1000, 1250)

    def daemon(self, **more):
        daemon = Daemon(**more)
        self.addCleanup(daemon.__exit__, None)
        for job in self.JOBS:
            daemon.open(job, MALLORY)
            daemon.call("session_detach", dict(job=job))
        return daemon

    def test_one_answer_is_no_longer_than_a_page_and_the_pages_are_all(self):
        daemon = self.daemon()

        def look():
            link, meta, jobs, longest = Link(daemon.socket), {}, [], 0
            while True:
                answer = link.call("status", meta)
                jobs = [s["job"] for s in answer["sessions"]] + jobs
                longest = max(longest, len(json.dumps(answer)))
                if "more" not in answer:
                    return dict(jobs=jobs, longest=longest)
                meta = dict(before=answer["more"])

        told = as_user(MALLORY, look)
        self.assertLess(told["longest"], 100_000)
        self.assertEqual(told["jobs"], list(self.JOBS))
        # Who asks as tools of before did hears of his newest jobs; root of all.
        self.assertEqual(as_user(MALLORY, lambda: Link(daemon.socket).call("status")["sessions"][-1]["job"]), self.JOBS[-1])
        self.assertEqual([s["job"] for s in daemon.call("status")["sessions"]], list(self.JOBS))
        shown = subprocess.run([program("banyan-ckpt"), "--socket", daemon.socket, "status", "--json"], capture_output=True, text=True)
        self.assertEqual([s["job"] for s in json.loads(shown.stdout)["sessions"]], list(self.JOBS), shown.stderr)

    def test_a_long_answer_costs_more_of_ones_share_than_a_short_one(self):
        daemon = self.daemon()

        def flood():
            links = [Link(daemon.socket, 60) for _ in range(30)]
            selector = selectors.DefaultSelector()
            for link in links:
                selector.register(link.socket, selectors.EVENT_READ)
                link.socket.sendall(frame("status", {}))
            count, began = 0, time.monotonic()
            while time.monotonic() - began < 3:
                for key, _ in selector.select(0.5):
                    head = key.fileobj.recv(16, socket.MSG_WAITALL)
                    count += len(key.fileobj.recv(struct.unpack("<4sHHII", head)[3], socket.MSG_WAITALL))
                    key.fileobj.sendall(frame("status", {}))
            return [count, time.monotonic() - began]

        count, seconds = as_user(MALLORY, flood)
        # 4 KiB are one of the 500 requests a second; a page more or less.
        self.assertLess(count, 4096 * (100 + 500 * seconds) + 5 * 70_000)
        self.assertGreater(count, 1_000_000)

    def test_answers_that_nobody_reads_take_little_memory(self):
        daemon = self.daemon(descriptors=4096)
        daemon.forget_peak()
        before = daemon.memory()

        def hoard():
            links = [Link(daemon.socket, 60) for _ in range(250)]
            for link in links:
                link.socket.sendall(frame("status", {}))
            refused = 0
            for link in links[-20:]:
                head = link.socket.recv(16, socket.MSG_WAITALL)
                refused += b"wait to be read" in link.socket.recv(struct.unpack("<4sHHII", head)[3], socket.MSG_WAITALL)
            return refused

        self.assertGreater(as_user(MALLORY, hoard), 0)
        self.assertLess(daemon.memory("VmHWM") - before, 16 * MIB)
        # Who reads is answered again.
        self.assertIn("sessions", as_user(MALLORY, lambda: Link(daemon.socket).call("status")))

    def test_requests_of_a_connection_that_has_hung_up_are_not_served(self):
        daemon = self.daemon()
        quiet = daemon.descriptors("socket:")
        spent = daemon.processor_time()
        for _ in range(100):
            daemon.call("status")
        of_one = (daemon.processor_time() - spent) / 100

        def ask_and_go():
            for _ in range(250):
                link = Link(daemon.socket)
                link.socket.sendall(frame("status", {}))
                link.close()

        os.kill(daemon.process.pid, signal.SIGSTOP)
        as_user(MALLORY, ask_and_go)
        spent = daemon.processor_time()
        os.kill(daemon.process.pid, signal.SIGCONT)
        self.assertIn("sessions", as_user(ALICE, lambda: Link(daemon.socket).call("status")))  # all have come before
        self.assertTrue(eventually(lambda: daemon.descriptors("socket:") <= quiet))
        self.assertLess(daemon.processor_time() - spent, 60 * of_one)


class Directories(unittest.TestCase):
    GROUP = 61500

    def test_a_folder_exchanged_by_a_member_of_the_group(self):
        """What is made in a directory for sharing is another folder a moment later: the owner's own, which stays his own."""
        libc = ctypes.CDLL(None, use_errno=True)
        with Daemon() as daemon:
            shared = daemon.folder("shared", ALICE, 0o755)
            os.chown(shared, ALICE, self.GROUP)
            shared.chmod(0o2770)
            private = shared / "private"
            private.mkdir()
            (private / "notes").write_text("alice's")
            (private / "COMMIT").write_text("alice's")
            for path in (private, private / "notes", private / "COMMIT"):
                os.chown(path, ALICE, ALICE)
            private.chmod(0o700)
            open_world(daemon, 1, ALICE, 1, dir=str(shared), flush=1, gid=self.GROUP)

            def race():
                fd = os.open(shared, os.O_RDONLY)
                while True:
                    for name in os.listdir(fd):
                        if name.startswith(".flush."):  # RENAME_EXCHANGE
                            libc.renameat2(fd, name.encode(), fd, b"private", 2)

            attackers = [forked(MALLORY, race, self.GROUP) for _ in range(2)]
            try:
                def train():
                    rank = Rank(daemon.socket, 1)
                    rank.restore()
                    began, step = time.monotonic(), 0
                    while time.monotonic() - began < 4:
                        step += 1
                        rank.seal(step % 3, step, b"a" * 2000)
                        time.sleep(0.02)
                    return step

                self.assertGreater(as_user(ALICE, train), 10)
            finally:
                for child in attackers:
                    stop(child)
            own = [path.parent for path in shared.rglob("notes")]
            self.assertEqual(len(own), 1, "what was in it is there")
            self.assertEqual(oct(own[0].stat().st_mode & 0o777), oct(0o700))
            self.assertEqual((own[0] / "notes").read_text(), "alice's")

    def test_what_is_made_for_sharing_has_its_modes_whatever_the_umask(self):
        with Daemon(before=["bash", "-c", 'umask 077; exec "$@"', "--"]) as daemon:
            shared = daemon.folder("shared", ALICE, 0o2770)
            open_world(daemon, 1, ALICE, 1, dir=str(shared), flush=1)
            self.assertTrue(as_user(ALICE, lambda: saves_to_storage(daemon.socket, 1, 1)))
            made = shared / f"step-{1:012}"
            self.assertEqual(oct(made.stat().st_mode & 0o7777), oct(0o2770))
            self.assertEqual(oct((made / "COMMIT").stat().st_mode & 0o7777), oct(0o640))


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")

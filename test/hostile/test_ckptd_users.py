# SPDX-License-Identifier: BSD-3-Clause
"""What a user with a job on the node can do to banyan-ckptd, and to the other users, through its socket, the memory that he is
given and his own directory."""
import contextlib
import json
import os
import pathlib
import socket
import struct
import subprocess
import threading
import time
import unittest

from harness import program
from lone_ckptd import ALICE, MALLORY, PAGE, TRUDY, Daemon, Link, Rank, as_user, eventually, frame, saves_to_storage, stop


def crc32c(data):
    table = getattr(crc32c, "table", None)
    if table is None:
        table = []
        for i in range(256):
            for _ in range(8):
                i = i >> 1 ^ (0x82f63b78 if i & 1 else 0)
            table.append(i)
        crc32c.table = table
    crc = 0xffffffff
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xffffffff


def blocks(descriptors):
    """Bytes of the files, each once however many descriptors it has."""
    files = [os.fstat(fd) for fd in descriptors]
    return sum({(file.st_dev, file.st_ino): file.st_blocks * 512 for file in files}.values())


class Storage(unittest.TestCase):
    def test_fifos_in_ones_own_directory_stop_nobody(self):
        with Daemon() as daemon:
            daemon.open(1, ALICE, daemon.folder("alice", ALICE), flush=1)
            trap = daemon.folder("trap", MALLORY)

            def lay():
                for step, names in ((1, ["COMMIT"]), (7, ["MANIFEST.json"]), (8, ["COMMIT", "MANIFEST.json"])):
                    folder = trap / f"step-{step:012}"
                    folder.mkdir()
                    (folder / "COMMIT").write_text("x") if "COMMIT" not in names else None
                    for name in names:
                        os.mkfifo(folder / name)

            as_user(MALLORY, lay)
            for job in (2, 3, 4):
                daemon.open(job, MALLORY, trap, flush=1)
                answer = as_user(MALLORY, lambda: Rank(daemon.socket, job).link.call("restore"))
                # What is not known to be nothing is not begun from. The later jobs find the first one's claim.
                expected = "none of the 1 checkpoints" if job == 2 else "another job still uses"
                self.assertIn(expected, answer.get("error", "") + answer.get("waits", ""), answer)
                as_user(MALLORY, lambda: Rank(daemon.socket, job).seal(1, 1, b"m" * 40_000))
            self.assertTrue(as_user(ALICE, lambda: saves_to_storage(daemon.socket, 1, 1)))

    def test_a_link_to_the_daemons_own_descriptors_shows_nothing(self):
        secret = b"alice's weights! " * 200
        with Daemon() as daemon:
            daemon.open(1, ALICE)
            read, write = os.pipe()
            child = os.fork()
            if child == 0:  # alice trains on
                os.setgroups([])
                os.setgid(ALICE)
                os.setuid(ALICE)
                Rank(daemon.socket, 1, 2 * len(secret)).seal(0, 1, secret)
                os.write(write, b"x")
                time.sleep(60)
                os._exit(0)
            try:
                os.read(read, 1)
                links = pathlib.Path(f"/proc/{daemon.process.pid}/fd")
                fd = next(f.name for f in links.iterdir() if "banyan-buffers-1-" in os.readlink(f))
                size = os.stat(links / fd).st_size
                trap = daemon.folder("trap", MALLORY)

                def lay():
                    folder = trap / f"step-{1:012}"
                    folder.mkdir()
                    (folder / "rank-000000.safetensors").symlink_to(f"/proc/self/fd/{fd}")
                    text = json.dumps(dict(format="banyan-ckpt 1", step=1, job=2, generation=1, world=1,
                                           files=[dict(path="x", rank=0, size=size, crc32c=1, crc32c_4mib=[1])]))
                    (folder / "MANIFEST.json").write_text(text)
                    (folder / "COMMIT").write_text(f"{crc32c(text.encode()):08x} 1\n")

                as_user(MALLORY, lay)
                daemon.open(2, MALLORY, trap)

                def steal():
                    rank = Rank(daemon.socket, 2, size)
                    answer = rank.link.call("restore")
                    return ["error" in answer, secret[:100] in rank.memory[:]]

                self.assertEqual(as_user(MALLORY, steal), [True, False])
                # The directory itself may not lead there either.
                for path in (f"/proc/self/fd/{fd}", "/proc/self/cwd", "/proc/self/root/tmp"):
                    self.assertIn("memory only", daemon.open(hash(path) % 1000 + 10, MALLORY, path)["warning"])
            finally:
                stop(child)

    def test_a_large_manifest_is_not_taken_into_memory(self):
        with Daemon() as daemon:
            trap = daemon.folder("trap", MALLORY)
            for step, files in ((1, "[" + "0," * (30 << 20) + "0]"), (2, '[{"rank":0,"size":99,"x":' + "[" * 8 + "0," * 1000 + "0" + "]" * 8 + "}]")):
                folder = trap / f"step-{step:012}"
                folder.mkdir()
                text = f'{{"format":"banyan-ckpt 1","step":{step},"job":1,"generation":1,"world":1,"files":{files}}}'
                (folder / "MANIFEST.json").write_text(text)
                (folder / "COMMIT").write_text("00000000 1\n")
            subprocess.run(["chown", "-R", str(MALLORY), trap], check=True)
            daemon.open(1, MALLORY, trap)
            daemon.forget_peak()
            before = daemon.memory()
            answer = as_user(MALLORY, lambda: Rank(daemon.socket, 1).link.call("restore"))
            self.assertIn("none of the 2 checkpoints", answer.get("error", ""), answer)
            self.assertLess(daemon.memory("VmHWM") - before, 32 << 20)
            # The tool reads the same file; 64 MiB of address space beyond what it needs is enough.
            out = subprocess.run(["prlimit", "--as=400000000", program("banyan-ckpt"), "ls", trap], capture_output=True, text=True)
            self.assertIn("damaged", out.stdout, out.stderr)

    def test_checkpoints_are_the_users_alone_unless_the_directory_is_for_sharing(self):
        with Daemon() as daemon:
            for job, mode, file, folder in ((1, 0o755, 0o600, 0o700), (2, 0o2770, 0o640, 0o2770), (3, 0o2755, 0o640, 0o2750)):
                top = daemon.folder(f"dir{job}", ALICE, mode)
                daemon.open(job, ALICE, top, flush=1)
                self.assertTrue(as_user(ALICE, lambda: saves_to_storage(daemon.socket, job, 1)))
                made = top / f"step-{1:012}"
                for path, wanted in ((made, folder), (made / "COMMIT", file), (made / "MANIFEST.json", file), (top / "latest", file),
                                     (made / "rank-000000.safetensors", file)):
                    self.assertEqual(oct(path.stat().st_mode & 0o7777), oct(wanted), path)
                    self.assertEqual(path.stat().st_uid, ALICE)
            # What is missing of the path is made the same way.
            home = daemon.folder("home", ALICE)
            daemon.open(4, ALICE, home / "a/b", flush=1)
            self.assertEqual(oct((home / "a/b").stat().st_mode & 0o7777), oct(0o700))


class Memory(unittest.TestCase):
    def test_what_a_client_keeps_is_counted_or_gone(self):
        with Daemon('memory_limit = "1G"') as daemon:
            daemon.open(1, MALLORY)

            def hoard():
                link, kept, files, seen = Link(daemon.socket, 60), [], [], []
                for i in range(8):
                    reply, fd = link.call_passing("attach", dict(job=1, rank=0, world=1, bytes=(20 << 20) + i * PAGE))
                    passed = [fd] + [link.call_passing("attach_part", dict(part=part))[1] for part in range(1, len(reply.get("parts", [])))]
                    kept += [fd for fd in passed if fd is not None]
                    files.append(len(passed))
                    # What is on its way out has a moment for that.
                    used = lambda: Link(daemon.socket).call("status")["memory_used"]
                    seen.append(eventually(lambda: blocks(kept) <= used()))
                link.close()
                Link(daemon.socket).call("session_close", dict(job=1))
                gone = eventually(lambda: blocks(kept) == 0)
                return dict(attached=len(kept), files=files, seen=seen, gone=gone)

            told = as_user(MALLORY, hoard)
            self.assertEqual(told["attached"], sum(told["files"]))
            self.assertGreater(max(told["files"]), 2, "the memory did not come in parts")
            self.assertTrue(all(told["seen"]), told)
            self.assertTrue(told["gone"], "the session is closed, the pages are held still")
            self.assertTrue(eventually(lambda: daemon.call("status")["memory_used"] == 0))

    def test_who_writes_to_his_memory_stops_not_the_daemon(self):
        with Daemon() as daemon:
            daemon.open(1, MALLORY)
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                os.setgroups([])
                os.setgid(MALLORY)
                os.setuid(MALLORY)
                rank = Rank(daemon.socket, 1, 21 << 20)  # 63 MiB: below that size it went on the daemon's own thread
                size = os.fstat(rank.fd).st_size
                data = b"x" * size

                def hold():  # a write has the inode locked, as has what gives the pages back
                    while True:
                        os.pwrite(rank.fd, data, 0)

                for _ in range(400):
                    threading.Thread(target=hold, daemon=True).start()
                time.sleep(2)
                Link(daemon.socket).socket.sendall(frame("session_close", dict(job=1)))
                os.write(write, b"x")
                time.sleep(120)
                os._exit(0)
            try:
                os.read(read, 1)
                self.assertTrue(eventually(lambda: "session closed" in daemon.log.read_text()))
                self.assertFalse(eventually(lambda: "shmem_fallocate" in daemon.waits_in(), 1))
                self.assertEqual(daemon.call("status", seconds=30)["sessions"], [])
            finally:
                stop(child)

    def test_a_job_gets_no_more_than_its_quota(self):
        with Daemon('memory_limit = "1G"\njob_memory_limit = "100M"') as daemon:
            daemon.open(1, MALLORY)
            told = as_user(MALLORY, lambda: Link(daemon.socket).call("attach", dict(job=1, rank=0, world=1, bytes=40 << 20)))
            self.assertIn("job_memory_limit", told.get("hint", ""), told)
            self.assertEqual(as_user(MALLORY, lambda: Rank(daemon.socket, 1, 20 << 20).reply["buffers"]), 3)

    def test_one_users_ended_jobs_leave_room_for_another(self):
        with Daemon('memory_limit = "300M"\njob_memory_limit = "150M"') as daemon:
            for job in (1, 2):
                daemon.open(job, MALLORY)
                as_user(MALLORY, lambda j=job: Rank(daemon.socket, j, 45 << 20).reply["buffers"])
                daemon.call("session_detach", dict(job=job))
            daemon.open(3, ALICE)
            self.assertEqual(as_user(ALICE, lambda: Rank(daemon.socket, 3, 40 << 20).reply["buffers"]), 3)
            self.assertIsNone(daemon.session(1))
            self.assertEqual(daemon.session(2)["state"], "detached")  # one was enough

    def test_an_ended_job_gives_way_to_one_that_runs(self):
        with Daemon('memory_limit = "300M"') as daemon:
            daemon.open(1, MALLORY)
            as_user(MALLORY, lambda: Rank(daemon.socket, 1, 80 << 20).reply["buffers"])
            daemon.call("session_detach", dict(job=1))
            daemon.open(2, ALICE)
            self.assertEqual(as_user(ALICE, lambda: Rank(daemon.socket, 2, 40 << 20).reply["buffers"]), 3)
            self.assertIsNone(daemon.session(1))
            # One that runs gives way to nobody.
            daemon.open(3, MALLORY)
            told = as_user(MALLORY, lambda: Link(daemon.socket).call("attach", dict(job=3, rank=0, world=1, bytes=80 << 20)))
            self.assertIn("in use", told.get("error", ""))
            self.assertIsNotNone(daemon.session(2))

    def test_no_field_of_a_buffer_header_is_believed(self):
        with Daemon() as daemon:
            daemon.open(1, MALLORY)

            def lie():
                rank = Rank(daemon.socket, 1)
                for step, count, generation in ((10 ** 12, 100, None), ((1 << 64) - 1, 100, None), (1, 1 << 60, None), (1, 0, None), (1, 100, 77)):
                    rank.seal(0, step, b"x" * 100, count, generation)
                    rank.link.call("status")  # what was said before has been looked at
                    eventually(lambda: rank.link.call("status")["sessions"][0]["pending"] == 0)
                rank.seal(1, 999_999_999_999, b"x" * 100)
                return eventually(lambda: struct.unpack_from("<Q", rank.memory, 32)[0] == 10 ** 12)

            self.assertTrue(as_user(MALLORY, lie))
            self.assertEqual(daemon.session(1)["counters"]["seals"], 1)

    def test_sealing_in_a_loop_queues_no_work(self):
        with Daemon() as daemon:
            daemon.open(1, MALLORY)

            def flood():
                rank = Rank(daemon.socket, 1, 64 << 20)
                for i in range(3000):
                    rank.seal(0, i, b"x", 64 << 20)
                return max(s["pending"] for s in Link(daemon.socket).call("status")["sessions"])

            # One checksum at a time, and behind it the few that are already on their way into safety; it was a queue of all.
            self.assertLess(as_user(MALLORY, flood), 20)


class Sessions(unittest.TestCase):
    def test_a_live_rank_is_not_dead_for_a_daemon_that_may_signal_nobody(self):
        # The unit's capabilities: no CAP_KILL among them.
        with Daemon(before=["setpriv", "--bounding-set=-all,+setuid,+setgid", "--no-new-privs"]) as daemon:
            daemon.open(1, ALICE, daemon.folder("alice", ALICE), flush=1)
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                os.setgroups([])
                os.setgid(ALICE)
                os.setuid(ALICE)
                rank = Rank(daemon.socket, 1)
                os.write(write, b"x")
                time.sleep(60 + rank.fd)
                os._exit(0)
            self.addCleanup(stop, child)
            os.read(read, 1)
            second = as_user(ALICE, lambda: Link(daemon.socket).call("attach", dict(job=1, rank=0, world=1, bytes=100)))
            self.assertIn(f"held by process {child}", second.get("error", ""), second)
            os.kill(child, 9)
            # With these capabilities alone everything else works.
            self.assertTrue(as_user(ALICE, lambda: saves_to_storage(daemon.socket, 1, 1)))

    def test_status_and_refusals_tell_nothing_of_other_users(self):
        with Daemon() as daemon:
            daemon.open(1, ALICE, "/nowhere/alices-project")
            daemon.open(2, MALLORY)

            def look():
                link = Link(daemon.socket)
                seen = [s["job"] for s in link.call("status")["sessions"]]
                attach = [Link(daemon.socket).call("attach", dict(job=job, rank=0, world=1, bytes=1)) for job in (1, 99)]
                closed = [link.call("session_close", dict(job=job)) for job in (1, 99)]
                return dict(seen=seen, attach=attach, closed=closed)

            told = as_user(MALLORY, look)
            self.assertEqual(told["seen"], [2])
            self.assertEqual(json.dumps(told["attach"][0]).replace("job 1 ", "job 99 "), json.dumps(told["attach"][1]))
            self.assertEqual(told["closed"][0], told["closed"][1])
            self.assertEqual([s["job"] for s in daemon.call("status")["sessions"]], [1, 2])

    def test_what_a_user_chose_forges_no_line(self):
        with Daemon() as daemon:
            for text in ("/tmp/a\nbanyan-ckptd[1] error: forged", "/tmp/\x1b[2Ja", "/tmp/\u202ea", "/tmp/\x9b2J"):
                self.assertIn("cannot be shown", daemon.open(5, ALICE, text).get("error", ""))
            place = daemon.folder("users", MALLORY, 0o755)
            trap = place / "evil\nname\x1b[2J"
            step = trap / f"step-{1:012}"
            step.mkdir(parents=True)
            (step / "COMMIT").write_text("x")
            out = subprocess.run([program("banyan-ckpt"), "ls", trap], capture_output=True)
            self.assertNotIn(b"\x1b", out.stdout + out.stderr)
            self.assertEqual(out.stdout.count(b"\n"), 1, out.stdout)
            self.assertFalse([line for line in daemon.log.read_text().splitlines() if not line.startswith("20")])


class Connections(unittest.TestCase):
    def test_idle_connections_of_some_lock_out_nobody(self):
        with Daemon(descriptors=256) as daemon:  # 64 connections of users, 32 of one
            daemon.open(1, ALICE)
            hogs = []
            for uid in (MALLORY, TRUDY):
                child = os.fork()
                if child == 0:
                    os.setgroups([])
                    os.setgid(uid)
                    os.setuid(uid)
                    kept = []
                    for _ in range(300):
                        with contextlib.suppress(OSError):
                            kept.append(Link(daemon.socket, 5))
                    os.kill(os.getpid(), 19)
                    os._exit(0)
                hogs.append(child)
                os.waitpid(child, os.WUNTRACED)
            try:
                self.assertEqual(daemon.call("status", seconds=5)["node"], "n1")
                self.assertEqual(as_user(ALICE, lambda: Rank(daemon.socket, 1).reply["buffers"]), 3)
            finally:
                for child in hogs:
                    stop(child)

    def test_answers_left_unread_let_others_have_their_memory(self):
        # The unit's capabilities: the kernel lets this daemon have as many descriptors in flight as it may have open, 256.
        with Daemon(before=["setpriv", "--bounding-set=-all,+setuid,+setgid", "--no-new-privs"], descriptors=256) as daemon:
            daemon.open(1, ALICE)
            daemon.open(2, MALLORY)
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                os.setgroups([])
                os.setgid(MALLORY)
                os.setuid(MALLORY)
                kept = []
                for _ in range(12):
                    kept.append(Link(daemon.socket))
                    with contextlib.suppress(OSError):
                        for _ in range(40):  # each answer brings the memory along
                            kept[-1].socket.sendall(frame("attach", dict(job=2, rank=0, world=1, bytes=100)))
                        kept[-1].socket.shutdown(socket.SHUT_WR)
                    time.sleep(0.1)
                os.write(write, b"x")
                time.sleep(60)
                os._exit(0)
            try:
                os.read(read, 1)
                self.assertEqual(as_user(ALICE, lambda: Rank(daemon.socket, 1).reply["buffers"]), 3)
            finally:
                stop(child)

    def test_descriptors_sent_along_stop_nobody(self):
        with Daemon() as daemon:
            daemon.open(1, ALICE, daemon.folder("alice", ALICE), flush=1)

            read, write = os.pipe()

            def attack():
                """Whoever drops the last reference to this TCP socket waits for its unsent data, as long as its owner wants."""
                with socket.socket() as listener:
                    listener.bind(("127.0.0.1", 0))
                    listener.listen(1)
                    slow = socket.socket()
                    slow.connect(listener.getsockname())
                    other, _ = listener.accept()
                with contextlib.suppress(BlockingIOError):
                    while True:
                        slow.send(b"x" * 65536, socket.MSG_DONTWAIT)
                slow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
                link = Link(daemon.socket)
                link.socket.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    for _ in range(290):  # its answers fill my queue: what comes next waits in the daemon's
                        link.socket.send(frame("status", {}))
                time.sleep(0.3)
                try:
                    link.socket.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", slow.fileno()))])
                except PermissionError:  # Linux 6.16: it never gets there
                    slow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
                slow.close()
                link.close()
                os.write(write, b"x")
                time.sleep(60 + other.fileno())  # nobody reads the other end

            child = os.fork()
            if child == 0:
                os.setgroups([])
                os.setgid(MALLORY)
                os.setuid(MALLORY)
                attack()
                os._exit(0)
            self.addCleanup(stop, child)
            self.assertEqual(os.read(read, 1), b"x")
            self.assertFalse(eventually(lambda: "tcp_close" in daemon.waits_in(), 1))
            self.assertTrue(daemon.alive())
            self.assertTrue(as_user(ALICE, lambda: saves_to_storage(daemon.socket, 1, 1)), "the daemon waits for the one who does not read")

    def test_half_sent_requests_end_and_cost_nothing(self):
        with Daemon() as daemon:
            daemon.forget_peak()
            before = daemon.memory()

            def claim():
                links = [Link(daemon.socket) for _ in range(200)]
                for link in links:
                    link.socket.sendall(frame("status", {}, claimed=4096)[:-2])
                return len(links)

            self.assertEqual(as_user(MALLORY, claim), 200)
            for _ in range(100):  # root's are larger, and nothing of them comes
                Link(daemon.socket).socket.sendall(frame("status", {}, claimed=4 << 20))
            kept = [Link(daemon.socket) for _ in range(50)]
            for link in kept:
                link.socket.sendall(frame("status", {}, claimed=4 << 20))
            self.assertTrue(daemon.alive())
            self.assertLess(daemon.memory("VmHWM") - before, 32 << 20)

            def ended():
                link = Link(daemon.socket, 30)
                link.socket.sendall(frame("status", {}, claimed=4000))
                return link.socket.recv(1) == b""

            self.assertTrue(as_user(MALLORY, ended))


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")

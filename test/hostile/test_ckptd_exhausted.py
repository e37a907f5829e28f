# SPDX-License-Identifier: BSD-3-Clause
"""banyan-ckptd when something has run out: descriptors, memory, threads, disk. It says so, refuses what is new, keeps what it has,
and goes on when there is room again."""
import contextlib
import ctypes
import os
import pathlib
import resource
import signal
import subprocess
import unittest

from harness import program
from lone_ckptd import ALICE, MALLORY, TRUDY, Daemon, Link, Rank, as_user, eventually, saves_to_storage, stop


def private_mounts():
    """What is mounted from here on is seen by this process and its children alone."""
    if ctypes.CDLL(None, use_errno=True).unshare(0x00020000) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)


class Exhausted(unittest.TestCase):
    def hog(self, uid, body):
        """body() as `uid` in a process that stays, with all that body returned, until the test ends."""
        child = os.fork()
        if child == 0:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            kept = body()
            os.kill(os.getpid(), signal.SIGSTOP)
            os._exit(len(kept))
        self.addCleanup(stop, child)
        os.waitpid(child, os.WUNTRACED)
        return child

    def test_no_descriptors(self):
        with Daemon(descriptors=64) as daemon:
            folder = daemon.folder("alice", ALICE)
            daemon.open(1, ALICE, folder, flush=1)
            quiet = daemon.descriptors("socket:")
            self.assertTrue(as_user(ALICE, lambda: saves_to_storage(daemon.socket, 1, 1)))
            # What has ended, and its flush, give theirs back.
            self.assertTrue(eventually(lambda: daemon.descriptors("anon_inode:[pidfd]") == 0 and daemon.descriptors(str(folder)) == 0
                                       and daemon.descriptors("socket:") <= quiet))
            # All that is left, from outside: what else a daemon of root may have open is not the attacker's to choose.
            used = len(os.listdir(f"/proc/{daemon.process.pid}/fd"))
            resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (used, 64))

            def connect():
                kept = []
                for _ in range(30):
                    with contextlib.suppress(OSError):
                        kept.append(Link(daemon.socket, 5))
                return kept

            child = self.hog(MALLORY, connect)
            self.assertTrue(eventually(lambda: "no connection can be taken" in daemon.log.read_text()))
            self.assertEqual(daemon.call("status", seconds=5)["sessions"][0]["committed"]["step"], 1)
            self.assertEqual(daemon.log.read_text().count("no connection can be taken"), 1)
            os.kill(child, signal.SIGKILL)
            resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (64, 64))
            self.assertTrue(eventually(daemon.alive))
            self.assertTrue(as_user(ALICE, lambda: saves_to_storage(daemon.socket, 1, 2)))

    def test_ended_jobs_of_one_user_leave_descriptors_for_another(self):
        with Daemon(descriptors=256) as daemon:
            for job in range(1000, 1120):
                daemon.open(job, MALLORY)
                answer = as_user(MALLORY, lambda: Link(daemon.socket).call("attach", dict(job=job, rank=0, world=1, bytes=4096)))
                self.assertNotIn("has ended", answer.get("error", ""))
                daemon.call("session_detach", dict(job=job))
            daemon.open(1, ALICE)
            self.assertEqual(as_user(ALICE, lambda: Rank(daemon.socket, 1).reply["buffers"]), 3)
            # What has ended is not watched.
            self.assertTrue(eventually(lambda: daemon.descriptors("anon_inode:[pidfd]") == 0))
            self.assertGreater(len(daemon.call("status")["sessions"]), 40)  # nor is more given up than needed

    def test_jobs_of_one_user_that_run_leave_descriptors_for_another(self):
        with Daemon(descriptors=64) as daemon:  # 32 of jobs
            for job in range(1000, 1020):
                daemon.open(job, MALLORY)

            def fill():
                answers = []
                for job in range(1000, 1020):
                    answers.append(Link(daemon.socket).call("attach", dict(job=job, rank=0, world=1, bytes=4096)).get("error", ""))
                return answers

            self.assertIn("of banyan-ckptd, of 32 for all users", as_user(MALLORY, fill)[-1])
            daemon.open(1, ALICE)
            self.assertEqual(as_user(ALICE, lambda: Rank(daemon.socket, 1).reply["buffers"]), 3)

    def test_no_memory(self):
        with Daemon('memory_limit = "64M"') as daemon:
            daemon.open(1, ALICE, daemon.folder("alice", ALICE), flush=1)
            self.assertTrue(as_user(ALICE, lambda: saves_to_storage(daemon.socket, 1, 1)))
            daemon.open(2, MALLORY)
            held = self.hog(MALLORY, lambda: [Rank(daemon.socket, 2, 20 << 20)])
            daemon.open(3, TRUDY)
            answer = as_user(TRUDY, lambda: Link(daemon.socket).call("attach", dict(job=3, rank=0, world=1, bytes=10 << 20)))
            self.assertIn("memory_limit", answer.get("hint", ""), answer)
            self.assertTrue(as_user(ALICE, lambda: saves_to_storage(daemon.socket, 1, 2)))
            os.kill(held, signal.SIGKILL)
            daemon.call("session_close", dict(job=2))
            self.assertEqual(as_user(TRUDY, lambda: Rank(daemon.socket, 3, 10 << 20).reply["buffers"]), 3)

    def test_no_address_space(self):
        with Daemon() as daemon:
            daemon.open(1, ALICE, daemon.folder("alice", ALICE), flush=1)
            self.assertTrue(as_user(ALICE, lambda: saves_to_storage(daemon.socket, 1, 1)))
            limit = daemon.memory("VmSize") + (1 << 20)
            resource.prlimit(daemon.process.pid, resource.RLIMIT_AS, (limit, -1))
            # Neither memory nor a thread: a stack is 8 MiB.
            daemon.open(2, MALLORY)
            answer = as_user(MALLORY, lambda: Link(daemon.socket).call("attach", dict(job=2, rank=0, world=1, bytes=64 << 20)))
            self.assertIn("error", answer)
            self.assertEqual(daemon.call("status")["sessions"][0]["committed"]["step"], 1)
            resource.prlimit(daemon.process.pid, resource.RLIMIT_AS, (-1, -1))
            self.assertTrue(as_user(ALICE, lambda: saves_to_storage(daemon.socket, 1, 2)))
            self.assertEqual(as_user(MALLORY, lambda: Rank(daemon.socket, 2, 1 << 20).reply["buffers"]), 3)

    def test_a_full_disk(self):
        with Daemon() as daemon:
            place = daemon.folder("disk", 0, 0o755)
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size=256k,uid={ALICE},mode=700", "none", place], check=True)
            self.addCleanup(subprocess.run, ["umount", "-l", place], stderr=subprocess.DEVNULL, check=False)
            daemon.open(1, ALICE, place, flush=1)

            def fill():
                rank = Rank(daemon.socket, 1, 200_000)
                told = []
                for step in (1, 2, 3):
                    rank.seal(step % 3, step, os.urandom(190_000))
                    eventually(lambda: rank.durable() == step + 1 or daemon_failed(rank, step))
                    told.append(rank.durable())
                return [told, rank.warning()]

            def daemon_failed(rank, step):
                counters = rank.link.call("status")["sessions"][0]["counters"]
                return counters["flush_failures"] >= step - 1 and counters["commits"] >= step and step > 1

            durable, warning = as_user(ALICE, fill)
            self.assertEqual(durable, [2, 2, 2])
            self.assertIn("No space left", warning)
            self.assertEqual(daemon.log.read_text().count("No space left"), 1)
            self.assertTrue((place / f"step-{1:012}/COMMIT").exists(), "the step that was whole is kept")
            subprocess.run(["mount", "-o", "remount,size=4m", place], check=True)
            self.assertTrue(as_user(ALICE, lambda: saves_to_storage(daemon.socket, 1, 4)))
            subprocess.run(["umount", "-l", place], check=True)  # or the folder outlives the daemon

    def test_a_full_run_directory(self):
        place = pathlib.Path("/run") / f"banyan-hostile-{os.getpid()}"
        place.mkdir()
        self.addCleanup(place.rmdir)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=2,size=4k", "none", place], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", place], check=False)
        (place / "full").write_text("x")
        config = place.with_suffix(".conf")
        self.addCleanup(config.unlink)
        config.write_text(f'[ckptd]\nsocket = "{place}/ckptd.sock"\n')
        out = subprocess.run([program("banyan-ckptd"), "--config", config, "--node", "n1", "--bind", "127.0.0.1"], capture_output=True, text=True,
                             timeout=30)
        self.assertEqual(out.returncode, 1)
        self.assertIn("No space left", out.stderr)
        self.assertIn(str(place), out.stderr)


if __name__ == "__main__":
    private_mounts()
    unittest.main(verbosity=2, warnings="ignore")

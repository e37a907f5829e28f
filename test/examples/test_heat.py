# SPDX-License-Identifier: BSD-3-Clause
"""The MPI example on one node with a real daemon: killed and started again it comes to the same bits."""
import os
import re
import subprocess
import unittest
from types import SimpleNamespace

from harness import HELPERS
from lone_ckptd import Daemon

JOB, RANKS = 71, 3
SIZE = ["--rows", "97", "--columns", "61", "--steps", "60", "--every", "10"]


def heat(*words, daemon=None, step=0, ranks=RANKS):
    """(exit code, steps it began after, last line) of one mpirun."""
    known = {name: value for name, value in os.environ.items() if not name.startswith(("BANYAN_CKPT", "BANYAN_STEP", "BANYAN_JOB"))}
    known.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1", BANYAN_JOB=str(JOB))
    if daemon:
        known.update(BANYAN_CKPT_SOCKET=str(daemon.socket), BANYAN_STEP=str(step))
    done = subprocess.run([os.environ.get("BANYAN_MPIEXEC") or "mpirun", "-n", str(ranks), HELPERS / "bin" / "heat2d", *SIZE, *words], env=known,
                          capture_output=True, text=True, timeout=60, check=False)
    began = re.search(r"begins after step (\d+)", done.stdout)
    if not began:
        raise AssertionError(f"heat2d began with nothing:\n{done.stdout}{done.stderr}")
    return done.returncode, int(began[1]), done.stdout.strip().splitlines()[-1]


def open_job(daemon):
    node = dict(name="n1", addr="127.0.0.1", ranks=list(range(RANKS)), buddy=0)
    answer = daemon.call("session_open", dict(job=JOB, restart=0, uid=os.getuid(), gid=os.getgid(), self="n1", world=RANKS, dir="", every=1,
                                              flush=0, buffers=3, bytes=0, nodes=[node], spares=[]))
    assert "error" not in answer, answer


class Heat(unittest.TestCase):
    def test_a_killed_run_goes_on_to_the_same_bits(self):
        code, began, wanted = heat()
        self.assertEqual((code, began), (0, 0))
        self.assertRegex(wanted, r"^step 60, hash [0-9a-f]{16}$")
        self.assertEqual(heat(ranks=1)[2], wanted, "the number of ranks changes nothing")
        with Daemon() as daemon:
            open_job(daemon)
            reached = []
            for step, ends in enumerate((25, 47, None)):
                daemon.call("step_open", dict(job=JOB, step=step, nodes=["n1"]))
                code, began, last = heat(*(["--die-at", str(ends)] if ends else []), daemon=daemon, step=step)
                reached.append(began)
                self.assertEqual(code != 0, bool(ends))
            self.assertEqual(reached, [0, 20, 40])
            self.assertEqual(last, wanted)

    def test_without_the_daemon_that_was_promised_nothing_is_begun_anew(self):
        with self.assertRaisesRegex(AssertionError, "cannot connect to /nonexistent/ckptd.sock"):
            heat(daemon=SimpleNamespace(socket="/nonexistent/ckptd.sock"))


if __name__ == "__main__":
    unittest.main(verbosity=2)

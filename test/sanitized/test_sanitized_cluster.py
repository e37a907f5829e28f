# SPDX-License-Identifier: BSD-3-Clause
"""A cluster whose daemons and plugins have the sanitizers in them: a training job with checkpoints, a fault with a spare, a requeue. No
report from anybody."""

import re
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cluster"))

from harness import DEADLINE, main  # noqa: E402
from training import XID_79, TrainingCase  # noqa: E402

SHAPE = "tp=2,pp=2,dp=2"
# Where a program has no log_path (its environment was somebody else's choice), the report is in its log.
REPORT = re.compile(r"ERROR: (Address|Leak)Sanitizer|runtime error: |ASan runtime does not come first")


class Sanitized(TrainingCase):
    nodes = 6

    @classmethod
    def setUpClass(cls):
        cls.reports = Path(tempfile.mkdtemp(prefix="banyan-san-"))
        cls.reports.chmod(0o1777)
        cls.addClassCleanup(shutil.rmtree, cls.reports, ignore_errors=True)
        cls.options = ("--group-size", 3, "--gpus", 8, "--sanitizer", cls.reports)
        super().setUpClass()

    def tearDown(self):
        self.assertEqual(self.found(), "")

    def found(self):
        """Every report so far."""
        texts = [f"--- {file.name}\n{file.read_text(errors='replace')[:6000]}" for file in sorted(self.reports.iterdir())]
        logs = self.cluster.dir / "log"
        for file in sorted([*logs.iterdir(), *(self.cluster.dir / "tmp").glob("*.out")]):
            text = file.read_text(errors="replace")
            if at := REPORT.search(text):
                texts.append(f"--- {file.name}\n{text[at.start():at.start() + 6000]}")
        return "\n".join(texts)

    def checkpoints(self, name):
        folder = self.cluster.dir / "tmp" / name
        folder.mkdir()
        return folder

    def test_daemons_and_plugins_are_sanitized(self):
        """Else no report would say nothing."""
        for part in ("slurmctld", "slurmd-n01", "faultd-controller", "faultd-n01"):
            maps = Path(f"/proc/{self.cluster.parts()[part]}/maps").read_text()
            self.assertIn("libasan.so", maps, part)
        self.assertIn("select_cons_tres_banyan.so", Path(f"/proc/{self.cluster.parts()['slurmctld']}/maps").read_text())
        # A fault of any program of the cluster is found.
        self.cluster.run("python3", "-c", "import ctypes; ctypes.string_at(8)", check=False)
        self.assertIn("AddressSanitizer: SEGV", self.found())
        for file in self.reports.iterdir():
            file.unlink()

    def test_a_spare_takes_the_place_of_a_failed_node(self):
        job = self.submit(5, spares=1, steps=30, step_ms=100, shape=SHAPE,
                          ckpt=f"dir={self.checkpoints('spare')},every=1,flush=5")
        self.wait_step(job, 10)
        self.assertTrue(self.daemons())
        for pid in self.daemons():
            self.assertIn("libasan.so", Path(f"/proc/{pid}/maps").read_text())
            self.assertIn(f"log_path={self.reports}", Path(f"/proc/{pid}/environ").read_text())
        victim = sorted({node for _, node in self.ranks(job).values()})[1]
        self.cluster.kmsg(victim, XID_79)
        log = self.wait_finished(job, timeout=4 * DEADLINE)
        self.assertEqual(max(log.steps), 30)
        self.assertEqual(len(log.starts), 2)
        self.assertTrue(self.cluster.node(victim)["reason"].startswith("banyan:"))
        self.cluster.run("scontrol", "update", f"nodename={victim}", "state=resume")

    def test_a_requeued_job_goes_on(self):
        job = self.submit(4, steps=30, step_ms=100, shape=SHAPE, ckpt=f"dir={self.checkpoints('requeue')},every=1,flush=5",
                          options=("--train-model=hidden=1024,layers=8,seq=512,micro=4",))
        self.wait_step(job, 8)
        self.cluster.run("scontrol", "requeue", job)

        def started_again():
            if self.cluster.job(job).get("Reason") == "BeginTime":
                self.cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now", check=False)
            return len(self.log(job).starts) >= 2
        self.cluster.wait_for(started_again, "the job starts again", timeout=4 * DEADLINE, pause=0.5)
        log = self.wait_finished(job, timeout=4 * DEADLINE)
        self.assertEqual(max(log.steps), 30)
        self.assertTrue(log.restored)

    def test_what_is_refused(self):
        for words in (["--train-parallel=tp=2,pp=2"], ["--train-parallel=xp=2"], ["--train-ckpt=evry=1"], ["--train-parallel=dp=4", "--train-spares=9"]):
            refused = self.cluster.run("sbatch", "-N3", "--ntasks-per-node=1", *words, "--wrap=true", check=False)
            self.assertNotEqual(refused.returncode, 0, words)
            self.assertNotRegex(refused.stderr, REPORT)
        for words in (["status"], ["incidents"], ["agents"]):
            self.cluster.run("banyan-fault", *words, "--json", check=False)


if __name__ == "__main__":
    main()

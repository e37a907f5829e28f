# SPDX-License-Identifier: BSD-3-Clause
"""Trainings of each framework under banyan-run: a rank is killed with -9, and the losses are those of a job that was left alone.

The programs are those of test/python/front. Skipped, with the reason, where the frameworks cannot be had."""

import json
import os
import signal
import tempfile
import unittest
from pathlib import Path

import torch_venv
from harness import BUILD, REPOSITORY, ClusterCase, main

import python_fronts  # noqa: E402  torch_venv has said where it is
import python_venv

PROGRAMS = REPOSITORY / "test" / "python" / "front"
STEPS = 14


class Frameworks(ClusterCase):
    nodes = 3
    options = ("--group-size", 2, "--gpus", 2)

    @classmethod
    def setUpClass(cls):
        cls.python, why = torch_venv.program("python")
        if why:
            raise unittest.SkipTest(why)
        package, fronts = BUILD / "python", python_venv.HOME.parent / "fronts"
        try:
            python_venv.package(package)
            python_fronts.make(fronts)
        except (python_venv.Failed, OSError) as error:
            raise unittest.SkipTest(f"the frameworks cannot be had: {error}") from error
        cls.path = f"{package}:{fronts}"
        super().setUpClass()

    def submit(self, program, pause):
        folder = Path(tempfile.mkdtemp(dir=self.cluster.dir / "tmp"))
        says = {"PYTHONPATH": self.path, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "ACCELERATE_USE_CPU": "1",
                "STEPS": STEPS, "PAUSE": pause, "LOSSES": folder, "TMPDIR": folder}
        exports = "".join(f"export {name}='{value}'\n" for name, value in says.items())
        job = self.cluster.sbatch("-N2", "--ntasks-per-node=1", "--gres=gpu:2", "--train-parallel=dp=2", "--train-ckpt=every=1",
                                  script=f"{exports}cd {folder}\nbanyan-run {self.python} {PROGRAMS / program}\n")
        return job, folder

    def lines(self, folder):
        """What the ranks have said of their steps."""
        out = []
        for file in sorted(folder.glob("rank*")):
            text = file.read_text()
            out.append([json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()])
        return out

    def killed_and_left_alone(self, program):
        alone, expected = self.submit(program, 0)
        self.cluster.wait_for_job(alone, timeout=180)
        job, folder = self.submit(program, 0.3)

        def reached():
            if self.cluster.job(job).get("JobState") not in ("PENDING", "CONFIGURING", "RUNNING"):
                self.fail(f"job {job} ended:\n{self.cluster.output(job)[-3000:]}")
            told = self.lines(folder)
            return told if len(told) == 2 and all(len(of) >= 5 for of in told) else None
        told = self.cluster.wait_for(reached, f"five steps of {program}", timeout=180, pause=0.1)
        os.kill(told[1][0]["pid"], signal.SIGKILL)
        self.cluster.wait_for_job(job, timeout=240)
        for found, reference in zip(self.lines(folder), self.lines(expected), strict=True):
            self.assertEqual(len({line["pid"] for line in found}), 2, "its ranks were started once more")
            self.assertEqual({line["step"]: line["loss"] for line in found}, {line["step"]: line["loss"] for line in reference})
            self.assertLessEqual(len(found) - STEPS, 1, "at most one step is done twice")
            self.assertTrue(all(line["saved"].endswith(": ok") for line in found), found)

    def test_lightning(self):
        self.killed_and_left_alone("train_lightning.py")

    def test_transformers(self):
        self.killed_and_left_alone("train_transformers.py")

    def test_torchtitan(self):
        self.killed_and_left_alone("train_torchtitan.py")

    def test_megatron(self):
        self.killed_and_left_alone("train_megatron.py")


if __name__ == "__main__":
    main()

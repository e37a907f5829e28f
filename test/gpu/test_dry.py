# SPDX-License-Identifier: BSD-3-Clause
"""What scripts/gpu takes to a machine with a GPU runs here on CPUs: every figure is printed, and the content comes back. Skipped where
there is no torch."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import torch_venv
from harness import BUILD, REPOSITORY

MOST = 60 << 20  # bytes: what is small enough to be sent along
FIGURES = ("banyan-doctor, GPUs", "state", "first save", "save", "dcp.save", "dcp.async_save", "torch.save",
           "50 iterations of training with 5 saves", "first restore", "restore", "the content after kill -9", "all together")


class DryRun(unittest.TestCase):
    def test_all_runs_without_a_gpu(self):
        torchrun, why = torch_venv.program("torchrun")  # there once torch is
        if why:
            self.skipTest(why)
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "gpu"
            subprocess.run([REPOSITORY / "scripts" / "gpu", out, BUILD], check=True, capture_output=True)
            self.assertLess(sum(file.stat().st_size for file in out.rglob("*") if file.is_file()), MOST)
            done = subprocess.run([torchrun.with_name("python"), out / "py" / "run.py", "0.05"], capture_output=True, text=True, timeout=100,
                                  check=False, env=os.environ | {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for figure in FIGURES:
            self.assertIn(f"\n{figure}", "\n" + done.stdout)
        self.assertNotIn("WRONG", done.stdout)


if __name__ == "__main__":
    unittest.main()

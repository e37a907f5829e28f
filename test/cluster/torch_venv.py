# SPDX-License-Identifier: BSD-3-Clause
"""A Python with the real torchrun: $BANYAN_TORCH, else build/deps/torch, which is made at the first use and kept."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

from harness import REPOSITORY

RELEASE = "torch==2.13.0"


def program(name):
    """(path, None), or (None, why there is none)."""
    given = os.environ.get("BANYAN_TORCH")
    root = Path(given) if given else REPOSITORY / "build" / "deps" / "torch"
    path = root / "bin" / name
    if path.exists():
        return path, None
    if given:
        return None, f"{path} is not there (BANYAN_TORCH)"
    root.parent.mkdir(parents=True, exist_ok=True)
    with open(root.parent / ".torch.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            for words in (("/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable, "-m", "venv", root),
                          (root / "bin" / "pip", "install", "--quiet", "--no-input", RELEASE)):
                done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    return None, f"{RELEASE} cannot be had: {done.stderr.strip().splitlines()[-1:] or done.returncode}"
    return path, None

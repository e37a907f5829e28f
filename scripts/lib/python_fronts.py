#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The frameworks that the package's front ends are for, in a folder for PYTHONPATH beside the environment of python_venv.py.

Usage: python_fronts.py FOLDER"""

import fcntl
import shutil
import sys
from pathlib import Path

import python_venv

# Without what they would bring: a torch of their own, and what no test needs.
FRONTS = ["lightning==2.6.6", "lightning_utilities==0.15.3", "torchmetrics==1.9.0", "transformers==5.24.0", "accelerate==1.15.0", "tokenizers==0.23.3",
          "huggingface_hub==2.4.0", "torchtitan==0.3.0", "torch_checkpointing==0.1.1", "spmd_types==0.2.3", "megatron-core==0.16.1", "PyYAML==6.0.4",
          "regex==2026.11.19", "tqdm==4.70.1", "psutil==7.2.2", "einops==0.8.2", "tyro==1.0.17", "docstring_parser==0.18.0", "typeguard==4.6.1",
          "shtab==1.13.0", "rich==15.0.0", "httpx2==2.16.2", "httpcore2==2.16.2", "truststore==0.10.5", "anyio==4.16.0", "idna==3.20", "h11==0.16.0",
          "sniffio==1.3.1", "certifi==2026.10.19.post1", "hf_xet==1.8.0", "typer==0.29.2", "shellingham==1.5.4", "click==8.5.1", "tomli_w==1.2.0"]


def make(folder):
    """Raises python_venv.Failed where the packages cannot be had."""
    python_venv.make()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / f".{folder.name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp, now = folder / ".stamp", "\n".join(FRONTS)
        if stamp.exists() and stamp.read_text() == now:
            return
        shutil.rmtree(folder, ignore_errors=True)
        python_venv.run(python_venv.HOME / "bin" / "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps",
                        "--target", folder, *FRONTS)
        stamp.write_text(now)


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        make(Path(sys.argv[1]).absolute())
    except (python_venv.Failed, OSError) as error:
        print(f"python_fronts.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

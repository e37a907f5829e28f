# SPDX-License-Identifier: BSD-3-Clause
"""A Python with the real torchrun: $BANYAN_TORCH, else that of the tests (scripts/lib/python_venv.py), which is made where it is missing."""

import os
import sys
from pathlib import Path

from harness import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "scripts" / "lib"))
import python_venv  # noqa: E402


def program(name):
    """(path, None), or (None, why there is none)."""
    given = os.environ.get("BANYAN_TORCH")
    if not given:
        try:
            python_venv.make()
        except (python_venv.Failed, OSError) as error:
            return None, f"{python_venv.TORCH} cannot be had: {error}"
    path = (Path(given) if given else python_venv.HOME) / "bin" / name
    return (path, None) if path.exists() else (None, f"{path} is not there (BANYAN_TORCH)")

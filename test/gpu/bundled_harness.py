# SPDX-License-Identifier: BSD-3-Clause
"""In the folder that scripts/gpu makes, in the place of test/cluster/harness.py."""

from pathlib import Path


def program(name):
    return Path(__file__).resolve().parents[1] / "run" / name

# SPDX-License-Identifier: BSD-3-Clause
"""The one loop in which tests wait: for conditions, never for time."""

import time


def wait_until(condition, what, timeout, evidence=lambda: "", failure=AssertionError, pause=0.05):
    """Waits until condition() is true, and returns what it returned. Else fails with what was waited for (a text, or a function that
    tells it at the end) and evidence(). A test that asks Slurm all the time takes the machine from what it waits for: `pause` is
    longer where an answer costs more."""
    end = time.monotonic() + timeout
    while True:
        asked = time.monotonic()
        value = condition()
        took = time.monotonic() - asked
        if value:
            return value
        if time.monotonic() > end:
            raise failure(f"{what() if callable(what) else what}: not within {timeout} s\n{evidence()}")
        time.sleep(max(pause, min(4 * took, 0.5)))

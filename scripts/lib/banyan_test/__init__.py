# SPDX-License-Identifier: BSD-3-Clause
"""What scripts/test is made of: which tests there are and when they run (tests), what a change concerns (folders), running them (runner),
what became of them (report)."""


class TestError(Exception):
    """What stops a run, as the one sentence that the user reads."""

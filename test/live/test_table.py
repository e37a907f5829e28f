#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The table of scenarios against the runbook: every reason that an incident may have is brought about under a job that trains."""

import collections
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "bench")]

from scenarios import SCENARIOS  # noqa: E402

RUNBOOK = HERE.parents[1] / "docs" / "runbook"
# banyan-sweep's; a simulated link has the speed that it has; cluster_job_ends has jobs that fail, test_ckptd_faults damage; no NVML here
# tells of an NVLink domain, which test_nvlink_domain and test_domain_actions have.
ELSEWHERE = {"README", "sweep", "link-slow", "job-failed", "checkpoint-damaged", "nvlink-domain"}


class Table(unittest.TestCase):
    def test_every_reason_has_a_row(self):
        reasons = {reason for row in SCENARIOS for _, _, reason, _ in row.culprits}
        self.assertEqual({page.stem for page in RUNBOOK.glob("*.md")} - ELSEWHERE - reasons, set())

    def test_rows_have_names_of_their_own(self):
        names = collections.Counter(row.name for row in SCENARIOS)
        self.assertEqual([name for name, count in names.items() if count > 1], [])

    def test_every_number_of_spares(self):
        self.assertEqual({row.spares for row in SCENARIOS}, set(range(5)))

    def test_no_node_goes_for_an_application(self):
        for row in SCENARIOS:
            for _, _, reason, action in row.culprits:
                if reason in ("gpu-app", "job-memory", "job-nccl"):
                    self.assertEqual(action, "log", row.name)


if __name__ == "__main__":
    unittest.main()

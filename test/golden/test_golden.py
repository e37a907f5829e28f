# SPDX-License-Identifier: BSD-3-Clause
"""What banyan-topo prints for real outputs of the fabric tools, against files that somebody has read and found right.

    BANYAN_BUILD=build/dev python3 test/golden/test_golden.py --update      # then read the change
"""

import os
import subprocess
import sys
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BANYAN_BUILD", REPOSITORY / "build" / "dev"))
FIXTURES = REPOSITORY / "test" / "fixtures" / "ib"
GOLDEN = REPOSITORY / "test" / "fixtures" / "golden"

HEALTHY, FAULTS = "ibnetdiscover.txt", "ibnetdiscover-after-faults.txt"
DUMPS = sorted(path.stem for path in FIXTURES.glob("ibnetdiscover*.txt"))
FOREIGN = ("dump_fts", "dump_lfts", "iblinkinfo", "ibqueryerrors", "perfquery")
CASES = {
    **{f"{name}.show.json": ("show", "--json", f"{name}.txt") for name in DUMPS},
    **{f"{name}.show.txt": ("show", f"{name}.txt") for name in DUMPS},
    **{f"{name}.check.txt": ("check", f"{name}.txt") for name in DUMPS},
    **{f"{name}.refused.txt": ("show", f"{name}.txt") for name in FOREIGN},
    "faults.diff.txt": ("diff", HEALTHY, FAULTS),
    "faults.diff.json": ("diff", "--json", HEALTHY, FAULTS),
    "faults.golden.txt": ("check", "--golden", HEALTHY, FAULTS),
    "node.txt": ("show", "--node", "gpu0003", HEALTHY),
    "routes.txt": ("show", "--routes", "dump_lfts.txt", HEALTHY),
    "group.txt": ("show", "--group", "g2", "ibnetdiscover-3level-sharp.txt"),
}


def output(words):
    """Exit code, standard output and error, as one text."""
    run = subprocess.run([BUILD / "bin" / "banyan-topo", *words], cwd=FIXTURES, capture_output=True, text=True, timeout=60)
    return f"exit code {run.returncode}\n{run.stdout}{run.stderr}"


class Golden(unittest.TestCase):
    maxDiff = 4000

    def test_every_output(self):
        for name, words in CASES.items():
            with self.subTest(name):
                self.assertEqual(output(words), (GOLDEN / name).read_text(), f"banyan-topo {' '.join(words)} in {FIXTURES}")

    def test_every_golden_file_is_compared(self):
        self.assertEqual({path.name for path in GOLDEN.iterdir()}, set(CASES))


def update():
    GOLDEN.mkdir(exist_ok=True)
    for path in GOLDEN.iterdir():
        path.unlink()
    for name, words in CASES.items():
        (GOLDEN / name).write_text(output(words))


if __name__ == "__main__":
    if "--update" in sys.argv:
        update()
    else:
        unittest.main(verbosity=2)

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
FOREIGN = ("dump_fts", "dump_lfts", "ibqueryerrors", "perfquery")
# Two pipelines of eight stages, by name; and the same nodes in another order, which cuts both.
PLAN = ('{{"version":3,"job":1,"generation":1,"restart":0,"shape":"tp=8,pp=8,dp=2","ranks_per_node":8,"nodes":"{nodes}",'
        '"buddies":[8,16]}}')
PLACED = PLAN.format(nodes="gpu[0001-0008,0017-0024]")
CUT = PLAN.format(nodes="gpu[0001-0004,0017-0020,0005-0008,0021-0024]")
# One ring over all ranks: from the last rail of a node to the first of the next, so over a spine.
RING = PLAN.format(nodes="gpu[0001-0016]").replace("tp=8,pp=8,dp=2", "dp=128")
LARGE = "ibnetdiscover-3level-sharp.txt"
CASES = {
    **{f"{name}.show.json": ("show", "--json", f"{name}.txt") for name in DUMPS},
    **{f"{name}.show.txt": ("show", f"{name}.txt") for name in DUMPS},
    **{f"{name}.check.txt": ("check", f"{name}.txt") for name in DUMPS},
    **{f"{name}.refused.txt": ("show", f"{name}.txt") for name in FOREIGN},
    "faults.diff.txt": ("diff", HEALTHY, FAULTS),
    "faults.diff.csv": ("diff", "--csv", HEALTHY, FAULTS),
    "iblinkinfo.show.txt": ("show", "iblinkinfo.txt"),
    "iblinkinfo.check.txt": ("check", "iblinkinfo.txt"),
    "health.check.txt": ("check", "--health", "ibqueryerrors-faults.txt", "--health", "saquery-smir.txt", HEALTHY),
    "health.show.txt": ("show", "--health", "ibqueryerrors-faults.txt", "--health", "saquery-smir.txt", HEALTHY),
    "faults.diff.json": ("diff", "--json", HEALTHY, FAULTS),
    "faults.golden.txt": ("check", "--golden", HEALTHY, FAULTS),
    "node.txt": ("show", "--node", "gpu0003", HEALTHY),
    "routes.txt": ("show", "--routes", "dump_lfts.txt", HEALTHY),
    "place.txt": ("place", LARGE, "--shape", "tp=8,pp=4,dp=5", "--ranks-per-node", "8", "--spares", "1"),
    "place.model.txt": ("place", LARGE, "--shape", "tp=8,pp=4,dp=5", "--ranks-per-node", "8", "--model", "layers=80"),
    "explain.txt": ("explain", "--plan", PLACED, "--fabric", LARGE),
    "explain.json": ("explain", "--json", "--plan", PLACED, "--fabric", LARGE),
    "explain.cut.txt": ("explain", "--plan", CUT, "--fabric", LARGE),
    "explain.routes.txt": ("explain", "--routes", "dump_lfts.txt", "--plan", RING, "--fabric", HEALTHY),
    "group.txt": ("show", "--group", "g2", "ibnetdiscover-3level-sharp.txt"),
}


def output(words):
    """Exit code, standard output and error, as one text."""
    run = subprocess.run([BUILD / "bin" / "banyan-topo", *words], cwd=FIXTURES, capture_output=True, text=True, timeout=60,
                         env={**os.environ, "PATH": "/"})  # no sinfo to ask
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

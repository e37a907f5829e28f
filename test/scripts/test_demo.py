# SPDX-License-Identifier: BSD-3-Clause
"""What scripts/demo --pytorch makes of a training's output: the seconds by phase, and the pictures of its losses."""

import json
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "scripts" / "lib"))

from banyan_demo import curve, gpt_log  # noqa: E402


def start(rank, at, begins_at=5):
    """A rank that is `rank` tenths of a second slower in each phase."""
    times = {phase: at + (i + 1) * (1 + rank / 10) for i, phase in enumerate(gpt_log.PHASES)}
    return json.dumps({"rank": rank, "pid": 1, "node": "n01", "begins_at": begins_at, "source": "local", "times": times})


def step(number, loss, at):
    return json.dumps({"step": number, "loss": loss, "time": at})


class Log(unittest.TestCase):
    def read(self, *lines, end="\n"):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "log"
            file.write_text("\n".join(lines) + end)
            return gpt_log.read(file)

    def test_nothing_yet(self):
        self.assertEqual(gpt_log.read(Path("/nowhere/log")).newest(), -1)
        self.assertIsNone(gpt_log.resumed(self.read(end=""), 0, 2))

    def test_lines_of_others_and_half_a_line_are_passed_over(self):
        log = self.read("srun: error: n02: task 3: Killed", "{not JSON}", "{}", '{"loss": 1}',
                        '{"begins_at": 1, "times": null}', '{"begins_at": 1, "times": {"process": 1}}', "[1]",
                        '{"loss": 1, "step": null, "time": 1}', step(0, 2.5, 1), step(1, 2.25, 2)[:-3], end="")
        self.assertEqual((log.steps, log.starts), ([(0, 2.5, 1.0)], []))

    def test_a_step_that_is_trained_again_otherwise_shows(self):
        self.assertTrue(self.read(step(0, 2.5, 1), step(0, 2.5, 9)).trained_twice_alike())
        self.assertFalse(self.read(step(0, 2.5, 1), step(0, 2.5000000000000004, 9)).trained_twice_alike())

    def test_it_trains_again_when_all_ranks_do(self):
        before = [start(0, 0, 0), start(1, 0, 0), step(4, 3, 90), step(5, 3, 99)]
        self.assertIsNone(gpt_log.resumed(self.read(*before), 100, 2))
        self.assertIsNone(gpt_log.resumed(self.read(*before, start(0, 100)), 100, 2))
        late = step(6, 3, 100.5)  # of the ranks before, printed while they ended
        self.assertIsNone(gpt_log.resumed(self.read(*before, late, start(0, 100), start(1, 100)), 100, 2))
        starts, first = gpt_log.resumed(self.read(*before, late, start(1, 100), start(0, 100), step(5, 3, 107)), 100, 2)
        self.assertEqual((sorted(one["rank"] for one in starts), first), ([0, 1], (5, 3.0, 107.0)))
        phases = gpt_log.split(100, starts, first)
        self.assertEqual({name: round(took, 6) for name, took in phases.items()},
                         {"Slurm": 1.1, "imports": 1.1, "rendezvous": 1.1, "model and optimizer": 1.1, "restore": 1.1, "first step": 1.5})
        self.assertAlmostEqual(sum(phases.values()), 7)


class Curve(unittest.TestCase):
    def test_a_picture_of_one_step_and_of_many(self):
        for steps in (1, 2, 1000):
            with self.subTest(steps=steps):
                losses = {i: 4 - i / 1000 for i in range(steps)}
                picture = xml.fromstring(curve.svg(losses, losses, [(steps - 1, "rank <3> & more")]))
                texts = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
                self.assertIn("rank <3> & more", texts)
                self.assertIn("4.00", texts)
                lines = curve.sketch(losses, [(steps - 1, "rank 3")]).splitlines()
                self.assertEqual(lines[0][:9], "  4.00 |*")
                self.assertEqual(lines[-1].strip(), "A: rank 3")

    def test_more_faults_than_letters(self):
        lines = curve.sketch({0: 2.0, 100: 1.0}, [(step, "a fault") for step in range(30)]).splitlines()
        self.assertEqual(lines[-1].strip(), "D: a fault")

    def test_a_loss_that_is_no_number_leaves_a_gap(self):
        losses = {0: 2.0, 1: float("nan"), 2: float("inf"), 3: 1.0}
        self.assertNotIn("nan", curve.svg(losses, losses, []))
        self.assertIn("*", curve.sketch(losses, []))


if __name__ == "__main__":
    unittest.main(verbosity=2)

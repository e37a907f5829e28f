# SPDX-License-Identifier: BSD-3-Clause
"""What scripts/test decides and says: which tests run, which a change concerns, how a failed one is run alone, and that an interrupted
run loses nothing."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "scripts" / "lib"))

from banyan_test import TestError, folders, report, runner, tests  # noqa: E402


def entry(name, *labels):
    return {"name": name, "command": [f"/b/{name}"], "properties": [{"name": "LABELS", "value": list(labels)}]}


def listed(*entries):
    return tests.read(json.dumps({"tests": list(entries)}))


TESTS = listed(entry("test_a", "unit"), entry("cluster_b", "cluster", "nightly"), entry("hostile_c", "hostile"), entry("soak_d", "soak"))


class Tiers(unittest.TestCase):
    def test_the_later_tier_wins(self):
        self.assertEqual([test.tier for test in TESTS], ["gate", "nightly", "gate", "soak"])

    def test_a_label_without_a_tier_is_refused(self):
        for labels in (["fast"], []):
            with self.assertRaisesRegex(TestError, "has no tier"):
                listed(entry("test_a", *labels))


class Choice(unittest.TestCase):
    def chosen(self, *words, **options):
        return [test.name for test in tests.choose(TESTS, *words, **options)]

    def test_a_tier(self):
        self.assertEqual(self.chosen(("gate",)), ["test_a", "hostile_c"])
        self.assertEqual(self.chosen(("gate", "nightly")), ["test_a", "cluster_b", "hostile_c"])

    def test_what_a_change_concerns_comes_on_top(self):
        self.assertEqual(self.chosen(("gate",), also=["^cluster_"]), ["test_a", "cluster_b", "hostile_c"])

    def test_what_is_asked_for_runs_whatever_its_tier(self):
        self.assertEqual(self.chosen(("gate",), name="^soak"), ["soak_d"])
        self.assertEqual(self.chosen(("gate",), labels=["nightly"]), ["cluster_b"])
        self.assertEqual(self.chosen(("gate",), labels=["cluster"]), [])
        self.assertEqual(self.chosen(("gate", "nightly"), labels=["cluster"]), ["cluster_b"])
        self.assertEqual(self.chosen(("gate",), labels=["cluster"], name="_c$"), [])


class Folders(unittest.TestCase):
    TABLE = folders.read("# comment\nckptd\t^a\nckptd/agreement\t^b\n.\t^c\n")

    def test_the_longest_folder_counts(self):
        self.assertEqual(folders.concerned(self.TABLE, ["ckptd/x.cpp"]), ["^a"])
        self.assertEqual(folders.concerned(self.TABLE, ["ckptd/agreement/x.cpp", "README.md"]), ["^b", "^c"])
        self.assertEqual(folders.concerned(self.TABLE, []), [])

    def test_a_file_that_no_line_holds_concerns_every_test(self):
        self.assertEqual(folders.concerned(self.TABLE, ["ckptd2/x"]), [".*"])

    def test_missing_and_stale_lines_are_told(self):
        self.assertEqual(folders.check(self.TABLE, ["ckptd/a/b/x", "fault/policy/x", "README.md", "ckptd/agreement/x"]),
                         ["fault/policy: no line says which tests concern it"])
        self.assertEqual(folders.check(self.TABLE, ["ckptd/x", "README.md"]), ["ckptd/agreement: there is no such folder"])

    def test_a_line_that_cannot_be_read_is_refused(self):
        with self.assertRaises(TestError):
            folders.read("ckptd ^a\n")


class Again(unittest.TestCase):
    def test_catch(self):
        self.assertEqual(tests.cases(TESTS[0], "failed case: one, two\nfailed case: one, two\n"), [f"{SEED}/b/test_a 'one, two'"])

    def test_unittest(self):
        self.assertEqual(tests.cases(TESTS[1], "ERROR: test_it (__main__.Kind.test_it)\nFAIL: test_x (__main__.Kind)\n"
                                     "ERROR: setUpClass (__main__.Other)\n"),
                         [f"{SEED}/b/cluster_b Kind.test_it", f"{SEED}/b/cluster_b Kind.test_x", f"{SEED}/b/cluster_b Other"])

    def test_neither(self):
        self.assertEqual(tests.cases(TESTS[0], "Segmentation fault"), [f"{SEED}/b/test_a"])


class Records(unittest.TestCase):
    def test_of_the_same_files_it_is_gone_on_with(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "deep" / "record"
            runner.Record(path, "one").add(runner.Result("test_a", "gate", "passed", 1.5))
            self.assertEqual(list(runner.Record(path, "one").results), ["test_a"])
            self.assertEqual(runner.Record(path, "two").results, {})

    def test_a_line_of_ctest(self):
        for line, seen in ((" 1/20 Test  #3: test_a ......   Passed    1.50 sec", ("test_a", "Passed", "1.50")),
                           ("2/20 Test #13: b .........***Failed  Required regular expression not found.  0.10 sec",
                            ("b", "***Failed  Required regular expression not found.", "0.10")),
                           ("3/20 Test #4: c ....***Exception: SegFault  2.00 sec", ("c", "***Exception: SegFault", "2.00"))):
            self.assertEqual(runner.ENDED.match(line).groups(), seen)


class Report(unittest.TestCase):
    RESULTS = [runner.Result("test_b", "gate", "failed", 2, "line\x1b[0m"), runner.Result("test_a", "nightly", "passed", 30),
               runner.Result("test_c", "gate", "skipped", 0)]

    def test_the_table_and_the_closing_line(self):
        self.assertEqual([line.split() for line in report.table(self.RESULTS).splitlines()],
                         [["test_a", "nightly", "30.00", "s", "passed"], ["test_b", "gate", "2.00", "s", "failed"],
                          ["test_c", "gate", "0.00", "s", "skipped"]])
        self.assertEqual(report.summary(self.RESULTS, 40)[0], "1 passed, 1 failed, 1 skipped")
        self.assertTrue(report.slowest(self.RESULTS).split("\n")[0].endswith("test_a"))

    def test_the_junit_file_can_be_read_whatever_was_printed(self):
        with tempfile.TemporaryDirectory() as folder:
            report.junit(self.RESULTS, Path(folder) / "j.xml")
            root = xml.parse(Path(folder) / "j.xml").getroot()
        self.assertEqual({case.get("name"): [child.tag for child in case] for case in root.iter("testcase")},
                         {"test_a": [], "test_b": ["failure"], "test_c": ["skipped"]})


class Packages(unittest.TestCase):
    def test_a_build_that_found_no_slurm_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            build = Path(folder)
            (build / "CPackConfig.cmake").touch()
            (build / "CMakeCache.txt").write_text(f"BANYAN_SLURM_SOURCE:PATH={folder}/none\nCMAKE_BUILD_TYPE:STRING=Release\n")
            made = subprocess.run([REPOSITORY / "scripts" / "package", build], capture_output=True, text=True, check=False)
        self.assertEqual(made.returncode, 1, made.stdout)
        self.assertIn("scripts/setup", made.stderr)
        self.assertIn("--without-slurm", made.stderr)


SEED = f"BANYAN_SEED={os.environ['BANYAN_SEED']} " if "BANYAN_SEED" in os.environ else ""

if __name__ == "__main__":
    unittest.main(verbosity=2)

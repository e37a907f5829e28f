# SPDX-License-Identifier: BSD-3-Clause
"""Runs tests by ctest, and keeps what became of each as it ends: an interrupted run loses one test."""

import json
import os
import re
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from . import tests as registry

ENDED = re.compile(r"^\s*\d+/\d+ Test\s+#\d+: (\S+) \.*\s*(.*?)\s+([\d.]+) sec")
# ctest counts two for a test in C++ and one for a cluster, which waits for others half of its time: some of each run side by side.
AT_ONCE = 2 * os.cpu_count() + 1
WORDS = {"Passed": "passed", "***Skipped": "skipped", "***Not Run": "not run"}


@dataclass
class Result:
    name: str
    tier: str
    result: str  # passed, failed, skipped, not run
    seconds: float
    output: str = ""  # of a test that failed

    @property
    def bad(self):
        return self.result in ("failed", "not run")


class Record:
    """The results of a tree of files, a line of JSON each. Of the same tree they are gone on with."""

    def __init__(self, path, tree):
        self.path, self.results = Path(path), {}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        if lines and json.loads(lines[0]) == {"tree": tree}:
            self.results = {result.name: result for result in (Result(**json.loads(line)) for line in lines[1:])}
        else:
            self.path.write_text(json.dumps({"tree": tree}) + "\n")

    def add(self, result):
        self.results[result.name] = result
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(result)) + "\n")


def outputs(build):
    """{test: what it printed} of ctest's last run."""
    text = (Path(build) / "Testing" / "Temporary" / "LastTest.log").read_text(errors="replace")
    parts = re.split(r"^\d+/\d+ Test(?:ing)?: (\S+)$", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def run(build, chosen, heard):
    """Runs the tests, and those that they need as fixtures; heard(Result) as each ends. False when one failed."""
    tiers, ended = {test.name: test.tier for test in registry.registered(build)}, {}

    def end(name, word, seconds):
        ended[name] = Result(name, tiers.get(name, "gate"), word, seconds)
        heard(ended[name])

    words = ["ctest", "--test-dir", str(build), "-C", "soak", "--no-tests=error", "--parallel", str(AT_ONCE), "-R",
             "^(" + "|".join(re.escape(test.name) for test in chosen) + ")$"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, errors="replace",
                               env={**registry.ENVIRONMENT, "CTEST_OUTPUT_ON_FAILURE": "1"})
    try:
        for line in process.stdout:
            print(line, end="", flush=True)
            if found := ENDED.match(line):
                end(found[1], WORDS.get(found[2].strip(), "failed"), float(found[3]))
    except BaseException:
        process.terminate()
        process.wait()
        raise
    process.wait()
    for test in chosen:
        if test.name not in ended:
            end(test.name, "not run", 0)
    said = outputs(build)
    for result in ended.values():
        result.output = said.get(result.name, "") if result.bad else ""
    return process.returncode == 0 and not any(result.bad for result in ended.values())

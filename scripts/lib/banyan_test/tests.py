# SPDX-License-Identifier: BSD-3-Clause
"""The registered tests, as ctest lists them, and the tier of each."""

import json
import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import TestError

# When a test with this label runs. The later tier wins: a hostile test that is nightly is nightly.
TIERS = ("gate", "nightly", "soak")
TIER_OF = {"unit": "gate", "daemon": "gate", "cluster": "gate", "hostile": "gate", "installed": "gate", "nightly": "nightly", "soak": "soak"}
# Debian's ctest, since another one may come first in the user's PATH.
ENVIRONMENT = {**os.environ, "PATH": "/usr/bin:" + os.environ.get("PATH", "")}


@dataclass(frozen=True)
class Test:
    name: str
    labels: tuple
    command: tuple
    environment: tuple  # "NAME=value"

    @property
    def tier(self):
        return max((TIER_OF[label] for label in self.labels), key=TIERS.index)


def read(listing):
    """The tests of `ctest --show-only=json-v1`."""
    found = []
    for entry in json.loads(listing)["tests"]:
        properties = {p["name"]: p["value"] for p in entry.get("properties", [])}
        labels = tuple(properties.get("LABELS", ()))
        unknown = [label for label in labels if label not in TIER_OF]
        if unknown or not labels:
            raise TestError(f"test {entry['name']} has the label {unknown[0] if unknown else 'none'}, which has no tier: name it in "
                            "scripts/lib/banyan_test/tests.py and CONTRIBUTING.md")
        found.append(Test(entry["name"], labels, tuple(entry.get("command", ())), tuple(properties.get("ENVIRONMENT", ()))))
    return found


def registered(build):
    done = subprocess.run(["ctest", "--test-dir", build, "-C", "soak", "--show-only=json-v1"], capture_output=True, text=True, env=ENVIRONMENT,
                          check=False)
    if done.returncode:
        raise TestError(f"the tests of {build} cannot be listed: {done.stderr.strip()}")
    return read(done.stdout)


def choose(tests, tiers, labels=(), name=None, also=()):
    """Those of the tiers, and those whose name matches one of `also`; of them those with one of the labels and a name that matches. What
    is asked for by name runs whatever its tier, and a label brings its own."""
    tiers = TIERS if name else {*tiers, *(TIER_OF[label] for label in labels)}
    return [test for test in tests
            if (test.tier in tiers or any(re.search(pattern, test.name) for pattern in also))
            and (not labels or set(labels) & set(test.labels)) and (not name or re.search(name, test.name))]


def cases(test, output):
    """The commands that run each failed case of the test alone; the test itself where its output names no case."""
    settings = " ".join(f"{key}={shlex.quote(value)}" for key, _, value in (entry.partition("=") for entry in sorted(test.environment)))
    seed = os.environ.get("BANYAN_SEED")
    before = " ".join([f"BANYAN_SEED={seed}"] * bool(seed) + [settings] * bool(settings))
    if not test.command:
        return [f"ctest -R '^{test.name}$', once its program is built"]
    program, *words = (word.replace(str(Path.cwd()) + "/", "") for word in test.command)
    program, whole = f"{before} {program}".strip(), f"{before} {shlex.join([program, *words])}".strip()
    catch = re.findall(r"^failed case: (.+)$", output, re.M)
    python = re.findall(r"^(?:FAIL|ERROR): (\w+) \(__main__\.(\w+)", output, re.M)
    found = [f"{program} {shlex.quote(case)}" for case in catch]
    found += [f"{whole} {kind}" if case.endswith("Class") else f"{whole} {kind}.{case}" for case, kind in python]
    return list(dict.fromkeys(found)) or [whole]

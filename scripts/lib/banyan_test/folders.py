# SPDX-License-Identifier: BSD-3-Clause
"""Which tests a change of a folder concerns: test/folders.tsv. The line with the longest folder that holds a file is the file's."""

import re
import subprocess
import sys
from pathlib import Path

from . import TestError

REPOSITORY = Path(__file__).resolve().parents[3]
MAP = REPOSITORY / "test" / "folders.tsv"
DEPTH = 2  # folders below the repository's that need a line, where one above has none


def read(text):
    """{folder: expression on names of tests}"""
    lines = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    for line in lines:
        if len(line) != 2:
            raise TestError(f"test/folders.tsv: '{' '.join(line)}' is no folder, a tab, and an expression")
        re.compile(line[1])
    return dict(lines)


def of_file(table, path):
    """The folder of the table that says which tests a file concerns, or None."""
    held = [folder for folder in table if path == folder or path.startswith(folder + "/") or (folder == "." and "/" not in path)]
    return max(held, key=len, default=None)


def concerned(table, paths):
    """The expressions of all folders that hold one of the files. A file that no line holds concerns every test."""
    found = {of_file(table, path) for path in paths}
    return sorted({".*" if folder is None else table[folder] for folder in found})


def git(*words):
    done = subprocess.run(["git", *words], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        raise TestError(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.splitlines()


def changed(base):
    """Files that differ from `base`, those that git does not know yet included."""
    return sorted({*git("diff", "--name-only", base, "--"), *git("ls-files", "--others", "--exclude-standard")})


def check(table, paths):
    """What is wrong with the table: files without a line, lines without a file."""
    missing = sorted({"/".join(path.split("/")[:-1][:DEPTH]) or "." for path in paths if of_file(table, path) is None})
    stale = sorted(folder for folder in table if not any(of_file({folder: ""}, path) for path in paths))
    return [f"{folder}: no line says which tests concern it" for folder in missing] + [f"{folder}: there is no such folder" for folder in stale]


def main():
    wrong = check(read(MAP.read_text()), git("ls-files"))
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: BSD-3-Clause
"""What is written for users of PyTorch against what there is: programs parse, and call what the package has; the release that the tests run
is in the table of those that were tried."""

import ast
import re
import sys
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "scripts" / "lib"))
import python_venv  # noqa: E402

PACKAGE = REPOSITORY / "ckptd" / "python" / "banyan_ckpt"
TEXTS = [REPOSITORY / name for name in ("README.md", "docs/getting-started.md", "docs/pytorch.md", "ckptd/python/README.md")]
PROGRAMS = sorted((REPOSITORY / "examples" / "gpt").glob("*.py"))


def blocks(text):
    return re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)


def public():
    """The names that a program may use of the package."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    names = next(node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")
    return {*ast.literal_eval(names), *(file.stem for file in PACKAGE.glob("[a-z]*.py"))}


def used(tree, name="banyan"):
    """What a program takes of it."""
    return {node.attr for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name}


class Texts(unittest.TestCase):
    def test_programs_parse_and_call_what_there_is(self):
        found = 0
        for file in TEXTS:
            for block in blocks(file.read_text()):
                with self.subTest(file=file.name, block=block[:60]):
                    self.assertLessEqual(used(ast.parse(block)), public())
                found += 1
        self.assertGreaterEqual(found, len(TEXTS))

    def test_so_does_the_example(self):
        self.assertTrue(PROGRAMS)
        names = set().union(*(used(ast.parse(file.read_text())) for file in PROGRAMS))
        self.assertGreaterEqual(names, {"init", "load", "save", "finish", "Rng"})
        self.assertLessEqual(names, public())

    def test_the_release_that_tests_run_is_in_the_table(self):
        table = (REPOSITORY / "docs" / "pytorch.md").read_text().partition("## PyTorch releases")[2]
        release = python_venv.TORCH.partition("==")[2]
        python = "%d.%d" % sys.version_info[:2]
        self.assertRegex(table, rf"(?m)^\| {re.escape(release)} \| {re.escape(python)} \|", "docs/pytorch.md lacks it")


if __name__ == "__main__":
    unittest.main(verbosity=2)

# SPDX-License-Identifier: BSD-3-Clause
"""The sample configuration says the truth: every key is known to its daemon, and the value shown is the default in force."""

import re
import subprocess
import tempfile
import unittest

from harness import REPOSITORY, main, program

SAMPLE = REPOSITORY / "etc" / "banyan.conf"
DAEMONS = {"banyan-faultd": ["controller"], "banyan-ckptd": []}
# Everything that says whether a configuration is right.
CHECKS = (("banyan-faultd", "controller", "--check-config"), ("banyan-faultd", "agent", "--check-config"), ("banyan-ckptd", "--check-config"),
          ("banyan-fault", "check-config"))


def milliseconds(text):
    """Durations compare by what they mean: a daemon dumps 10m as 600000ms."""
    number = re.fullmatch(r'"(\d+)(ms|s|m|h)"', text)
    return int(number[1]) * {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}[number[2]] if number else text


def size(value):
    number = re.fullmatch(r'"?(\d+)([KMGT]?)i?B?"?', str(value))
    return int(number[1]) << {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[number[2]] if number else value


def tables(text):
    """{(table, key): value} of TOML without nesting."""
    found, table = {}, None
    for line in text.splitlines():
        if match := re.fullmatch(r"\[(\w+)\]", line):
            table = match[1]
        elif match := re.fullmatch(r"(\w+) = (.*)", line):
            found[table, match[1]] = milliseconds(match[2])
    return found


class Sample(unittest.TestCase):
    def run_daemon(self, name, *options):
        return subprocess.run([program(name), *DAEMONS[name], *options], capture_output=True, text=True, timeout=20, check=False)

    def check_all(self, text):
        """Of each check: (its words, exit code, standard output, standard error)."""
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write(text)
            file.flush()
            for words in CHECKS:
                run = subprocess.run([program(words[0]), "--config", file.name, *words[1:]] if words[0] == "banyan-fault" else
                                     [program(words[0]), *words[1:], "--config", file.name], capture_output=True, text=True, timeout=20, check=False)
                yield words, run.returncode, run.stdout, run.stderr

    def uncommented(self):
        return re.sub(r"^#(\w+ = )", r"\1", SAMPLE.read_text(), flags=re.M)

    def test_every_key_is_known(self):
        for words, code, _, error in self.check_all(self.uncommented()):
            self.assertEqual(code, 0, (words, error))

    def test_an_unknown_key_is_not(self):
        """Not by any of them, whoever reads the table."""
        for table, wrong, right in (("fault", "prot", "port"), ("ckptd", "memory_limt", "memory_limit"), ("munge", "soket", "socket"),
                                    ("peers", "encrpt", "encrypt"), ("topo", "max_ag", "max_age"), ("sweep", "lnks", "links")):
            for words, code, _, error in self.check_all(f"[{table}]\n{wrong} = 1\n"):
                self.assertEqual(code, 2, (words, table, error))
                self.assertIn(f'did you mean "{right}"?', error, words)

    def test_what_has_no_effect_is_said(self):
        for gpus, times in ((1, 1), (2, 0)):
            for words, code, told, error in self.check_all(f"[sweep]\ngpus = {gpus}\nallreduce = 300\n"):
                self.assertEqual((code, told.count("allreduce is left out")), (0, times), (words, told + error))

    def test_the_defaults_are_the_defaults(self):
        shown = tables(self.uncommented())
        for name, table in (("banyan-faultd", "fault"), ("banyan-ckptd", "ckptd")):
            run = self.run_daemon(name, "--config", SAMPLE, "--dump-config")
            self.assertEqual(run.returncode, 0, run.stderr)
            real = {key: value for key, value in tables(run.stdout).items() if key[0] == table}
            self.assertEqual({key: size(value) for key, value in shown.items() if key[0] == table},
                             {key: size(value) for key, value in real.items()})

    def test_a_sandbox_is_said(self):
        """What confines the agent confines a sweep that it starts, and a node that is well would look unfit."""
        unit = (REPOSITORY / "etc" / "systemd" / "banyan-faultd-agent.service").read_text()
        confines = re.search(r"^(ProtectSystem|ProtectHome|PrivateTmp|MemoryMax|SystemCallFilter)=", unit, re.M)
        said = re.search(r"^ExecStart=.* agent --sandboxed ", unit, re.M)
        self.assertEqual(bool(confines), bool(said))
        sweep = (REPOSITORY / "etc" / "systemd" / "banyan-sweep.service").read_text()
        self.assertIsNone(re.search(r"^(ProtectSystem|ProtectHome|PrivateTmp|ReadOnlyPaths|InaccessiblePaths)=", sweep, re.M))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""The manual pages say what is: every option of every program, every key of the configuration, and nothing that is not there."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import man_compare
import man_page

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BANYAN_BUILD", REPOSITORY / "build" / "dev"))
SLURM = os.environ.get("BANYAN_SLURM", "ON") != "OFF"
PAGES = sorted((REPOSITORY / "docs" / "man").glob("*.[1-9]"))
NEEDS_SLURM = {"banyan-run"}
EXAMPLES = {"banyan-trainer"}  # shown by example, explained by its own help
INTERNAL = {"banyan-ckpt-keeper"}  # told with the program that starts it


def setUpModule():
    if not (BUILD / "bin" / "banyan-topo").exists():
        raise AssertionError(f"no program in {BUILD}/bin: run scripts/build")


def source(name):
    return next(page for page in PAGES if page.name == name).read_text()


def run(program, *words):
    return subprocess.run([BUILD / "bin" / program, *words], capture_output=True, text=True, timeout=20, check=False)


class Form(unittest.TestCase):
    def test_pages_are_well_formed(self):
        self.assertTrue(shutil.which("groff"), "groff is not installed: run scripts/setup")
        for page in PAGES:
            with self.subTest(page=page.name):
                done = subprocess.run(["groff", "-man", "-ww", "-z", "-Tascii", page], capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_titles_fit_the_files(self):
        for page in PAGES:
            title, section = re.search(r"^\.TH (\S+) (\d)", page.read_text(), re.M).groups()
            self.assertEqual(f"{man_page.plain(title).lower()}.{section}", page.name)

    def test_references_lead_somewhere(self):
        for page in PAGES:
            for name, section in re.findall(r"\b((?:\w+_)?banyan[\w.-]*|\w+_banyan) ?\((\d)\)", man_page.plain(page.read_text())):
                self.assertIn(f"{name}.{section}", [known.name for known in PAGES], f"{page.name} refers to it")


class Programs(unittest.TestCase):
    maxDiff = None

    def programs(self):
        """(program, page) of all pages of sections 1 and 8 that are about a program."""
        for page in PAGES:
            if page.stem.startswith("banyan-") and (SLURM or page.stem not in NEEDS_SLURM):
                yield page.stem, page

    def helps(self, program):
        """{command: Command} as the program tells; "" is the program itself."""
        done = run(program, "--help")
        self.assertEqual(done.returncode, 0, f"{program} --help: {done.stderr}")
        whole, commands = man_page.of_help(done.stdout)
        found = {"": whole}
        for name in commands:
            done = run(program, name, "--help")
            self.assertEqual(done.returncode, 0, f"{program} {name} --help: {done.stderr}")
            found[name], deeper = man_page.of_help(done.stdout, name)
            for inner in deeper:
                done = run(program, name, inner, "--help")
                self.assertEqual(done.returncode, 0, f"{program} {name} {inner} --help: {done.stderr}")
                found[f"{name} {inner}"], deepest = man_page.of_help(done.stdout, f"{name} {inner}")
                self.assertEqual(deepest, {}, f"{program} {name} {inner} has commands of its own: teach this test about them")
        return found

    def test_every_program_has_a_page(self):
        built = {path.name for path in (BUILD / "bin").glob("banyan-*")} - EXAMPLES - INTERNAL
        self.assertEqual(built, {program for program, _ in self.programs()}, "programs built, and those with a page in docs/man")

    def test_pages_and_help_are_the_same(self):
        wrong = []
        for program, page in self.programs():
            wrong += man_compare.differences(program, page.name, self.helps(program), man_page.of_page(page.read_text()))
        if wrong:
            self.fail("pages and --help differ:\n\n" + "\n\n".join(wrong))


class Defects(unittest.TestCase):
    def test_every_kind_of_defect_is_explained(self):
        told = {tag for section, _, tag, _ in man_page.tagged(source("banyan-topo.1")) if section == "DEFECTS"}
        calls = [call for path in (REPOSITORY / "topo" / "model").glob("*.cpp")
                 for call in re.findall(r"\breport\(([^{]*)", path.read_text())]
        found = {kind for call in calls for kind in re.findall(r'"([a-z]+(?:-[a-z]+)*)"', call)}
        check = (REPOSITORY / "topo" / "cli" / "check.cpp").read_text()
        against_golden = set(re.findall(r'out\.push_back\(\s*\{"([a-z-]+)"', check))
        self.assertEqual(told, found | against_golden, "kinds below .SH DEFECTS of docs/man/banyan-topo.1, and those that are reported")
        advised = set(re.findall(r'\{"([a-z-]+)",\s+"', check))
        self.assertEqual(told, advised, "kinds below .SH DEFECTS of docs/man/banyan-topo.1, and those that check has advice for")


class Configuration(unittest.TestCase):
    maxDiff = None
    CHECKED_BY = {"ckptd": ["banyan-ckptd"], "munge": ["banyan-ckptd"], "peers": ["banyan-faultd", "controller"],
                  "topo": ["banyan-ckptd"], "fault": ["banyan-faultd", "controller"], "sweep": ["banyan-ckptd"]}
    # The first words of a key's text say its type: values that must be taken, and values that must not.
    TYPES = {
        "Path": (['"x"'], ["1", "true"]),
        "String": (['"x"'], ["1", "true"]),
        "Duration": (['"1ms"', '"2s"', '"3m"', '"3min"', '"4h"', '"5"'], ["5", '"5 days"', '"-1s"']),
        "Size": (['"1.5G"', '"64M"', '"100"'], ["5", '"5 pounds"']),
        "List of strings, at least one": (['["a", "b"]'], ['"a"', "[]", "[1]"]),
        "List of strings.": (['["a", "b"]', "[]"], ['"a"', "[1]"]),
        "true or false": (["true", "false"], ['"true"', "1"]),
    }

    def keys(self):
        """{(table, key): (default, text)} of the page."""
        return {(section[1:-1], *tag.split(" = ", 1)[:1]): (tag.split(" = ", 1)[1], text)
                for _, section, tag, text in man_page.tagged(source("banyan.conf.5")) if section.startswith("[")}

    def check(self, *settings):
        """The daemon's verdict on a file with these (table, key, value), all of one daemon: its complaint, or ""."""
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            for table in sorted({table for table, _, _ in settings}):
                file.write(f"[{table}]\n" + "".join(f"{key} = {value}\n" for t, key, value in settings if t == table))
            file.flush()
            done = run(*self.CHECKED_BY[settings[0][0]], "--config", file.name, "--check-config")
        self.assertIn(done.returncode, (0, 2), done.stderr)
        return done.stderr

    def test_keys_and_defaults_are_those_of_the_sample(self):
        sample, table = {}, ""
        for line in (REPOSITORY / "etc" / "banyan.conf").read_text().splitlines():
            if match := re.fullmatch(r"\[(\w+)\]", line):
                table = match[1]
            elif match := re.fullmatch(r"#?(\w+) = (.*)", line):
                sample[table, match[1]] = match[2]
        self.assertTrue(sample)
        paged = {key: default for key, (default, _) in self.keys().items()}
        wrong = []
        for key in sorted(sample.keys() | paged.keys()):
            lines = (f"docs/man/banyan.conf.5: {paged.get(key, 'nothing')}", f"etc/banyan.conf: {sample.get(key, 'nothing')}")
            if paged.get(key) != sample.get(key):
                wrong.append(f"[{key[0]}] {key[1]} = in " + "; in ".join(lines))
        if wrong:
            self.fail("page and sample differ:\n" + "\n".join(wrong))

    def test_the_daemons_know_every_key(self):
        for tables in (("ckptd", "munge"), ("fault",)):
            settings = [(table, key, default) for (table, key), (default, _) in self.keys().items() if table in tables]
            self.assertEqual(self.check(*settings), "")
        self.assertIn("no key", self.check(("fault", "prot", "1")))

    def test_slurmctld_reads_what_the_page_has_of_topo(self):
        read = re.findall(r'section\.\w+\("(\w+)"', (REPOSITORY / "slurmctld-plugin" / "fabric" / "fabric_cache.cpp").read_text())
        self.assertEqual(sorted(read), sorted(key for table, key in self.keys() if table == "topo" and key not in ("names", "site")))  # read with a dump

    def test_types_and_ranges_are_enforced(self):
        for (table, key), (_, text) in self.keys().items():
            if bounds := re.match(r"Whole number, (\d+) to (\d+)\.", text):
                low, high = map(int, bounds.groups())
                good, bad = [low, high], [low - 1, high + 1, '"1"']
            elif names := re.match(r"One of (.*?)\.", text):
                good, bad = re.findall(r'"\w+"', names[1]), ['"x"', "1"]
            else:
                kind = next((kind for kind in self.TYPES if text.startswith(kind)), None)
                self.assertTrue(kind, f"banyan.conf.5: [{table}] {key} begins with no type: {text!r}")
                good, bad = self.TYPES[kind]
                if key == "policy":  # the file is read, too
                    good = ['""', f'"{REPOSITORY / "etc" / "banyan-policy.toml"}"']
                if key == "logs":  # each with its format
                    good, bad = ["[]", '["nccl:/x", "fabric-manager:/y"]'], [*bad, '["a"]', '["nccl:relative"]']
                if key == "hca_counters":  # each with its limit
                    good, bad = ["[]", '["a:0/1s", "b:5/24h"]'], [*bad, '["a"]', '["a:1"]', '["a:1/25h"]', '["../a:1/1h"]']
            if table not in self.CHECKED_BY:
                continue
            with self.subTest(table=table, key=key):
                for value in good:
                    self.assertEqual(self.check((table, key, value)), "", f"{key} = {value} should be taken")
                for value in bad:
                    self.assertIn(key, self.check((table, key, value)), f"{key} = {value} should be refused")


class Plugins(unittest.TestCase):
    """The plugins have no --help outside of a running Slurm: their pages are held against the source."""

    def part(self, name):
        return (REPOSITORY / "spank" / name).read_text()

    def test_spank_options(self):
        page = source("spank_banyan.8")
        tags = {tag for _, _, tag, _ in man_page.tagged(page)}
        rows = re.findall(r'\{"(train-[\w-]+)", "(\w+)", .*\s+"\w+", "(\w+)"\}', (REPOSITORY / "train" / "options.cpp").read_text())
        self.assertEqual({tag for tag in tags if tag.startswith("--")}, {f"--{option}={value}" for option, value, _ in rows} | {"--train"})
        for _, _, variable in rows:
            self.assertIn(variable, page)
            self.assertIn(variable, source("banyan.7"))
        keys = re.search(r"known\{(.*?)\}", (REPOSITORY / "train" / "options.cpp").read_text())[1]
        arguments = re.findall(r'argument\{"(\w+)"', (REPOSITORY / "common" / "plugstack_arguments.cpp").read_text())
        self.assertEqual({tag.split("=")[0] for tag in tags if re.match(r"\w+=", tag)},
                         set(re.findall(r'"(\w+)"', keys)) | set(arguments))

    def test_environment_of_a_task(self):
        told = set()
        for _, subsection, tag, text in man_page.tagged(source("banyan.7")):
            if subsection in ("Of a task", "Of a launcher"):
                told |= set(re.findall(r"\b[A-Z][A-Z_]{3,}\b", tag)) | set(re.findall(r"\bBANYAN_[A-Z_]+\b", text))
        given = set(re.findall(r'\b(?:set|setenv|propose)\((?:sp, )?"([A-Z_]+)"', self.part("task_environment.cpp") + self.part("local.cpp")))
        given |= {f"BANYAN_{name}_{what}" for name in ("TP", "CP", "EP", "PP", "DP") for what in ("RANK", "SIZE")}
        self.assertEqual(told, given)


if __name__ == "__main__":
    unittest.main(verbosity=2)

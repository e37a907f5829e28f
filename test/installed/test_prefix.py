# SPDX-License-Identifier: BSD-3-Clause
"""A tree that is installed below any prefix agrees with itself: what units, samples and pages name is there, and is what the programs
were built with. And others can compile against it."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BANYAN_BUILD", REPOSITORY / "build" / "dev"))
PREFIXES = ("/usr", "/opt/banyan")
OURS = re.compile(r"(/[\w./-]*(?:libexec/banyan|bin|lib/systemd/system)/(?:banyan-[\w@.-]+))")
PROGRAM = """#include <banyan/ckpt.h>
#include <stdio.h>
int main(void) { return printf("%d\\n", bck_init(NULL, 0, 1)) < 0; }
"""


def cmake():
    # A copy from elsewhere may come first in the user's PATH.
    return "/usr/bin/cmake" if os.path.exists("/usr/bin/cmake") else "cmake"


def run(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=240, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{words} ended with {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done.stdout


class Tree(unittest.TestCase):
    """The build as it is, installed below its own prefix; and its texts, configured for another one."""

    @classmethod
    def setUpClass(cls):
        cls.dir = Path(tempfile.mkdtemp(prefix="banyan-installed-"))
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)
        cls.prefix = next(line.split("=", 1)[1] for line in (BUILD / "CMakeCache.txt").read_text().splitlines()
                          if line.startswith("CMAKE_INSTALL_PREFIX:"))
        cls.root = cls.dir / "root"
        run(cmake(), "--install", BUILD, env={**os.environ, "DESTDIR": str(cls.root)})

    def tree(self, prefix):
        """The texts of an installation: those of this build, or of one that is only configured, for another prefix."""
        if prefix == self.prefix:
            return [path for path in self.root.rglob("*") if path.is_file()]
        other = self.dir / ("build" + prefix.replace("/", "-"))
        if not other.exists():
            cache = (BUILD / "CMakeCache.txt").read_text()
            known = [f"-D{key}={value}" for key, value in re.findall(r"^(BANYAN_SLURM_SOURCE|BANYAN_GPU_HEADERS):\w+=(.*)$", cache, re.M)]
            run(cmake(), "-S", REPOSITORY, "-B", other, "-G", "Ninja", f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DBUILD_TESTING=OFF", *known)
        return [path for path in (other / "adapted").rglob("*") if path.is_file()]

    def test_what_is_named_is_there(self):
        named = 0
        installed = {str(path.relative_to(self.root)) for path in self.root.rglob("*") if not path.is_dir()}
        for prefix in PREFIXES:
            for path in self.tree(prefix):
                if path.suffix in (".so", ".gz") or b"\0" in path.read_bytes()[:4096]:
                    continue
                for name in OURS.findall(path.read_text(errors="replace")):
                    name = name.rstrip(".")
                    if name.startswith("/etc/"):
                        continue
                    self.assertTrue(name.startswith(prefix + "/"), f"{path} names {name}, installed below {prefix}")
                    self.assertIn(self.prefix.lstrip("/") + name.removeprefix(prefix), installed, f"{path} names {name}")
                    named += 1
        self.assertGreater(named, 10)

    def test_what_root_runs_is_hardened(self):
        """By what the linker wrote: an overflow in a daemon beside users' code ends it, and does not take it over."""
        met = 0
        for path in self.root.rglob("*"):
            if path.is_symlink() or not path.is_file() or path.read_bytes()[:4] != b"\x7fELF":
                continue
            with self.subTest(path.name):
                heads, dynamic, symbols = run("readelf", "-lW", path), run("readelf", "-dW", path), run("nm", "-D", path)
                self.assertIn("GNU_RELRO", heads)
                self.assertRegex(heads, r"GNU_STACK .* RW  ")
                self.assertRegex(heads, r"file type is (DYN|\S+ \()")
                self.assertIn("__stack_chk_fail", symbols)
                self.assertRegex(symbols, r"U __\w+_chk@", "no function of FORTIFY")
                # Each program of Slurm that loads a plugin has only a part of the symbols that it refers to.
                if "slurm" not in path.parent.name:
                    self.assertRegex(dynamic, r"BIND_NOW|Flags: .*NOW")
            met += 1
        self.assertGreater(met, 8)

    def test_units_start_what_is_installed(self):
        units = list((self.root / self.prefix.lstrip("/") / "lib/systemd/system").iterdir())
        self.assertEqual(len(units), 7)
        for unit in units:
            for program in re.findall(r"^ExecStart=(\S+)", unit.read_text(), re.M):
                self.assertTrue(os.access(self.root / program.lstrip("/"), os.X_OK), f"{unit.name}: {program}")

    def test_the_programs_were_built_for_it(self):
        for name, word in (("spank_banyan.so", f"{self.prefix}/libexec/banyan"),):
            found = [path for path in self.root.rglob(name)]
            if not found:
                self.skipTest("built without Slurm")
            self.assertIn(word.encode(), found[0].read_bytes())
        pages = f"{self.prefix}/share/doc/banyan"
        self.assertIn(pages.encode(), next(self.root.rglob("bin/banyan-fault")).read_bytes())
        for reason in ("gpu-xid-79", "fabric-link"):
            self.assertTrue((self.root / pages.lstrip("/") / "runbook" / f"{reason}.md").exists())

    def test_another_prefix_at_installation_is_refused(self):
        done = subprocess.run([cmake(), "--install", BUILD, "--prefix", "/elsewhere"], capture_output=True, text=True, check=False,
                              env={**os.environ, "DESTDIR": str(self.dir / "other")})
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("-DCMAKE_INSTALL_PREFIX=/elsewhere", done.stderr)

    def test_configuration_of_the_admin_stays(self):
        conf = self.root / "etc/banyan/banyan.conf"
        text = conf.read_text()
        self.addCleanup(conf.write_text, text)
        conf.write_text("# mine\n")
        run(cmake(), "--install", BUILD, "--component", "tools", env={**os.environ, "DESTDIR": str(self.root)})
        self.assertEqual(conf.read_text(), "# mine\n")

    def test_every_program_says_its_release(self):
        version = os.environ.get("BANYAN_VERSION")
        programs = [path for path in self.root.rglob("banyan-*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
        self.assertGreaterEqual(len(programs), 7)
        for program in programs:
            said = run(program, "--version", env={**os.environ, "LD_LIBRARY_PATH": str(self.library().parent)}).strip()
            self.assertRegex(said, rf"^{program.name} \d+\.\d+\.\d+ \((Slurm \d+\.\d+\.\d+.*|without Slurm)\)$")
            if version:
                self.assertEqual(said, f"{program.name} {version}")

    def library(self):
        return next(self.root.rglob("libbanyan_ckpt.so.0"))

    def moved(self, text):
        """A package description as it reads where DESTDIR is the root."""
        return text.replace(f"={self.prefix}", f"={self.root}{self.prefix}")

    def works(self, program):
        said = run(program, env={**os.environ, "LD_LIBRARY_PATH": str(self.library().parent)})
        self.assertLess(int(said.splitlines()[-1]), 0)  # no daemon: a code, not a crash

    def test_a_program_by_pkg_config(self):
        pc = next(self.root.rglob("banyan-ckpt.pc"))
        (self.dir / "pc").mkdir(exist_ok=True)
        (self.dir / "pc" / "banyan-ckpt.pc").write_text(self.moved(pc.read_text()))
        flags = run("pkg-config", "--cflags", "--libs", "banyan-ckpt",
                    env={**os.environ, "PKG_CONFIG_PATH": str(self.dir / "pc"), "PKG_CONFIG_ALLOW_SYSTEM_CFLAGS": "1"}).split()
        (self.dir / "saves.c").write_text(PROGRAM)
        run("gcc", "-o", self.dir / "saves", self.dir / "saves.c", *flags)
        self.works(self.dir / "saves")

    def test_a_program_by_cmake(self):
        source = self.dir / "user"
        source.mkdir()
        (source / "saves.c").write_text(PROGRAM)
        (source / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.23)\nproject(user LANGUAGES C)\n"
                                               "find_package(banyan-ckpt 0.1 REQUIRED)\nadd_executable(saves saves.c)\n"
                                               "target_link_libraries(saves PRIVATE banyan::ckpt)\n")
        where = next(self.root.rglob("banyan-ckptConfig.cmake")).parent
        run(cmake(), "-S", source, "-B", source / "build", f"-Dbanyan-ckpt_DIR={where}")
        run(cmake(), "--build", source / "build")
        self.works(source / "build" / "saves")

    def test_completions_know_what_help_says(self):
        completions = self.root / self.prefix.lstrip("/") / "share/bash-completion/completions"
        self.assertEqual(sorted(path.name for path in completions.iterdir()),
                         [f"banyan-{name}" for name in ("ckpt", "ckptd", "doctor", "fault", "faultd", "run", "sweep", "topo")])

        def complete(*words):
            program = next(path for path in self.root.rglob(words[0]) if path.is_file() and os.access(path, os.X_OK))
            script = (f'. {completions}/{words[0]}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _banyan; printf "%s\\n" "${{COMPREPLY[@]}}"')
            return set(run("bash", "-c", script, "bash", program, *words[1:]).split())

        self.assertLessEqual({"show", "check", "snapshot", "explain"}, complete("banyan-topo", ""))
        self.assertEqual(complete("banyan-topo", "sn"), {"snapshot"})
        self.assertLessEqual({"-o", "--output", "--help"}, complete("banyan-topo", "snapshot", "-"))
        self.assertEqual(complete("banyan-fault", "incidents", "--f"), {"--follow"})
        self.assertLessEqual({"--bind", "--version", "--detach"}, complete("banyan-ckptd", "--"))
        if any(self.root.rglob("banyan-run")):
            self.assertIn("--version", complete("banyan-run", "--v"))

    def test_a_snapshot_by_the_timer_s_program(self):
        work = self.dir / "snapshot"
        work.mkdir()
        topo = next(self.root.rglob("bin/banyan-topo"))
        script = (work / "script")
        script.write_text(next(self.root.rglob("libexec/banyan/banyan-snapshot")).read_text().replace(f"={self.prefix}/bin/banyan-topo", f"={topo}"))
        script.chmod(0o755)
        fabric = run(topo, "gen", "--nodes", "4", "--group-size", "2", "--rails", "2")
        (work / "fabric").write_text(fabric)
        whole, broken = work / "discover", work / "broken"
        whole.write_text(f"#!/bin/sh\ncat {work}/fabric\n")
        broken.write_text(f"#!/bin/sh\nhead -c 500 {work}/fabric\nexit 1\n")
        for program in (whole, broken):
            program.chmod(0o755)
        environment = {**os.environ, "SNAPSHOT": str(work / "out"), "TMPDIR": str(work)}
        run(script, env={**environment, "DISCOVER": str(whole)})
        before = (work / "out").read_bytes()
        for discover in (broken, Path("/nonexistent/ibnetdiscover"), Path("/bin/true")):
            done = subprocess.run([script], env={**environment, "DISCOVER": str(discover)}, capture_output=True, text=True, check=False)
            self.assertNotEqual(done.returncode, 0, discover)
            self.assertIn("banyan-topo: ", done.stderr)
            self.assertEqual((work / "out").read_bytes(), before)
        self.assertEqual(sorted(path.name for path in work.iterdir()), ["broken", "discover", "fabric", "out", "script"])


if __name__ == "__main__":
    unittest.main(verbosity=2)

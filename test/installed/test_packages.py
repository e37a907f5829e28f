# SPDX-License-Identifier: BSD-3-Clause
"""The packages of this build: what is in them against test/installed/golden, lintian's word, what they need, and their whole life on
a copy of this host (package_life.py). BANYAN_UPDATE_GOLDEN=1 writes the lists anew."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import package_life

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BANYAN_BUILD", REPOSITORY / "build" / "dev"))
GOLDEN = Path(__file__).with_name("golden")
NAMES = ["banyan-ckptd", "banyan-faultd", "banyan-slurm-plugins", "banyan-tools", "libbanyan-ckpt", "libbanyan-ckpt-dev"]


def run(*words, check=True, **options):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=400,
                          check=False, **options)
    if check and done.returncode != 0:
        raise AssertionError(f"{words} ended with {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout if check else done


def general(line):
    """A line of a list without what differs between builds and releases."""
    line = re.sub(r"\blib/[\w]+-linux-gnu\b", "lib/ARCH", line)
    line = re.sub(r"banyan-ckptConfig-\w+\.cmake", "banyan-ckptConfig-TYPE.cmake", line)
    line = re.sub(r"(/doc/banyan/(?:\w+/)?)[\w-]+\.md$", r"\1*.md", line)  # how many pages there are is no matter of packing
    return re.sub(r"\.so\.\d+\.\d+\.\d+", ".so.VERSION", line)


class Packages(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.dir = Path(tempfile.mkdtemp(prefix="banyan-packages-"))
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)
        cpack = "/usr/bin/cpack" if os.path.exists("/usr/bin/cpack") else "cpack"
        run(cpack, "--config", BUILD / "CPackConfig.cmake", "-G", cls.generator, "-B", cls.dir, cwd=cls.dir)
        cls.files = {cls.name_of(path): path for path in sorted(cls.dir.glob(f"*.{cls.generator.lower()}"))}

    def against_golden(self, name, lines):
        text = "".join(f"{line}\n" for line in dict.fromkeys(general(f"{package} {line}") for package, line in lines))
        golden = GOLDEN / name
        if os.environ.get("BANYAN_UPDATE_GOLDEN"):
            golden.parent.mkdir(exist_ok=True)
            golden.write_text(text)
        self.assertEqual(golden.read_text(), text, f"{golden.relative_to(REPOSITORY)} differs")

    def live(self, script):
        """On an overlay of this host's root, in a mount namespace: the host stays as it is."""
        said = package_life.live(self.dir, self.files.values(), script)
        if said is None:
            self.skipTest("no overlay can be mounted on this host")
        self.assertEqual(said, "", said[-5000:])
        self.assertFalse(Path("/etc/banyan/banyan.conf").is_symlink())

    def test_there_are_all(self):
        self.assertEqual(sorted(self.files), NAMES)


@unittest.skipUnless(shutil.which("dpkg-shlibdeps"), "needs dpkg-dev")
class Debian(Packages):
    generator = "DEB"

    @staticmethod
    def name_of(path):
        return run("dpkg-deb", "-f", path, "Package").strip()

    def field(self, name, field):
        return run("dpkg-deb", "-f", self.files[name], field).strip()

    def control(self, name):
        folder = self.dir / "control" / name
        if not folder.exists():
            folder.parent.mkdir(exist_ok=True)
            run("dpkg-deb", "-e", self.files[name], folder)
        return folder

    def test_contents(self):
        lines = []
        for name in NAMES:
            for line in run("dpkg-deb", "-c", self.files[name]).splitlines():
                mode, owner, _, _, _, path = line.split(None, 5)
                if not path.endswith("/") or path in ("./var/lib/banyan/", "./var/log/banyan/"):
                    lines.append((name, f"{mode} {owner} {path[1:]}"))
        self.against_golden("deb", lines)

    @unittest.skipUnless(shutil.which("lintian"), "needs lintian")
    def test_lintian_finds_no_error(self):
        said = run("lintian", "--fail-on", "none", *self.files.values())
        self.assertEqual([line for line in said.splitlines() if line.startswith("E: ")], [])

    def test_who_maintains_them(self):
        told = {self.field(name, "Maintainer") for name in NAMES}
        self.assertEqual(len(told), 1)
        self.assertRegex(told.pop(), r"^[^<>@]+ <[^<>@ ]+@[^<>@ ]+>$")

    def test_what_they_need(self):
        version = self.field("banyan-tools", "Version")
        release = re.fullmatch(r"\d+\.\d+\.\d+-1\+slurm(\d+)\.(\d+)\.(\d+).*", version)
        self.assertTrue(release, version)
        major, minor, micro = release.groups()
        plugins = self.field("banyan-slurm-plugins", "Depends")
        if owner := run("dpkg-query", "-S", "*/select_cons_tres.so", check=False).stdout.partition(":")[0]:
            # Nothing but this very micro release of Slurm.
            self.assertIn(f"{owner} (>= {major}.{minor}.{micro}), {owner} (<< {major}.{minor}.{int(micro) + 1}~)", plugins)
        for name in ("banyan-ckptd", "banyan-faultd", "banyan-slurm-plugins"):
            self.assertIn(f"banyan-tools (= {version})", self.field(name, "Depends"))
        for name in ("banyan-tools", "libbanyan-ckpt-dev"):
            self.assertIn(f"libbanyan-ckpt (= {version})", self.field(name, "Depends"))
        self.assertIn("libslurm", self.field("banyan-faultd", "Depends"))

    def test_scripts(self):
        for name in NAMES:
            for script in self.control(name).iterdir():
                if script.name in ("postinst", "postrm", "prerm", "preinst"):
                    run("sh", "-n", script)
                    self.assertTrue(os.access(script, os.X_OK), script)
                    # Slurm's daemons are not ours to start or to stop.
                    self.assertNotRegex(script.read_text(), r"(systemctl|service|invoke-rc\.d)[^\n]*(slurmctld|slurmd)")
        self.assertEqual((self.control("banyan-tools") / "conffiles").read_text(), "/etc/banyan/banyan.conf\n")

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "needs root")
    def test_their_life(self):
        self.live(package_life.DEBIAN)


@unittest.skipUnless(shutil.which("rpmbuild"), "needs rpmbuild")
class Rpm(Packages):
    generator = "RPM"

    @staticmethod
    def name_of(path):
        return run("rpm", "-qp", "--qf", "%{NAME}", path)

    def query(self, name, *options):
        return run("rpm", "-qp", *options, self.files[name])

    def test_contents(self):
        lines = []
        for name in NAMES:
            text = self.query(name, "--qf", "[%{FILEMODES:perms} %{FILEUSERNAME} %{FILEFLAGS:fflags} %{FILENAMES}\n]")
            lines += [(name, line) for line in text.splitlines()]
        self.against_golden("rpm", lines)

    def test_who_maintains_them(self):
        self.assertRegex(self.query("banyan-tools", "--qf", "%{PACKAGER}"), r"^[^<>@]+ <[^<>@ ]+@[^<>@ ]+>$")

    def test_scriptlets(self):
        for name in NAMES:
            text = self.query(name, "--scripts")
            self.assertNotRegex(text, r"(systemctl|service)[^\n]*(slurmctld|slurmd)")
        self.assertIn("systemd-tmpfiles --create banyan.conf", self.query("banyan-tools", "--scripts"))
        self.assertIn("ldconfig", self.query("libbanyan-ckpt", "--scripts"))
        self.assertNotIn("restart", self.query("banyan-ckptd", "--scripts").replace("Never started again", ""))

    def test_what_they_need(self):
        needs = self.query("banyan-slurm-plugins", "--requires")
        release = re.search(r"^slurm >= (\d+\.\d+)\.(\d+)$", needs, re.M)
        self.assertTrue(release, needs)
        self.assertIn(f"slurm < {release[1]}.{int(release[2]) + 1}\n", needs)
        self.assertNotIn("select_cons_tres.so", needs)
        self.assertRegex(self.query("banyan-ckptd", "--requires"), r"(?m)^banyan-tools = ")


    def test_scriptlets_are_shell(self):
        for name in NAMES:
            for when in ("PREIN", "POSTIN", "PREUN", "POSTUN"):
                script = self.query(name, "--qf", f"%{{{when}}}")
                if script != "(none)":
                    run("sh", "-n", input=script)
                    self.assertEqual(self.query(name, "--qf", f"%{{{when}PROG}}"), "/bin/sh")

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "needs root")
    def test_their_life(self):
        self.live(package_life.RPM)


del Packages


if __name__ == "__main__":
    unittest.main(verbosity=2)

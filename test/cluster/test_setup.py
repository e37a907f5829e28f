# SPDX-License-Identifier: BSD-3-Clause
"""scripts/setup where it cannot do its work: one clear sentence, status 1, nothing changed. And: a no-op when all is there."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from harness import REPOSITORY, main

DEAD_PROXY = 'Acquire::http::Proxy "http://127.0.0.1:9";\nAcquire::https::Proxy "http://127.0.0.1:9";\nAcquire::Retries "0";\n'


class Setup(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="banyan-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.folder.chmod(0o755)
        self.policy = Path("/usr/sbin/policy-rc.d")
        self.policy_before = self.policy.read_bytes() if self.policy.exists() else None

    def tearDown(self):
        now = self.policy.read_bytes() if self.policy.exists() else None
        self.assertEqual(now, self.policy_before)

    def run_setup(self, *prefix, words=(), **variables):
        env = {**os.environ, "BANYAN_DEPS": str(self.folder / "deps"), **{key: str(value) for key, value in variables.items()}}
        return subprocess.run([*prefix, str(REPOSITORY / "scripts" / "setup"), *words], env=env, capture_output=True, text=True, timeout=50,
                              stdin=subprocess.DEVNULL, check=False)

    def assert_one_sentence(self, run, *words):
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertEqual(len(run.stderr.strip().splitlines()), 1, run.stderr)
        self.assertTrue(run.stderr.startswith("scripts/setup: "), run.stderr)
        for word in words:
            self.assertIn(word, run.stderr)

    def empty_dpkg(self):
        """A package database without a package: everything counts as missing."""
        admin = self.folder / "admin"
        admin.mkdir()
        (admin / "status").touch()
        return admin

    def test_no_op_when_done(self):
        def run(**variables):
            return subprocess.run([str(REPOSITORY / "scripts" / "setup")], env={**os.environ, **variables}, capture_output=True, text=True,
                                  timeout=50, check=False)
        first = run()
        if (first.returncode, first.stdout) != (0, ""):
            self.skipTest("this tree was set up by other means")
        # Nor is there anything that it would fetch.
        nowhere = "http://127.0.0.1:9"
        again = run(http_proxy=nowhere, https_proxy=nowhere)
        self.assertEqual((again.returncode, again.stdout), (0, ""), again.stderr)

    def test_another_distribution(self):
        release = self.folder / "os-release"
        release.write_text('ID=ubuntu\nVERSION_ID="24.04"\nPRETTY_NAME="Ubuntu 24.04 LTS"\n')
        run = self.run_setup(BANYAN_OS_RELEASE=release)
        self.assert_one_sentence(run, "Ubuntu 24.04 LTS", "Debian 12")
        self.assertFalse((self.folder / "deps").exists())

    def test_debian_13(self):
        release = self.folder / "os-release"
        release.write_text('ID=debian\nVERSION_ID="13"\nPRETTY_NAME="Debian GNU/Linux 13 (trixie)"\n')
        listed = self.run_setup(words=("--list",), BANYAN_OS_RELEASE=release).stdout.split()
        self.assertIn("libboost-dev", listed)
        self.assertNotIn("libboost1.81-dev", listed)
        # It goes on to where root is asked for.
        run = self.run_setup("setpriv", "--reuid=65534", "--clear-groups", DPKG_ADMINDIR=self.empty_dpkg(), BANYAN_OS_RELEASE=release)
        self.assert_one_sentence(run, "root is needed", "libboost-dev")

    def test_no_os_release(self):
        self.assert_one_sentence(self.run_setup(BANYAN_OS_RELEASE=self.folder / "none"), "an unknown system", "Debian 12")

    @unittest.skipUnless(os.geteuid() == 0, "needs root to become another user")
    def test_without_root(self):
        run = self.run_setup("setpriv", "--reuid=65534", "--clear-groups", DPKG_ADMINDIR=self.empty_dpkg())
        self.assert_one_sentence(run, "root is needed", "slurmctld", "sudo scripts/setup")

    @unittest.skipUnless(os.geteuid() == 0, "needs root to become another user")
    def test_a_folder_of_somebody_else(self):
        self.assert_one_sentence(self.run_setup("setpriv", "--reuid=65534", "--clear-groups"), "cannot write to")

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_no_registry_for_the_packages(self):
        (self.folder / "lists" / "partial").mkdir(parents=True)
        (self.folder / "cache" / "archives" / "partial").mkdir(parents=True)
        (self.folder / "status").touch()
        conf = self.folder / "apt.conf"
        conf.write_text(DEAD_PROXY + f'Dir::State::status "{self.folder}/status";\nDir::State::lists "{self.folder}/lists";\n'
                        f'Dir::Cache "{self.folder}/cache";\n')
        run = self.run_setup(APT_CONFIG=conf, DPKG_ADMINDIR=self.empty_dpkg())
        self.assert_one_sentence(run, "registry cannot be reached", "check the network")

    @unittest.skipUnless(shutil.which("slurmctld") or os.path.exists("/usr/sbin/slurmctld"), "needs Slurm")
    def test_no_registry_for_slurms_source(self):
        conf = self.folder / "apt.conf"
        conf.write_text(DEAD_PROXY)
        run = self.run_setup(APT_CONFIG=conf)
        self.assert_one_sentence(run, "source of Slurm", "check the network")
        self.assertFalse((self.folder / "deps" / "slurm").exists())

    def without_pip(self, *words):
        """Where Slurm's source is there, and Python's package registry is not."""
        version = subprocess.run(["dpkg-query", "-W", "-f", "${source:Version}", "slurmctld"], capture_output=True, text=True, check=True).stdout
        source = self.folder / "deps" / "slurm"
        source.mkdir(parents=True, exist_ok=True)
        (source / "config.h").touch()
        (source / ".banyan-version").write_text(version)
        run = self.run_setup(words=words, PIP_INDEX_URL="http://127.0.0.1:9", PIP_EXTRA_INDEX_URL="", PIP_FIND_LINKS="", PIP_CONFIG_FILE="/dev/null")
        self.assertEqual(run.returncode, 0, run.stderr)
        return run

    @unittest.skipUnless(shutil.which("slurmctld") or os.path.exists("/usr/sbin/slurmctld"), "needs Slurm")
    def test_what_debian_has_alone(self):
        self.assertNotIn("left out", self.without_pip("--debian").stdout)
        self.assertEqual(self.without_pip("--debian").stdout, "")

    @unittest.skipUnless(shutil.which("slurmctld") or os.path.exists("/usr/sbin/slurmctld"), "needs Slurm")
    def test_no_registry_for_zig(self):
        run = self.without_pip()
        self.assertIn("left out: ziglang", run.stdout)
        self.assertFalse((self.folder / "deps" / "zig").exists())

    def test_an_unknown_option(self):
        run = subprocess.run([str(REPOSITORY / "scripts" / "setup"), "--fast"], capture_output=True, text=True, timeout=50, check=False)
        self.assert_one_sentence(run, "--fast", "--help")


if __name__ == "__main__":
    main()

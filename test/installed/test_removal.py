# SPDX-License-Identifier: BSD-3-Clause
"""The packages' removal script against sites: where a slurm.conf still names the plugins they stay, however Slurm lets one write
that, and what could not be looked at is told. Each case has an /etc/slurm and a /run of its own, in a mount namespace."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BANYAN_BUILD", REPOSITORY / "build" / "dev"))
SCRIPT = BUILD / "packages" / "plugins" / "prerm"
CONF = "/etc/slurm/slurm.conf"
OURS = "SelectType=select/cons_tres_banyan\n"
THEIRS = "ClusterName=site\nSelectType=select/cons_tres\nJobSubmitPlugins=lua\n"
# The folders that a case may fill are empty; a daemon is a sleep of that name.
ENTER = r"""
mount -t tmpfs tmpfs /etc/slurm && mount -t tmpfs tmpfs /etc/default && mount -t tmpfs tmpfs /run && cp -a "$1/files/." / || exit 99
for daemon in $2; do cp /bin/sleep "$1/bin/$daemon"; $3 "$1/bin/$daemon" 60 & done
for daemon in $2; do until [ "$(cat /proc/$!/comm)" = "$daemon" ]; do :; done; done
shift 3
exec sh "$@"
"""

# What a slurm.conf, or what it includes, may look like: (name, files, what has to be told).
STAY = [
    ("as the page writes it", {CONF: THEIRS + OURS}, f"{CONF}:4: SelectType=select/cons_tres_banyan"),
    ("keys in any case", {CONF: "sElEcTtYpE=select/cons_tres_banyan\n"}, f"{CONF}:1: SelectType"),
    ("spaces", {CONF: "  SelectType \t=  select/cons_tres_banyan  # ours\n"}, f"{CONF}:1: SelectType"),
    ("quotes", {CONF: 'SelectType="select/cons_tres_banyan"\n'}, f"{CONF}:1: SelectType"),
    ("two on a line", {CONF: "ClusterName=a SelectType=select/cons_tres_banyan SlurmUser=b\n"}, f"{CONF}:1: SelectType"),
    ("a continued line", {CONF: "ClusterName=a\nSelectType=\\\nselect/cons_tres_banyan\n"}, f"{CONF}:2: SelectType"),
    ("lines of another system", {CONF: "SelectType=select/cons_tres_banyan\r\n"}, f"{CONF}:1: SelectType"),
    ("one of several", {CONF: THEIRS + "JobSubmitPlugins=lua,banyan,throttle\n"}, f"{CONF}:4: JobSubmitPlugins=lua,banyan,throttle"),
    ("by its full name", {CONF: "JobSubmitPlugins=job_submit/banyan"}, f"{CONF}:1: JobSubmitPlugins"),
    ("an included file", {CONF: "include select.conf\n", "/etc/slurm/select.conf": OURS}, "/etc/slurm/select.conf:1: SelectType"),
    ("included twice over", {CONF: "Include /etc/slurm/d/a\n", "/etc/slurm/d/a": "include d/b\n", "/etc/slurm/d/b": OURS}, "/etc/slurm/d/b:1:"),
    ("by the cluster's name", {CONF: "ClusterName=Site\nInclude %c.conf\n", "/etc/slurm/site.conf": OURS}, "/etc/slurm/site.conf:1:"),
    ("a node's copy", {"/run/slurm/conf/slurm.conf": OURS}, "/run/slurm/conf/slurm.conf:1:"),
    ("slurmd's default", {CONF: THEIRS, "/etc/default/slurmd": 'SLURMD_OPTIONS="-D -f /run/x/slurm.conf"\n', "/run/x/slurm.conf": OURS},
     "/run/x/slurm.conf:1:"),
    ("a required line of plugstack.conf", {CONF: THEIRS, "/etc/slurm/plugstack.conf": "include d/*.conf\n",
                                           "/etc/slurm/d/x.conf": "required spank_banyan.so\n"}, "required by /etc/slurm/d/x.conf"),
    ("plugstack.conf elsewhere", {CONF: THEIRS + "PlugStackConfig=/run/stack\n", "/run/stack": "required /x/spank_banyan.so a=b\n"},
     "required by /run/stack"),
    ("an included file that is not there", {CONF: "Include gone.conf\n" + THEIRS}, "could not look whether the plugins are still named: "
     "/etc/slurm/gone.conf"),
]
GO = [
    ("taken out", {CONF: THEIRS}),
    ("a comment", {CONF: THEIRS + "#SelectType=select/cons_tres_banyan\nSlurmUser=a # JobSubmitPlugins=banyan\n"}),
    ("a word that is like ours", {CONF: THEIRS + "JobSubmitPlugins=banyan_tree\nClusterName=banyan\nMailProg=/opt/banyan\n"}),
    ("a file that nobody includes", {CONF: THEIRS, "/etc/slurm/slurm.conf.old": OURS}),
    ("includes itself", {CONF: THEIRS + "include slurm.conf\n"}),
]


@unittest.skipUnless(os.geteuid() == 0 and os.path.isdir("/etc/slurm") and shutil.which("unshare"), "needs root and an /etc/slurm")
class Removal(unittest.TestCase):
    def setUp(self):
        self.dir = Path(tempfile.mkdtemp(prefix="banyan-removal-"))
        self.addCleanup(shutil.rmtree, self.dir)

    def ask(self, files, argument="remove", daemons="", starter="", scontrol="exit 1", **env):
        """Runs the script; (exit status, what it told)."""
        shutil.rmtree(self.dir / "files", ignore_errors=True)
        shutil.rmtree(self.dir / "bin", ignore_errors=True)
        (self.dir / "bin").mkdir()
        (self.dir / "files").mkdir()
        for path, text in files.items():
            file = self.dir / "files" / path.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, newline="")
        tool = self.dir / "bin" / "scontrol"
        tool.write_text(f"#!/bin/sh\n{scontrol}\n")
        tool.chmod(0o755)
        done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", ENTER, "sh", self.dir,
                               daemons, starter, SCRIPT, argument, *(["1.0"] if argument == "upgrade" else [])], text=True, timeout=60,
                              env={"PATH": f"{self.dir}/bin:/usr/sbin:/usr/bin:/sbin:/bin", **env},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.assertNotEqual(done.returncode, 99, done.stdout)
        return done.returncode, done.stdout

    def test_they_stay_where_they_are_named(self):
        for name, files, told in STAY:
            with self.subTest(name):
                status, text = self.ask(files)
                self.assertIn(told, text)
                self.assertEqual(status, 1)
                self.assertIn("BANYAN_REMOVE_ANYWAY=yes apt-get remove banyan-slurm-plugins", text)

    def test_they_go_where_they_are_not(self):
        for name, files in GO:
            with self.subTest(name):
                self.assertEqual(self.ask(files), (0, ""))

    def test_the_administrator_has_the_last_word(self):
        status, text = self.ask({CONF: OURS}, BANYAN_REMOVE_ANYWAY="yes")
        self.assertEqual(status, 0)
        self.assertIn(f"still named by {CONF}:1", text)
        self.assertIn("removed all the same", text)
        self.assertEqual(self.ask({CONF: OURS}, BANYAN_REMOVE_ANYWAY="")[0], 1)

    def test_an_upgrade_is_no_removal(self):
        for argument in ("upgrade", "failed-upgrade", "deconfigure"):
            self.assertEqual(self.ask({CONF: OURS}, argument), (0, ""))

    def test_a_line_that_only_complains(self):
        status, text = self.ask({CONF: THEIRS, "/etc/slurm/plugstack.conf": "optional spank_banyan.so\n"})
        self.assertEqual(status, 0)
        self.assertIn("complains until the line of spank_banyan.so is gone from\n  /etc/slurm/plugstack.conf", text)

    def test_where_there_is_no_file_slurmctld_is_asked(self):
        said = "echo 'SelectType              = select/cons_tres_banyan'; echo 'JobSubmitPlugins        = lua'"
        status, text = self.ask({}, scontrol=said)
        self.assertEqual(status, 1)
        self.assertIn("still named by slurmctld: SelectType=select/cons_tres_banyan", text)
        self.assertEqual(self.ask({}, scontrol=said.replace("_banyan", "")), (0, ""))
        status, text = self.ask({}, scontrol="echo 'SelectType = x'; echo 'JobSubmitPlugins = lua,banyan'")
        self.assertEqual(status, 1)

    def test_nobody_knows(self):
        status, text = self.ask({})
        self.assertEqual(status, 0)
        self.assertIn("no slurm.conf was found on this host and no slurmctld answers", text)

    def test_nobody_knows_and_slurm_runs(self):
        for daemon in ("slurmctld", "slurmd"):
            status, text = self.ask({}, daemons=daemon)
            self.assertEqual(status, 1)
            self.assertRegex(text, f"could not look whether .*: the slurm.conf of {daemon}, process \\d+, cannot be read")

    def test_the_file_of_a_daemon_that_runs(self):
        files = {CONF: THEIRS, "/run/own/slurm.conf": OURS}
        status, text = self.ask(files, daemons="slurmctld", starter="env SLURM_CONF=/run/own/slurm.conf")
        self.assertIn("/run/own/slurm.conf:1: SelectType", text)
        self.assertEqual(status, 1)

    def test_a_user_s_process_of_that_name(self):
        """It could name a file of his that never ends, or ours as named, and keep root's hands tied."""
        self.dir.chmod(0o755)
        files = {CONF: THEIRS, "/run/own/slurm.conf": OURS}
        for daemon in ("slurmctld", "slurmd"):
            status, text = self.ask(files, daemons=daemon,
                                    starter="setpriv --reuid 54321 --regid 54321 --clear-groups env SLURM_CONF=/run/own/slurm.conf")
            self.assertEqual((status, text), (0, ""))

    def test_the_rpm_asks_the_same(self):
        text = (BUILD / "packages" / "plugins" / "preun").read_text().replace("%%", "%")
        self.assertEqual(text.replace('"0"', '"remove"').replace("dnf remove", "apt-get remove"), SCRIPT.read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)

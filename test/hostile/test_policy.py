#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Policies that no administrator means to write, and what the daemon and `banyan-fault policy` make of them. No controller is needed."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from harness import main, program

REPOSITORY = Path(__file__).resolve().parents[2]
FIXTURES = REPOSITORY / "test" / "fixtures" / "fault"
SHIPPED = REPOSITORY / "etc" / "banyan-policy.toml"
DEADLINE = 60


class Policy(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.dir = Path(tempfile.mkdtemp(prefix="banyan-policy-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.conf = self.dir / "banyan.conf"
        self.conf.write_text("")

    def file(self, text, name="policy.toml"):
        path = self.dir / name
        path.write_text(text)
        return path

    def tool(self, *words, text=None):
        return subprocess.run([program("banyan-fault"), "--config", self.conf, "policy", *words], capture_output=True, text=True, input=text,
                              timeout=DEADLINE, check=False)

    def controller(self, policy):
        """A controller that must not start."""
        self.conf.write_text(f'[fault]\npolicy = "{policy}"\nport = 1\nsocket = "{self.dir}/sock"\nhistory = "{self.dir}/history.db"\n')
        done = subprocess.run([program("banyan-faultd"), "controller", "--config", self.conf], capture_output=True, text=True, timeout=DEADLINE,
                              check=False)
        self.assertFalse((self.dir / "history.db").exists(), "it touched its history")
        return done

    def test_shipped(self):
        for words in ((), (SHIPPED,), ("-",)):
            done = self.tool("check", *words, text=SHIPPED.read_text())
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, r"right: \d+ rules, 0 warnings\n$")
        told = [json.loads(self.tool("explain", "--json", *words).stdout) for words in ((), (SHIPPED,))]
        self.assertEqual(told[0]["digest"], told[1]["digest"])
        self.assertEqual(told[0]["rules"], told[1]["rules"])

    def test_examples_of_the_shipped_file_are_right(self):
        text = SHIPPED.read_text()
        head, examples = text.split("# Examples.")
        examples = re.sub(r"^# ?", "", examples.split("\n", 1)[1], flags=re.M)
        rules = head[head.index("[[rule]]"):]
        done = self.tool("check", self.file(examples + rules))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"right: 26 rules, 0 warnings\n$")

    def test_what_is_no_policy(self):
        fifo = self.dir / "fifo"
        os.mkfifo(fifo)
        huge = self.file("[[rule]]\n", "huge.toml")
        os.truncate(huge, 100 << 20)
        link = self.dir / "link"
        link.symlink_to(self.dir / "nowhere")
        for path, told in ((fifo, "is a FIFO, expected a file"), (self.dir, "is a directory, expected a file"), ("/dev/zero", "a device or socket"),
                           (huge, "is larger than 1048576 bytes"), (link, "No such file"), (self.dir / "x", "see [fault] policy")):
            for words in (("check", path), ("explain", path), ("test", "--policy", path, "/dev/null")):
                with self.subTest(words=words):
                    done = self.tool(*words)
                    self.assertEqual((done.returncode, done.stdout), (3, ""))
                    self.assertIn(told, done.stderr)
            done = self.controller(path)
            self.assertEqual(done.returncode, 2)
            self.assertIn(told, done.stderr)
            self.conf.write_text("")

    @unittest.skipUnless(os.geteuid() == 0, "root reads as another user")
    def test_unreadable(self):
        self.dir.chmod(0o755)
        path = self.file(SHIPPED.read_text())
        path.chmod(0o600)
        done = subprocess.run([program("banyan-fault"), "--config", self.conf, "policy", "check", path], capture_output=True, text=True, user=65534,
                              group=65534, extra_groups=[], timeout=DEADLINE, check=False)
        self.assertEqual(done.returncode, 3)
        self.assertIn("uid 65534 must be able to read it", done.stderr)

    def test_others_may_write_it(self):
        path = self.file(SHIPPED.read_text())
        path.chmod(0o664)
        done = self.tool("check", path)
        self.assertEqual(done.returncode, 0)
        self.assertIn("warning", done.stdout)
        self.assertIn("can be written by others", done.stdout)

    def test_wrong_ones_tell_all_and_nobody_starts(self):
        path = self.file('[[rule]]\nname = "a"\naction = "reboot"\nkind = "xld"\n\n[[rule]]\nname = "a"\naction = "down\\u001b[2J"\n')
        done = self.tool("check", path)
        self.assertEqual(done.returncode, 1)
        lines = done.stdout.splitlines()
        self.assertEqual([line.split(": ")[0] for line in lines[:-1]], [f"{path}:{place}" for place in ("3:10", "4:8", "7:8", "8:10")])
        self.assertIn("possible are ignore, log, notify-user, alert, seal, avoid, sweep, restart-step, requeue, drain, down", lines[0])
        self.assertNotIn("\x1b", done.stdout)
        self.assertEqual(lines[-1], f"{path} is wrong: 4 errors")
        problems = json.loads(self.tool("check", "--json", path).stdout)
        self.assertFalse(problems["right"])
        self.assertEqual([(p["line"], p["column"]) for p in problems["problems"]], [(3, 10), (4, 8), (7, 8), (8, 10)])
        for words in (("explain", path), ("test", "--policy", path)):
            self.assertEqual(self.tool(*words, text="").returncode, 2)
        done = self.controller(path)
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"{path}:", done.stderr)
        self.assertIn("banyan-fault policy check", done.stderr)
        self.assertEqual(self.tool("check", text="").returncode, 1, "the file that banyan.conf names")

    def test_nothing_and_half_a_file(self):
        whole = SHIPPED.read_text()
        for text in ("", "\n", "# gone\n", "\0", "[[rule]]", whole[:whole.rindex("\naction")]):
            with self.subTest(text=text[-20:]):
                done = self.tool("check", self.file(text))
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertRegex(done.stdout, r":\d+:\d+: ")

    def test_thousands_of_rules(self):
        rules = [f'[[rule]]\nname = "r{n}"\nxid = {n + 1}\naction = "drain"\n' for n in range(4097)]
        done = self.tool("check", self.file("".join(rules[:4096])))
        self.assertEqual(done.returncode, 0)
        self.assertIn("accuses the application (Xid 13)", done.stdout)
        done = self.tool("explain", self.file("".join(rules[:4096])))
        self.assertLessEqual(max(map(len, done.stdout.splitlines()[2:])), 100)
        done = self.tool("check", self.file("".join(rules)))
        self.assertEqual(done.returncode, 1)
        self.assertIn("at most 4096", done.stdout)

    def test_read_again(self):
        """SIGHUP: whatever stands in the file's place, the rules that are in force stay, and that is said."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        path, log, sock = self.file(SHIPPED.read_text()), self.dir / "log", self.dir / "sock"
        self.conf.write_text(f'[fault]\npolicy = "{path}"\nport = {port}\nbind = "127.0.0.1"\nsocket = "{sock}"\n'
                             f'history = "{self.dir}/history.db"\n')
        daemon = subprocess.Popen([program("banyan-faultd"), "controller", "--config", self.conf, "--log", log])
        self.addCleanup(daemon.wait, DEADLINE)
        self.addCleanup(daemon.terminate)

        def wait(condition, what):
            end = time.monotonic() + DEADLINE
            while not condition():
                self.assertLess(time.monotonic(), end, f"{what}: not in time\n{log.read_text() if log.exists() else ''}")
                time.sleep(0.02)

        def digest():
            done = subprocess.run([program("banyan-fault"), "--config", self.conf, "status", "--json"], capture_output=True, text=True,
                                  timeout=DEADLINE, check=False)
            return json.loads(done.stdout)["policy_digest"] if done.returncode == 0 else None

        wait(digest, "the controller answers")
        shipped = digest()

        def replaced(make):
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink(missing_ok=True)
            make()

        refused = 0
        for what, make in (("nothing", lambda: None), ("a folder", path.mkdir), ("a FIFO", lambda: os.mkfifo(path)),
                           ("100 MB", lambda: (path.touch(), os.truncate(path, 100 << 20))),
                           ("half a file", lambda: path.write_text(SHIPPED.read_text()[:-3000].rpartition("action")[0])),
                           ("a wrong word", lambda: path.write_text('[[rule]]\nname = "a"\naction = "dran\\u001b[2J"\n'))):
            with self.subTest(what=what):
                replaced(make)
                refused += 1
                daemon.send_signal(signal.SIGHUP)
                wait(lambda: log.read_text().count("is not read again") == refused, what)
                self.assertEqual(digest(), shipped)
        self.assertNotIn("\x1b", log.read_text())
        replaced(lambda: path.write_text('[[rule]]\nname = "all"\naction = "log"\n'))
        daemon.send_signal(signal.SIGHUP)
        wait(lambda: digest() != shipped, "the new rules are in force")
        self.assertIn("was read again: 1 rules", log.read_text())

    def test_tables_fit(self):
        for words in (("explain",), ("test", FIXTURES / "symptoms.log"), ("test", FIXTURES / "hostile-kernel.log")):
            done = self.tool(*words)
            self.assertEqual(done.returncode, 0, done.stderr)
            for line in done.stdout.splitlines():
                self.assertLessEqual(len(line), 100, line)
                self.assertTrue(line.isprintable(), repr(line))

    def test_a_log_through_a_policy(self):
        log = "".join(f"[{seconds}.000000] NVRM: Xid (PCI:0000:03:00): 94, pid=1, name=a, Contained: SM\n" for seconds in (100, 4000, 8000))
        log += "[9000.000000] NVRM: Xid (PCI:0000:05:00): 79, pid=1, GPU has fallen off the bus.\n"
        policy = self.file('[[rule]]\nname = "again"\nxid = 94\ncount = 3\nwithin = "3h"\naction = "drain"\n' + SHIPPED.read_text())
        told = json.loads(self.tool("test", "--policy", policy, "--json", text=log).stdout)["incidents"]
        self.assertEqual([(i["rule"], i["action"]) for i in told],
                         [("application", "log"), ("application", "log"), ("again", "drain"), ("restart", "down")])
        table = self.tool("test", "--policy", policy, text=log)
        self.assertRegex(table.stdout, r"(?m)^f00003 +drain +again +localhost GPU at 0000:03:00 ")
        self.assertIn("4 lines of format kmsg, 4 events", table.stderr)
        # What it prints it takes, as it was: one incident, a list, one a line.
        for text in (json.dumps(told[3], indent=1), json.dumps(told, indent=1), json.dumps(told), "\n".join(map(json.dumps, told))):
            done = self.tool("test", "--json", text=text)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["incidents"][-1]["rule"], "restart")

    def test_texts_that_are_no_log(self):
        for text in ("", "\n", "{", "{}", "[", "[]", "[1]", "{\n", '{"object": 1, "reason": 2}', "[" * 100_000, "\0\xff", '{"a":' * 10_000):
            with self.subTest(text=text[:20]):
                self.assertIn(self.tool("test", text=text).returncode, (0, 3))
        done = self.tool("test", "--format", "opensm", FIXTURES / "opensm-faults.log")
        self.assertEqual((done.returncode, done.stdout), (0, "no incidents\n"))
        self.assertRegex(done.stderr, r"\d+ events are not of the kernel: no rule is asked")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""The library of training processes is one file that loads wherever a C library of 2.28 or newer is: it needs nothing else, and gives
nothing but bck_*."""

import os
import platform
import re
import subprocess
import sys
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BANYAN_BUILD", REPOSITORY / "build" / "dev"))
LIBRARY = BUILD / "lib" / "libbanyan_ckpt.so.0"
HEADER = REPOSITORY / "ckptd" / "client" / "include" / "banyan" / "ckpt.h"
OLDEST = (2, 28)
OF_THE_C_LIBRARY = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
# Others' libraries, which an image may have in another release, or not at all.
MAY_BE_MISSING = ("libtomlplusplus", "libspdlog", "libfmt", "libisal", "libstdc++", "libgcc_s", "libc++", "libutf8proc")
LOADS = f"""import ctypes
library = ctypes.CDLL({str(LIBRARY)!r})
library.bck_version.restype = ctypes.c_char_p
library.bck_init(None, 0, 1)
print(library.bck_version().decode())"""


def readelf(*words):
    return subprocess.run(["readelf", "--wide", *words, str(LIBRARY)], capture_output=True, text=True, check=True).stdout


class Library(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not (BUILD / "zig-clang++").exists():
            raise AssertionError(f"{LIBRARY} was built without Zig, for this system alone: run scripts/setup, and build again")

    def test_needs_the_c_library_alone(self):
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("--dynamic")))
        self.assertIn("libc.so.6", needed)
        self.assertEqual(needed - OF_THE_C_LIBRARY, set())

    def test_needs_no_newer_one(self):
        versions = set(re.findall(r"Name: (\w+?)_([\w.]+)", readelf("--version-info").split("Version needs section")[1]))
        self.assertIn("GLIBC", {library for library, _ in versions})
        for library, version in versions:
            with self.subTest(f"{library}_{version}"):
                self.assertEqual(library, "GLIBC")
                self.assertLessEqual(tuple(map(int, version.split("."))), OLDEST)

    def test_copies_by_the_c_library(self):
        """Whose memcpy is written for the processor that it finds."""
        asked = {word.split("@")[0] for word in re.findall(r" UND (\S+)", readelf("--dyn-syms"))}
        self.assertLessEqual({"memcpy", "memmove", "memset", "memcmp", "strlen"}, asked)

    def test_gives_what_the_header_says(self):
        words = [line.split() for line in readelf("--dyn-syms").splitlines()]
        given = {word[7].split("@")[0] for word in words if len(word) > 7 and word[6] not in ("UND", "ABS", "Ndx")}
        self.assertEqual(given, set(re.findall(r"\b(bck_\w+)\(", re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S))))

    def test_starts_on_old_processors(self):
        if platform.machine() != "x86_64":
            self.skipTest("of x86-64 alone the linker says what it needs")
        self.assertNotRegex(readelf("--notes"), r"x86 ISA needed:.*v[234]")

    @unittest.skipUnless(os.geteuid() == 0, "needs root for a mount namespace")
    def test_loads_without_others_libraries(self):
        hidden = [str(path.resolve()) for name in MAY_BE_MISSING for folder in ("/usr/lib", "/usr/lib64", "/usr/local/lib")
                  for path in Path(folder).glob(f"**/{name}.so*") if path.is_file()]
        self.assertTrue(any("libfmt" in path for path in hidden))
        hide = "".join(f"mount --bind /dev/null {path}\n" for path in sorted(set(hidden)))
        for python in (sys.executable, "/usr/bin/python3"):
            done = subprocess.run(["unshare", "--mount", "sh", "-ec", f'{hide}exec "$@"', "sh", python, "-c", LOADS],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, r"^\d+\.\d+\.\d+$")


if __name__ == "__main__":
    unittest.main(verbosity=2)

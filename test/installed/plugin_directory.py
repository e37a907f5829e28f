# SPDX-License-Identifier: BSD-3-Clause
"""banyan's files in Slurm's own plugin directory, where a package puts them.

The test runs in namespaces of its own: what is mounted over the plugin directory is there for it alone, and all that it started ends
with it. In a directory on tmpfs readdir gives the file that came last first, so either select plugin can be the first.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from own_site import BUILD, Site

OURS, THEIRS = "select_cons_tres_banyan.so", "select_cons_tres.so"
# pid 1 takes in what loses its parent; with it everything ends.
ALONE = ("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", '"$@"; exit $?',
         "bash")


def slurm_plugin_directory():
    for pattern in ("/usr/lib/*/slurm-wlm", "/usr/lib64/slurm", "/usr/lib/slurm"):
        for hit in sorted(glob.glob(pattern)):
            if os.path.exists(f"{hit}/{THEIRS}"):
                return Path(hit)
    raise SystemExit("Slurm's plugins are not installed: run scripts/setup")


SLURM_PLUGINS = slurm_plugin_directory()


class PluginDirectory:
    """Slurm's own, with copies in it."""

    def __init__(self):
        self.path = SLURM_PLUGINS
        work = Path(tempfile.mkdtemp(prefix="plugins-"))
        subprocess.run(["mount", "-t", "tmpfs", "banyan-plugins", work], check=True)
        for file in self.path.glob("*.so*"):
            shutil.copy2(file, work / file.name)
        self.slurm = {file.name: file.read_bytes() for file in work.glob("select_*.so")}
        subprocess.run(["mount", "--bind", work, self.path], check=True)
        subprocess.run(["umount", work], check=True)
        work.rmdir()

    def put(self, name, content=None, source=BUILD / "lib"):
        """As a package manager does: a new file, renamed over the old one."""
        new = self.path / f"{name}.dpkg-new"
        new.write_bytes(content if content is not None else self.slurm.get(name) or (Path(source) / name).read_bytes())
        new.chmod(0o644)
        new.rename(self.path / name)

    def remove(self, name):
        (self.path / name).unlink(missing_ok=True)

    def install(self, first=OURS, source=BUILD / "lib"):
        """All of banyan's plugins. Which of the two select plugins readdir gives first is looked at, not hoped for."""
        for name in ("job_submit_banyan.so", "spank_banyan.so"):
            self.put(name, source=source)
        second = THEIRS if first == OURS else OURS
        for order in ((second, first), (first, second)):
            for name in order:
                self.remove(name)
                self.put(name, source=source)
            listed = [entry.name for entry in os.scandir(self.path) if entry.name in order]
            if listed == [first, second]:
                return
        raise AssertionError(f"readdir does not give {first} first")

    def uninstall(self):
        for name in (OURS, "job_submit_banyan.so", "spank_banyan.so"):
            self.remove(name)


    def install_for(self, release):
        """banyan's, as they would be built for that release."""
        for name in (OURS, "job_submit_banyan.so", "spank_banyan.so"):
            self.put(name, release.of((BUILD / "lib" / name).read_bytes()))


class NextMicroRelease:
    """Slurm's next micro release, of which there is none to install: this one, with the other number wherever a file has it. Protocols,
    the saved state and the plugins' interfaces are those of the series, which a micro release keeps."""

    PROGRAMS = tuple(Path(shutil.which(name, path="/usr/sbin:/usr/bin")).resolve() for name in ("slurmctld", "slurmd"))

    def __init__(self):
        at, content = _place_of_version(SLURM_PLUGINS / THEIRS)
        number = int.from_bytes(content[at:at + 4], "little")
        self.number, self.next_number = number.to_bytes(4, "little"), (number + 1).to_bytes(4, "little")
        series, micro = f"{number >> 16}.{number >> 8 & 255:02}", number & 255
        if micro % 10 == 9:
            raise AssertionError(f"{series}.{micro + 1} is longer than {series}.{micro}: other bytes would move")
        self.before, self.name = f"{series}.{micro}", f"{series}.{micro + 1}"
        self.mounted = []

    def of(self, content):
        return content.replace(self.number, self.next_number).replace(self.before.encode(), self.name.encode())

    def unpack(self, plugins):
        """Every file of Slurm that says its release, as a package manager does it; banyan's are not Slurm's."""
        changed = 0
        for file in sorted(plugins.path.glob("*.so*")):
            content = file.read_bytes()
            if "banyan" not in file.name and self.of(content) != content:
                plugins.put(file.name, self.of(content))
                changed += 1
        for program in self.PROGRAMS:
            new = Path(tempfile.mkdtemp(prefix="release-")) / program.name
            new.write_bytes(self.of(program.read_bytes()))
            new.chmod(0o755)
            subprocess.run(["mount", "--bind", new, program], check=True)
            self.mounted.append((program, new.parent))
        return changed

    def go(self):
        for program, folder in self.mounted:
            subprocess.run(["umount", "--lazy", program], check=True)
            shutil.rmtree(folder)


def _place_of_version(file):
    """(offset, content) of a plugin's plugin_version in its file."""
    content = bytearray(Path(file).read_bytes())
    symbol = re.search(r"^\s*\d+: ([0-9a-f]+)\s.* (\d+) plugin_version$", _readelf("--dyn-syms", file), re.M)
    section = re.search(rf"^\s*\[\s*{symbol.group(2)}\]\s+\S+\s+\S+\s+([0-9a-f]+) ([0-9a-f]+)", _readelf("-S", file), re.M)
    return int(symbol.group(1), 16) - int(section.group(1), 16) + int(section.group(2), 16), content


def of_another_micro_release(file):
    """The bytes of a plugin that says it was built for the next micro release."""
    at, content = _place_of_version(file)
    version = int.from_bytes(content[at:at + 4], "little")
    content[at:at + 4] = (version + 1).to_bytes(4, "little")
    return bytes(content)


def _readelf(what, file):
    return subprocess.run(["readelf", "-W", what, file], capture_output=True, text=True, check=True).stdout


class InstalledCase(unittest.TestCase):
    """Each test has a plugin directory and a site of its own."""

    def setUp(self):
        self.plugins = PluginDirectory()
        # One that is still in use goes with its last user.
        self.addCleanup(subprocess.run, ["umount", "--lazy", SLURM_PLUGINS], check=True)

    def site(self, **options):
        site = Site(**options)
        self.addCleanup(site.down)
        return site


def main():
    if os.environ.get("BANYAN_ALONE") != "1":
        os.environ["BANYAN_ALONE"] = "1"
        os.execvp(ALONE[0], [*ALONE, sys.executable, *sys.argv])
    unittest.main(verbosity=2)

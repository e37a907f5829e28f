# SPDX-License-Identifier: BSD-3-Clause
"""The Debian that all hosts of a site begin with, of the release that this host has, made by debootstrap: with the site's Slurm, and
nothing of banyan."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
DEPS = Path(os.environ.get("BANYAN_DEPS", REPOSITORY / "build" / "deps"))
RELEASE = platform.freedesktop_os_release()
BASE = DEPS / f"debian{RELEASE['VERSION_ID']}"
# The site's own; banyan's packages bring what they depend on.
PACKAGES = ("systemd", "systemd-sysv", "dbus", "iproute2", "munge", "slurmctld", "slurmd", "slurm-client", "slurmdbd", "slurm-wlm-mysql-plugin",
            "mariadb-server", "logrotate", "cron", "infiniband-diags", "procps")


class Failure(AssertionError):
    """A command of an admin or user that should have worked."""


def run(*words, **options):
    options.setdefault("check", True)
    return subprocess.run([str(word) for word in words], text=True, capture_output=True, **options)


def mirror():
    """Where this host takes Debian from: it has all suites."""
    found = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian", "Label: Debian").stdout.split()
    if not found:
        raise Failure("apt knows no mirror of Debian on this host")
    return found[0]


def build_base(packages):
    """A Debian with the site's Slurm, and in its cache what `packages` (banyan's) depend on: later the hosts have no network.
    Made once, and anew when the lists change."""
    dependencies = sorted({name.strip() for package in packages
                           for name in run("dpkg-deb", "-f", package, "Depends").stdout.replace("|", ",").split(",")})
    stamp = "\n".join([*PACKAGES, *dependencies])
    if (BASE / ".stamp").exists() and (BASE / ".stamp").read_text() == stamp:
        return
    shutil.rmtree(BASE, ignore_errors=True)
    BASE.parent.mkdir(parents=True, exist_ok=True)
    try:
        run("debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", RELEASE["VERSION_CODENAME"], BASE, mirror())
        names = [name.split()[0] for name in dependencies if not name.startswith(("banyan-", "libbanyan-"))]
        run("chroot", BASE, "env", "LC_ALL=C", "apt-get", "install", "-y", "--no-install-recommends", "--download-only", *names)
    except subprocess.CalledProcessError as error:
        raise Failure(f"no Debian could be made: {error.stderr}{error.stdout}"[-4000:]) from error
    (BASE / "etc" / "munge" / "munge.key").write_bytes(os.urandom(128))
    run("chroot", BASE, "chown", "munge:", "/etc/munge/munge.key")
    run("chroot", BASE, "useradd", "--create-home", "alice")
    # A container has no terminal to log in at. Of all hosts one has a data base, and some have a slurmd: that of Debian 13 waits for a
    # slurm.conf wherever it is installed.
    run("chroot", BASE, "systemctl", "mask", "console-getty.service")
    run("chroot", BASE, "systemctl", "disable", "mariadb.service", "slurmd.service")
    (BASE / ".stamp").write_text(stamp)

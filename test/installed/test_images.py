# SPDX-License-Identifier: BSD-3-Clause
"""Ranks in other systems' images, with nothing of banyan in them but the folder of the job's socket: Debian 11 and 13 with Pythons of
their own, entered by chroot, by podman and by srun --container. Each goes on from what the one before it saved."""

import json
import os
import shlex
import shutil
import subprocess
import unittest
from pathlib import Path

from debian_base import DEPS, Failure, mirror, run
from harness import ClusterCase, main

RANK = Path(__file__).with_name("image_rank.py").read_text()
PYTHONS = {"bullseye": "3.9", "trixie": "3.13"}
# Podman's own limits are above those that a process may set which is in a container already. And crun takes no cgroups of both versions at once, as this host may have them.
ONE_CGROUP = "umount /sys/fs/cgroup/unified 2>/dev/null || :; "


def image(suite):
    """A Debian of that release, made once."""
    folder = DEPS / "images" / suite
    if not (folder / ".made").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            run("debootstrap", "--variant=minbase", "--include=python3-minimal,libpython3-stdlib", suite, folder, mirror())
        except subprocess.CalledProcessError as error:
            raise Failure(f"no Debian {suite} could be made: {error.stderr}{error.stdout}"[-4000:]) from error
        (folder / ".made").touch()
    return folder


@unittest.skipUnless(os.geteuid() == 0, "needs root")
class Images(ClusterCase):
    nodes = 2
    options = ("--without", "fault")

    @classmethod
    def setUpClass(cls):
        for tool in ("podman", "crun", "debootstrap"):
            if not shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin"):
                raise unittest.SkipTest(f"{tool} is not installed: run scripts/setup")
        cls.images = {suite: image(suite) for suite in PYTHONS}
        super().setUpClass()

    def job(self, *lines):
        job = self.cluster.sbatch("-N1", "-n1", "--train-parallel=dp=1", "--train-ckpt=every=1", script="\n".join(["set -e", *lines, ""]))
        self.cluster.wait_for_job(job, timeout=240)
        return self.cluster.output(job)

    def rank(self, begins):
        return f"python3 -c {shlex.quote(RANK)} {begins}"

    def in_chroot(self, suite, begins):
        """At another path than on the host."""
        inside = (f"mount --bind {self.cluster.dir}/run {self.images[suite]}/mnt; "
                  f'BANYAN_CKPT_SOCKET=/mnt/$(basename "$BANYAN_CKPT_SOCKET") exec chroot {self.images[suite]} {self.rank(begins)}')
        return f"srun unshare --mount sh -ec {shlex.quote(inside)}"

    def in_podman(self, suite, begins, options="rw"):
        folder = f"{self.cluster.dir}/run"
        words = ["exec podman --cgroup-manager=cgroupfs run --rm --cgroups=disabled --network=none", "--ulimit=nofile=1024:1024 --ulimit=nproc=1000:1000",
                 "--env 'BANYAN_*' --env RANK --env WORLD_SIZE", f"-v {folder}:{folder}:{options}", f"--rootfs {self.images[suite]}:O", self.rank(begins)]
        return f"srun unshare --mount sh -ec {shlex.quote(ONE_CGROUP + ' '.join(words))}"

    def bundle(self, suite):
        """An OCI bundle as users make one: what `crun spec` says, and the folder of the socket."""
        folder = self.cluster.dir / "tmp" / f"bundle-{suite}"
        folder.mkdir()
        (folder / "rootfs").symlink_to(self.images[suite])
        run("crun", "spec", cwd=folder)
        spec = json.loads((folder / "config.json").read_text())
        spec["process"].update(terminal=False, rlimits=[])
        spec["root"]["readonly"] = False
        spec["linux"]["namespaces"] = [{"type": name} for name in ("pid", "ipc", "uts", "mount")]
        socket = f"{self.cluster.dir}/run"
        spec["mounts"] = [mount for mount in spec["mounts"] if "cgroup" not in mount["destination"]]
        spec["mounts"].append(dict(destination=socket, source=socket, type="none", options=["bind", "nosuid", "nodev"]))
        (folder / "config.json").write_text(json.dumps(spec))
        return folder

    def configure_oci(self):
        crun = f"crun --root={self.cluster.dir}/tmp/crun"
        name = "%n.%u.%j.%s.%t"
        (self.cluster.dir / "etc" / "oci.conf").write_text(
            f'RunTimeQuery="{crun} state {name}"\nRunTimeKill="{crun} kill -a {name}"\nRunTimeDelete="{crun} delete --force {name}"\n'
            f'RunTimeRun="{ONE_CGROUP}{crun} --cgroup-manager=disabled run --bundle %b {name}"\n')

    def test_each_goes_on_from_the_one_before(self):
        self.configure_oci()
        said = self.job(self.in_chroot("bullseye", -1), self.in_chroot("trixie", 0), self.in_podman("bullseye", 1), self.in_podman("trixie", 2, "noexec"),
                        f"srun --container {self.bundle('bullseye')} {self.rank(3)}", f"srun --container {self.bundle('trixie')} {self.rank(4)}",
                        f"srun {self.rank(5)}")
        for step, (suite, how) in enumerate((("bullseye", "file"), ("trixie", "file"), ("bullseye", "file"), ("trixie", "memory"),
                                             ("bullseye", "file"), ("trixie", "file"))):
            self.assertRegex(said, rf"rank 0 saved step {step}, Python {PYTHONS[suite]}, library \S+ from (its )?{how}")
        self.assertIn("rank 0 saved step 6, ", said)

    def test_a_container_hears_what_a_task_hears(self):
        self.configure_oci()
        bundle = self.bundle("trixie").rename(self.cluster.dir / "tmp" / "bundle-hears")
        own = self.cluster.dir / "tmp" / "config.json"
        own.write_text('{"process": {"env": []}}')
        said = self.job(f"srun --container {bundle} env", "echo; echo plain", "srun env").split("plain\n")
        self.assertEqual(own.read_text(), '{"process": {"env": []}}', "a program's own file was taken for a container's")
        in_container, plain = ({line for line in text.splitlines() if line.startswith(("BANYAN_", "RANK=", "WORLD_SIZE=", "LOCAL_"))}
                               for text in said)
        self.assertEqual({line for line in plain if not line.startswith("BANYAN_STEP=")},
                         {line for line in in_container if not line.startswith("BANYAN_STEP=")})
        self.assertIn("RANK=0", in_container)


if __name__ == "__main__":
    main()

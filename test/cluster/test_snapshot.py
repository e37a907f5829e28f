# SPDX-License-Identifier: BSD-3-Clause
"""A fabric snapshot that is missing, damaged, stale or of another cluster: slurmctld starts all the same, jobs run where plain
cons_tres has them with their ranks in Slurm's order, and its log says so once."""

import os
import pwd
import shutil
import subprocess
import time

from harness import ClusterCase, main, program


class Snapshot(ClusterCase):
    nodes = 4
    # Nothing here needs the fault daemon.
    options = ("--without", "fault")

    def restart_slurmctld(self):
        """Ends slurmctld and starts another one in its place; returns where its log begins."""
        from banyan_cluster import layout, parts, process
        where = layout.load(self.cluster.dir)
        process.end_parts(where, ("slurmctld",), grace=10)
        log = self.cluster.dir / "log" / "slurmctld.log"
        begin = log.stat().st_size
        parts.start_slurmctld(where)
        self.cluster.wait_for_nodes_idle()
        return begin

    def log_since(self, begin):
        with open(self.cluster.dir / "log" / "slurmctld.log", "rb") as file:
            file.seek(begin)
            return file.read().decode(errors="replace")

    def check_plain(self, *words):
        begin = self.restart_slurmctld()
        for _ in range(3):
            out = self.cluster.out("srun", "-N4", "--train-parallel=pp=2,dp=2", "bash", "-c", "echo $SLURM_PROCID $SLURMD_NODENAME")
            self.assertEqual(sorted(out.splitlines()), ["0 n01", "1 n02", "2 n03", "3 n04"])
        lines = [line for line in self.log_since(begin).splitlines() if "error: banyan:" in line and "snapshot" in line]
        self.assertEqual(len(lines), 1, lines)
        for word in words:
            self.assertIn(word, lines[0])

    def wait_taken(self, begin):
        def taken():
            self.cluster.out("srun", "-N4", "--train-parallel=pp=2,dp=2", "true")
            return "4 hosts in 1 leaf groups" in self.log_since(begin)
        self.cluster.wait_for(taken, "the snapshot is taken")

    def setUp(self):
        super().setUp()
        self.file = self.cluster.dir / "fabric.snapshot"
        self.good = self.file.read_bytes()
        self.addCleanup(self.file.write_bytes, self.good)

    def test_missing(self):
        self.file.unlink()
        self.check_plain("no fabric snapshot", "cons_tres")

    def test_closed_to_slurmctld(self):
        """The user of slurmctld is told, and a change of mode is enough."""
        self.file.chmod(0o600)
        self.addCleanup(self.file.chmod, 0o644)
        self.check_plain("cannot open", "Permission denied", f"uid {pwd.getpwnam('slurm').pw_uid} must be able to read it")
        begin = (self.cluster.dir / "log" / "slurmctld.log").stat().st_size
        self.file.chmod(0o644)
        self.wait_taken(begin)

    def test_in_a_closed_folder(self):
        """What cannot be looked for is not said to be missing."""
        closed = self.cluster.dir / "tmp" / "closed"
        closed.mkdir(mode=0o700)
        self.addCleanup(shutil.rmtree, closed)
        self.file.rename(closed / "snapshot")
        self.file.symlink_to(closed / "snapshot")
        self.addCleanup(self.file.unlink)
        self.check_plain("cannot look at", "Permission denied", "o+x the folders above it")
        begin = (self.cluster.dir / "log" / "slurmctld.log").stat().st_size
        closed.chmod(0o755)
        self.wait_taken(begin)

    def test_damaged(self):
        self.file.write_bytes(self.good[:len(self.good) // 2])
        self.check_plain("fabric.snapshot")

    def test_a_flipped_bit(self):
        self.file.write_bytes(self.good[:100] + bytes([self.good[100] ^ 1]) + self.good[101:])
        self.check_plain("checksum")

    def test_empty(self):
        self.file.write_bytes(b"")
        self.check_plain("fabric.snapshot")

    def test_stale(self):
        old = time.time() - 200 * 3600
        os.utime(self.file, (old, old))
        self.check_plain("older than max_age")

    def test_another_file_at_run_time_is_taken(self):
        """A snapshot that is put in place later is used without a restart."""
        self.file.unlink()
        begin = self.restart_slurmctld()
        self.cluster.out("srun", "-N4", "--train-parallel=pp=2,dp=2", "true")
        self.file.write_bytes(self.good)
        self.wait_taken(begin)

    def test_a_fabric_that_lacks_a_node(self):
        """The dump knows n01 to n03 and hosts that slurm.conf does not: jobs on what both know are placed, others run plainly."""
        tool = program("banyan-topo")
        net = self.cluster.dir / "tmp" / "other"
        subprocess.run([tool, "gen", "--nodes", "3", "-o", net], check=True, capture_output=True)
        net.write_text(net.read_text().replace('"n03 ', '"x03 '))
        subprocess.run([tool, "snapshot", net, "-o", self.file], check=True, capture_output=True)
        self.restart_slurmctld()
        whole = self.cluster.out("srun", "-N4", "--train-parallel=pp=2,dp=2", "bash", "-c", "echo $SLURMD_NODENAME")
        self.assertEqual(sorted(whole.split()), ["n01", "n02", "n03", "n04"])
        two = self.cluster.out("srun", "-N2", "--train-parallel=dp=2", "bash", "-c", "echo $SLURMD_NODENAME")
        self.assertEqual(sorted(two.split()), ["n01", "n02"])


if __name__ == "__main__":
    main()

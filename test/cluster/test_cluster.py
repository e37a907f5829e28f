# SPDX-License-Identifier: BSD-3-Clause
"""scripts/cluster itself: it comes up, it goes down, it leaves nothing, and two of them do not meet."""

import concurrent.futures
import os
import signal
import socket
import subprocess
import unittest
from pathlib import Path

from harness import BUILD, REPOSITORY, Cluster, main, mounts_of, processes_of, sockets_of

from banyan_cluster import layout as layouts


def outside_files():
    """Names in the folders where the parts would leave files if they were not told otherwise."""
    names = set()
    for folder in ("/run", "/run/munge", "/var/run", "/var/log", "/var/log/munge", "/var/cache/opensm", "/var/spool", "/var/lib/munge",
                   "/dev/shm", "/etc/slurm", "/etc/banyan", "/var/lib/banyan", "/run/banyan"):
        if os.path.isdir(folder):
            names |= {f"{folder}/{name}" for name in os.listdir(folder)}
    return names


def namespaces_of(directory):
    """Processes in whose mount namespace something of the directory is mounted, whatever they are."""
    found = []
    for file in Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            if f"{directory}/" in file.read_text():
                found.append(file.parent.name)
        except OSError:
            continue  # it has ended
    return found


class Life(unittest.TestCase):
    def setUp(self):
        self.before = outside_files()
        self.cluster = Cluster()
        self.addCleanup(self.cluster.remove)

    def assert_nothing_left(self, cluster=None):
        cluster = cluster or self.cluster
        layout = layouts.load(cluster.dir)
        self.assertEqual(processes_of(cluster.dir), {})
        self.assertEqual(sockets_of(cluster.dir, layout.sockname), [])
        self.assertEqual(mounts_of(cluster.dir), [])
        self.assertEqual(namespaces_of(cluster.dir), [])
        self.assertTrue(all(layouts.port_is_free(port) for port in range(layout.port, layout.port + 8 + layout.nodes)))
        left = [str(path) for path in cluster.dir.rglob("*") if path.is_socket() or path.is_fifo()]
        self.assertEqual(left, [])

    def test_up_and_down_twice(self):
        for _ in range(2):
            self.cluster.up()
            self.assertEqual(self.cluster.script("status").returncode, 0)
            hosts = self.cluster.out("srun", "-N16", "--gres=gpu:8", "bash", "-c", "echo $SLURMD_NODENAME").split()
            self.assertEqual(sorted(hosts), [f"n{i:02d}" for i in range(1, 17)])
            self.cluster.down()
            self.assert_nothing_left()
        self.assertEqual(outside_files() - self.before, set())
        self.assertEqual(self.cluster.script("down").stdout, "")

    def test_a_backup_controller(self):
        name = socket.gethostname()
        self.cluster.nodes, self.cluster.options = 2, ["--backup", "--without", "fault"]
        self.cluster.up()
        self.assertRegex(self.cluster.script("status").stdout, r"slurmctld +\d+  is up\n +slurmctld-backup +\d+  is up")
        self.assertEqual((socket.gethostname(), mounts_of(self.cluster.dir)), (name, []))
        os.kill(self.cluster.parts()["slurmctld"], signal.SIGKILL)
        self.cluster.wait_for(lambda: self.cluster.script("status", check=False).returncode == 1, "status says so")
        self.cluster.down()
        self.assert_nothing_left()

    def test_where_slurmctld_could_not_get(self):
        closed = self.cluster.dir / "closed"
        closed.mkdir(mode=0o700)
        refused = Cluster(closed / "cluster").script("up", check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertRegex(refused.stderr, f"user slurm.*{closed} is closed.*--dir")
        self.assertEqual(list(closed.iterdir()), [])
        self.assertEqual(layouts.default_directory(repository=REPOSITORY), REPOSITORY / "build" / "cluster")
        self.assertEqual(layouts.default_directory(repository=closed).parent, Path("/var/tmp"))
        closed.rmdir()

    def test_a_directory_of_somebody_else(self):
        theirs = self.cluster.dir / "theirs"
        theirs.mkdir()
        os.chown(theirs, 65534, 65534)
        refused = Cluster(theirs).script("up", check=False)
        self.assertEqual((refused.returncode, list(theirs.iterdir())), (1, []))
        self.assertIn("belongs to another user", refused.stderr)
        theirs.rmdir()

    def test_second_up_is_refused(self):
        self.cluster.nodes = 2
        self.cluster.up()
        again = self.cluster.script("up", "--nodes", 2, check=False)
        self.assertEqual(again.returncode, 1)
        self.assertIn("run already", again.stderr)
        self.assertEqual(self.cluster.script("status").returncode, 0)

    def test_two_ups_in_one_directory(self):
        self.cluster.nodes = 2
        with concurrent.futures.ThreadPoolExecutor() as pool:
            both = [pool.submit(self.cluster.script, "up", "--nodes", 2, "--build", BUILD, check=False) for _ in range(2)]
        done = sorted((one.result().returncode, one.result().stderr) for one in both)
        self.assertEqual([code for code, _ in done], [0, 1], done)
        self.assertRegex(done[1][1], "another `up` or `down`|run already")
        self.assertEqual(self.cluster.script("status").returncode, 0)

    def test_down_after_kill_of_each_part(self):
        """Every part is killed once; each time status says so and down leaves nothing. A step runs all the while, so that tasks
        whose slurmstepd is gone are among what has to be found."""
        self.cluster.nodes = 3
        victims = ["namespace", "munged", "slurmctld", "slurmd-n02", "ibsim", "opensm", "faultd-controller", "faultd-n03", "slurmstepd"]
        for victim in victims:
            with self.subTest(victim):
                self.cluster.up()
                step = self.cluster.start("srun", "-N3", "sleep", "1000")
                self.addCleanup(lambda step=step: (step.kill(), step.communicate()))
                self.cluster.wait_for(lambda: self.tasks() == 3, "three tasks run")
                if victim == "slurmstepd":
                    pids = self.parents_of_tasks()
                else:
                    pids = [self.cluster.parts()[victim]]
                for pid in pids:
                    os.kill(pid, signal.SIGKILL)
                if victim != "slurmstepd":
                    self.cluster.wait_for(lambda: self.cluster.script("status", check=False).returncode == 1, "status says so")
                    self.assertRegex(self.cluster.script("status", check=False).stdout, f"{victim} .*(not running|no answer|not heard)")
                self.cluster.down()
                self.assert_nothing_left()
                self.assertEqual(self.tasks(), 0)
                step.wait()

    def test_down_after_kill_of_everything_but_tasks(self):
        self.cluster.nodes = 2
        self.cluster.up()
        job = self.cluster.sbatch("-N2", "--export=NONE", script="export PATH=/usr/bin:/bin\n"
                                  "srun --export=ALL /usr/bin/sleep 1000 &\nsetsid /usr/bin/sleep 1000 &\nwait\n")
        self.cluster.wait_for(lambda: self.tasks() == 3, "three tasks run")
        self.assertTrue(job)
        for pid in [*self.cluster.parts().values(), *self.parents_of_tasks()]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.cluster.down()
        self.assert_nothing_left()
        self.assertEqual(self.tasks(), 0)

    def test_down_after_kill_of_up(self):
        """`up` itself dies half-way."""
        command = ["scripts/cluster", "up", "--dir", str(self.cluster.dir), "--nodes", "4", "--build", str(BUILD)]
        starting = subprocess.Popen(command, cwd=Path(__file__).resolve().parents[2], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.cluster.wait_for(lambda: (self.cluster.dir / "run" / "parts" / "ibsim.json").exists(), "ibsim is started", pause=0.001)
        starting.kill()
        starting.communicate()
        self.cluster.down()
        self.assert_nothing_left()

    def test_two_side_by_side(self):
        self.cluster.nodes = 4
        other = Cluster(nodes=2)
        self.addCleanup(other.remove)
        with concurrent.futures.ThreadPoolExecutor() as pool:  # at the same moment: they must not choose the same ports
            for done in [pool.submit(self.cluster.up), pool.submit(other.up)]:
                done.result()
        self.assertEqual(len(self.cluster.out("srun", "-N4", "hostname").split()), 4)
        self.assertEqual(len(other.out("srun", "-N2", "hostname").split()), 2)
        self.assertIn('"n04 mlx5_0"', self.cluster.out("ibnetdiscover"))
        self.assertNotIn('"n04 mlx5_0"', other.out("ibnetdiscover"))
        other.down()
        self.assert_nothing_left(other)
        self.assertEqual(self.cluster.script("status").returncode, 0)

    def test_a_link_goes_down_and_up(self):
        self.cluster.nodes = 2
        self.cluster.up()
        self.cluster.link("down", "n02 mlx5_1", 1)
        self.cluster.wait_for(lambda: '"n02 mlx5_1"' not in self.cluster.out("ibnetdiscover"), "the HCA is gone")
        self.cluster.link("up", "n02 mlx5_1", 1)
        self.cluster.wait_for(lambda: '"n02 mlx5_1"' in self.cluster.out("ibnetdiscover"), "the HCA is back")
        wrong = self.cluster.script("link", "down", "n99 mlx5_1", "1", check=False)
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("no node 'n99 mlx5_1'", wrong.stderr)

    def test_strange_directories_are_refused(self):
        for name, reason in (("x" * 70, "bytes long"), ("a b", "cannot hold")):
            refused = Cluster(self.cluster.dir / name).script("up", check=False)
            self.assertEqual(refused.returncode, 1)
            self.assertIn(reason, refused.stderr)
        (self.cluster.dir / "thesis.txt").write_text("mine")
        refused = self.cluster.script("up", check=False)
        self.assertIn("holds other files", refused.stderr)
        self.cluster.script("down", "--purge")
        self.assertEqual([path.name for path in self.cluster.dir.iterdir()], ["thesis.txt"])
        self.assertEqual((self.cluster.dir / "thesis.txt").read_text(), "mine")
        (self.cluster.dir / "thesis.txt").unlink()

    # -- the tasks of the tests: `sleep 1000` in this cluster's name -------------------------------------------------------

    def task_pids(self):
        name = layouts.load(self.cluster.dir).cluster_name.encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if (folder / "cmdline").read_bytes().split(b"\0")[-3:-1] == [b"sleep", b"1000"] or \
                        (folder / "cmdline").read_bytes().split(b"\0")[:2] == [b"/usr/bin/sleep", b"1000"]:
                    if b"SLURM_CLUSTER_NAME=" + name in (folder / "environ").read_bytes() and b"SLURM_PROCID" in (folder / "environ").read_bytes():
                        found.append(int(folder.name))
            except OSError:
                continue
        return found

    def tasks(self):
        return len(self.task_pids())

    def parents_of_tasks(self):
        parents = set()
        for pid in self.task_pids():
            parent = int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
            if "slurmstepd" in Path(f"/proc/{parent}/comm").read_text():
                parents.add(parent)
        return parents


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""banyan-sweep as a program, on nodes that are made of files: each thing that is spoilt has its verdict, and nothing holds it up."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BANYAN_BUILD", REPOSITORY / "build" / "dev"))
SWEEP = BUILD / "bin" / "banyan-sweep"
LIBRARIES = Path(os.environ.get("BANYAN_HELPERS", BUILD)) / "test" / "hostile" / "sweep"
FIT, UNFIT, WRONG_USE, UNKNOWN, NOT_TOLD = range(5)
NOBODY = 65534


class Sweep(unittest.TestCase):
    def setUp(self):
        self.dir = Path(tempfile.mkdtemp(prefix="banyan-sweep-"))
        self.dir.chmod(0o755)
        self.addCleanup(shutil.rmtree, self.dir)
        self.root = self.dir / "root"
        for device in range(8):
            self.add_port(f"mlx5_{device}")
        (self.root / "run").mkdir()
        self.write("proc/meminfo", "MemTotal: 2000000 kB\nMemAvailable: 1000000 kB\n")
        self.write("proc/self/mountinfo", Path("/proc/self/mountinfo").read_text())

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def add_port(self, device, state="4: ACTIVE", layer="InfiniBand"):
        for name, text in (("state", state), ("phys_state", "5: LinkUp"), ("rate", "400 Gb/sec (4X NDR)"), ("link_layer", layer)):
            self.write(f"sys/class/infiniband/{device}/ports/1/{name}", text + "\n")

    def run_it(self, config, *words, env=None, user=None):
        """The finished process; `config` is text or a file. The time-out here is far beyond the limits that the tests give."""
        path = self.dir / "banyan.conf"
        if isinstance(config, Path):
            path = config
        else:
            path.write_text("[sweep]\n" + config)
        environment = {"PATH": os.environ["PATH"], "SLURM_CONF": str(self.dir / "no-slurm.conf"), **(env or {})}
        return subprocess.run([SWEEP, "--config", path, "--root", self.root, "--node", "n01", *map(str, words)], env=environment, user=user,
                              capture_output=True, text=True, timeout=100, check=False)

    def verdicts(self, config, *words, code, **options):
        """{check: (verdict, sentences)}; the exit code has to be this."""
        done = self.run_it(config, "--json", *words, **options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return {one["check"]: (one["verdict"], one["what"]) for one in json.loads(done.stdout)["checks"]}

    def test_exit_codes(self):
        self.verdicts("links = 8", code=FIT)
        self.verdicts("links = 9", code=UNFIT)
        self.verdicts("links = 8\ntopology = '/none'", code=UNKNOWN)
        self.verdicts("links = 9\ntopology = '/none'", code=UNFIT)
        for config, words in (("", []), ("links = 8", ["--only", "clock"]), ("links = 8", ["--only", "x"]), ("links = 8", ["--x"]),
                              ("link = 8", []), ("links = 8", ["--time-limit", "0"]), (Path("/none"), []),
                              ("links = 8", ["--write-topology", "x", "--drain"])):
            done = self.run_it(config, *words)
            self.assertEqual((done.returncode, done.stdout), (WRONG_USE, ""), (config, words, done.stderr))
            self.assertTrue(done.stderr)

    def test_a_file_of_sysfs_that_never_ends(self):
        for spoil in (os.mkfifo, lambda path: os.symlink("/dev/zero", path), lambda path: os.symlink(path, path)):
            state = self.root / "sys/class/infiniband/mlx5_3/ports/1/state"
            state.unlink(missing_ok=True)
            spoil(state)
            found = self.verdicts("links = 8", code=UNKNOWN)
            self.assertIn("mlx5_3/1", found["links"][1][-1])

    def test_a_mount_that_hangs(self):
        config = 'links = 8\nmounts = ["/proc", "/proc/sys"]'
        env = {"LD_PRELOAD": str(LIBRARIES / "hung_mount.so"), "HUNG_MOUNT": "/proc/sys"}
        found = self.verdicts(config, "--time-limit", 5, code=UNKNOWN, env=env)
        self.assertEqual(found["links"][0], "fit")
        self.assertEqual(found["mounts"][0], "unknown")
        self.assertIn("no answer within", found["mounts"][1][0])
        self.assertIn("/proc is mounted (proc)", found["mounts"][1])
        running = subprocess.run(["pgrep", "-f", str(self.dir)], capture_output=True, text=True, check=False).stdout
        self.assertEqual(running, "", "what hung is gone")

    def test_a_configuration_that_hangs(self):
        fifo = self.dir / "fifo.conf"
        os.mkfifo(fifo)
        self.assertEqual(self.run_it(fifo, "--time-limit", 1).returncode, -signal.SIGALRM)

    def test_without_standard_descriptors(self):
        path = self.dir / "banyan.conf"
        path.write_text("[sweep]\nlinks = 9\n")
        command = f"exec '{SWEEP}' --config '{path}' --root '{self.root}' --textfile '{self.dir}/x.prom' 0<&- 1<&- 2<&-"
        self.assertEqual(subprocess.run(["sh", "-c", command], timeout=100, check=False).returncode, UNFIT)
        self.assertIn('verdict="unfit"} 1', (self.dir / "x.prom").read_text())

    def test_names_that_command_a_terminal(self):
        self.add_port("mlx5_0\n\x1b[2J" + "x" * 200, state="1: DOWN\x1b[31m\n\nfit")
        config = 'links = 9\nmounts = ["/x\\u001b[2J\\n\\u202e' + "y" * 300 + '"]'
        done = self.run_it(config)
        self.assertEqual(done.returncode, UNFIT)
        for line in done.stdout.splitlines():
            self.assertLessEqual(len(line), 100)
            self.assertTrue(line.isprintable(), line)
        self.assertEqual(self.verdicts(config, code=UNFIT)["links"][0], "unfit")

    def test_gpus_by_the_library(self):
        self.assertTrue((LIBRARIES / "libnvidia-ml.so.1").exists())
        for gpus, config, code, verdict, words in (
                ("wwww", "gpus = 4", FIT, "fit", "4 GPUs"), ("www", "gpus = 4", UNFIT, "unfit", "3 GPUs"), ("wlww", "gpus = 4", UNFIT, "unfit", "lost"),
                ("wwwe", "gpus = 4", UNFIT, "unfit", "00000000:04:00.0 has 3 memory errors"), ("wwwr", "gpus = 4", UNFIT, "unfit", "row"),
                ("wwwn", "gpus = 4", UNKNOWN, "unknown", "Not Supported"), ("nnnn", "gpus = 4\ngpu_ecc = false", FIT, "fit", "4 GPUs"),
                ("none", "gpus = 4", UNFIT, "unfit", "Driver Not Loaded"), ("", "gpus = 1", UNFIT, "unfit", "0 GPUs")):
            found = self.verdicts(config, code=code, env={"LD_LIBRARY_PATH": str(LIBRARIES), "FAKE_NVML": gpus})
            self.assertEqual(found["gpus"][0], verdict, gpus)
            self.assertIn(words, " ".join(found["gpus"][1]), gpus)

    @unittest.skipIf(Path("/proc/driver/nvidia").exists(), "this host has the driver")
    def test_gpus_without_the_library(self):
        found = self.verdicts("gpus = 4", code=UNKNOWN)
        self.assertNotIn("0 GPUs", " ".join(found["gpus"][1]))

    def test_a_golden_node(self):
        """The machine is a file, too: the memory of a virtual one may change meanwhile."""
        baseline, config = self.dir / "baseline.xml", f"topology = '{self.dir}/baseline.xml'"
        machine = {"HWLOC_XMLFILE": str(REPOSITORY / "test" / "fixtures" / "export" / "hwloc-2p8g8h.xml")}
        self.assertEqual(self.run_it("links = 8", "--write-topology", baseline, env=machine).returncode, 0)
        self.verdicts(config, code=FIT, env=machine)
        whole = baseline.read_text()
        for kind, old, new, words in (("a CPU", 'type="PU" os_index="0"', 'type="PU" os_index="777"', "CPU 777 is missing"),
                                      ("an HCA", 'name="mlx5_3"', 'name="mlx5_x"', "HCA mlx5_x is missing"),
                                      ("a GPU", "[10de:", "[10dd:", "expected 10dd:")):
            self.assertIn(old, whole, kind)
            baseline.write_text(whole.replace(old, new, 1))
            self.assertIn(words, " ".join(self.verdicts(config, code=UNFIT, env=machine)["topology"][1]), kind)
        baseline.write_text(whole[:2000])
        self.verdicts(config, code=UNKNOWN)
        baseline.unlink()
        os.mkfifo(baseline)
        self.verdicts(config, code=UNKNOWN)
        self.assertEqual(self.run_it("links = 8", "--write-topology", baseline).returncode, UNKNOWN, "a FIFO is not replaced")

    def test_without_slurm_a_busy_node_is_not_an_idle_one(self):
        config = 'links = 8\nmemory = "1M"'
        self.assertEqual(self.verdicts(config, code=UNKNOWN)["memory"][0], "unknown")
        self.verdicts(config, "--even-if-busy", code=FIT)
        self.verdicts('memory = "1G"', "--even-if-busy", code=UNFIT)

    def test_slurm_that_cannot_be_told(self):
        for config in ("links = 8", "links = 9"):
            done = self.run_it(config, "--drain")
            self.assertEqual(done.returncode, NOT_TOLD)
            self.assertIn("FAILED", done.stdout)

    def test_a_file_for_node_exporter(self):
        file = self.dir / "sweep.prom"
        self.verdicts("links = 9", "--textfile", file, code=UNFIT)
        text = file.read_text()
        self.assertIn('banyan_sweep_check{check="links",verdict="unfit"} 1\n', text)
        self.assertIn("banyan_sweep_links_active 8\n", text)
        self.assertTrue(text.endswith("\n"))
        self.assertEqual(file.stat().st_mode & 0o777, 0o644)
        other = self.dir / "other"
        other.write_text("kept")
        file.unlink()
        file.symlink_to(other)
        self.assertEqual(self.run_it("links = 8", "--textfile", file).returncode, NOT_TOLD)
        self.assertEqual(other.read_text(), "kept")
        done = self.run_it("links = 8", "--textfile", self.dir / "none" / "x")
        self.assertEqual(done.returncode, NOT_TOLD)
        self.assertIn("none", done.stderr)
        self.assertIn("n01 is fit", done.stdout)

    @unittest.skipIf(os.geteuid() != 0, "becomes another user")
    def test_another_user(self):
        closed = self.dir / "closed"
        closed.mkdir(mode=0o700)
        found = self.verdicts(f'links = 8\ndisks = ["/tmp", "{closed}"]\nmounts = ["/proc"]\nclock = "1h"\nbandwidth = 1', "--even-if-busy",
                              "--only", "links,disks,mounts,bandwidth", code=UNKNOWN, user=NOBODY)
        self.assertEqual({check: verdict for check, (verdict, _) in found.items()},
                         {"links": "fit", "disks": "unknown", "mounts": "fit", "bandwidth": "fit"})
        self.assertIn(f"uid {NOBODY}", found["disks"][1][0])

    def test_two_at_once(self):
        """Both measure, one after the other, and both write the same file."""
        path, file = self.dir / "banyan.conf", self.dir / "sweep.prom"
        path.write_text("[sweep]\nlinks = 8\nbandwidth = 1\n")
        words = [SWEEP, "--config", path, "--root", self.root, "--even-if-busy", "--textfile", file]
        both = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for _ in range(2)]
        for one in both:
            said, _ = one.communicate(timeout=100)
            self.assertEqual(one.returncode, FIT, said)
        self.assertEqual([path.name for path in self.dir.iterdir() if "sweep.prom" in path.name], ["sweep.prom"])

    @unittest.skipIf(os.geteuid() != 0, "root's lock")
    def test_one_that_measures_for_ever(self):
        with (self.root / "run/banyan-sweep.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            found = self.verdicts("links = 8\nbandwidth = 1", "--even-if-busy", "--time-limit", 6, code=UNKNOWN)
        self.assertIn("no answer within", found["bandwidth"][1][0])
        self.assertEqual(found["links"][0], "fit")

    @unittest.skipIf(os.geteuid() != 0 or not shutil.which("unshare"), "mounts")
    def test_a_sandbox(self):
        """What is read-only for us alone, as with ProtectSystem=strict, is not known; a file system that is read-only is unfit."""
        folder, config = self.dir / "scratch", self.dir / "banyan.conf"
        folder.mkdir()
        config.write_text(f'[sweep]\ndisks = ["{folder}"]\ndisk_fill = 100\ndisk_inodes = 100\n')
        for mount, options, code in ((f"--bind {folder}", "remount,bind,ro", UNKNOWN), ("-t tmpfs none", "remount,ro", UNFIT)):
            script = f"mount {mount} {folder} && mount -o {options} {folder} && exec {SWEEP} --config {config} --json --node n01"
            done = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, timeout=100, check=False)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)

    def test_disks(self):
        found = self.verdicts('disks = ["/tmp", "/none", "/proc"]\ndisk_fill = 100\ndisk_inodes = 100', code=UNFIT)
        self.assertEqual(len(found["disks"][1]), 3)
        self.assertIn("/tmp takes a file", found["disks"][1][2])


if __name__ == "__main__":
    unittest.main(verbosity=2)

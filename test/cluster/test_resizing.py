# SPDX-License-Identifier: BSD-3-Clause
"""A running job loses nodes, and every core and GPU stays accounted for: running steps go on, later ones have what is left, over a restart
of slurmctld, and in the end everything is free.

BANYAN_RESIZING_LOSSES sets the number of nodes that are lost, BANYAN_RESIZING_SEED the dice.
"""

import os
import random
import re
import signal
import subprocess
import time

from harness import ClusterCase, Failure, main

from banyan_cluster import layout as layouts, namespace, parts, process

LOSSES = int(os.environ.get("BANYAN_RESIZING_LOSSES", "20"))
SEED = int(os.environ.get("BANYAN_RESIZING_SEED", "20261121"))
CPUS, GPUS = 8, 2
# What slurmctld says when its counts do not fit.
DRIFT = re.compile(r"error: .*(underflow|under-?allocated|over-?allocated|miscount|mis-count|node_offset|overflow|mismatch|size bad|overlap|"
                   r"gres/|job_resources|rebase|core_bitmap)|error: banyan")
GPU_ENV = "echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES $SLURM_STEP_GPUS"


class Resizing(ClusterCase):
    nodes = 6
    options = ("--group-size", 4, "--gpus", GPUS, "--without", "fault")
    kind = "gpu"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.layout = layouts.load(cls.cluster.dir)
        cls.env = parts.tool_environment(cls.layout)
        cls.all = list(cls.layout.node_names)
        # Devices that slurmd takes for GPUs, so that steps get the variables; and a partition where jobs share nodes.
        for node in cls.all:
            for gpu in range(GPUS):
                device = cls.cluster.dir / "nodes" / node / "dev" / f"nvidia{gpu}"
                device.unlink()
                device.symlink_to("/dev/null")
        etc = cls.cluster.dir / "etc"
        conf = (etc / "slurm.conf").read_text().replace(f" Gres=gpu:{GPUS}", f" Gres={cls.kind}:{GPUS}")
        (etc / "slurm.conf").write_text(conf + "PartitionName=shared Nodes=ALL MaxTime=INFINITE State=UP OverSubscribe=NO\n")
        if cls.kind != "gpu":
            gres = (etc / "gres.conf").read_text().replace(" Name=gpu ", f" Name=gpu Type={cls.kind.partition(':')[2]} ")
            (etc / "gres.conf").write_text(gres)
        cls.end_parts("slurmctld", *(f"slurmd-{node}" for node in cls.all))
        parts.start_slurmctld(cls.layout)
        parts.start_slurmds(cls.layout)

    @classmethod
    def end_parts(cls, *names, number=signal.SIGTERM):
        pids = [cls.cluster.parts()[name] for name in names]
        for pid in pids:
            os.kill(pid, number)
        cls.cluster.wait_for(lambda: all(process.start_time(pid) is None for pid in pids), f"{names} have ended")

    def setUp(self):
        super().setUp()
        self.jobs = []
        self.addCleanup(lambda: [self.command("scancel", job, check=False) for job in self.jobs])

    def tearDown(self):
        log = (self.cluster.dir / "log" / "slurmctld.log").read_text(errors="replace")
        self.assertEqual([line for line in log.splitlines() if DRIFT.search(line) and "slurm.conf lacks: sm01" not in line], [])

    # -- commands ------------------------------------------------------------------------------------------------------------

    def command(self, *words, check=True):
        """Without scripts/cluster in between, since there are thousands of them."""
        done = namespace.run(self.layout, words, self.cluster.dir / "tmp", capture_output=True, text=True, timeout=60, env=self.env,
                             stdin=subprocess.DEVNULL, check=False)
        if check and done.returncode:
            raise Failure(f"{' '.join(map(str, words))} ended with {done.returncode}: {done.stdout}{done.stderr}\n{self.cluster.evidence()}")
        return (done.stdout + done.stderr).strip()

    def allocate(self, nodes, *options, gres=GPUS):
        """An allocation without a shell, on these nodes, with so many of their GPUs."""
        # salloc itself looks only every few seconds whether the nodes are ready.
        waiting = subprocess.Popen(
            namespace.inside(self.layout, ["salloc", "--no-shell", "--no-kill", "-N", len(nodes), "-w", ",".join(nodes),
                                           *([f"--gres={self.kind}:{gres}"] if gres else []), *options], "/"),
            env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (waiting.stderr.close(), waiting.wait(timeout=60)))
        lines = []
        while not (granted := re.search(r"Granted job allocation (\d+)", "".join(lines))):
            lines.append(waiting.stderr.readline())
            if not lines[-1]:
                raise Failure(f"salloc: {''.join(lines)}")
        job = int(granted.group(1))
        self.jobs.append(job)
        self.cluster.wait_for(lambda: self.command("squeue", "-h", "-j", job, "-o", "%T") == "RUNNING", f"job {job} runs", pause=0.02)
        return job

    def lose(self, node):
        self.command("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=lost")
        # The node may have come back by itself.
        self.command("scontrol", "update", f"NodeName={node}", "State=RESUME", check=False)

    def nodes_of(self, job):
        found = re.search(r" NodeList=(\S+)", self.command("scontrol", "-o", "show", "job", job))
        return self.expand(found.group(1)) if found and found.group(1) != "(null)" else []

    @staticmethod
    def expand(text):
        """n[01-03,06] without a process."""
        names = []
        for part in re.sub(r"^n\[?|\]$", "", text).split(","):
            first, _, last = part.partition("-")
            names += [f"n{number:02d}" for number in range(int(first), int(last or first) + 1)]
        return names

    def used(self):
        """{node: (allocated CPUs, GPUs in use, allocated TRES, state)} as slurmctld counts them."""
        out = {}
        for line in self.command("scontrol", "-d", "-o", "show", "node").splitlines():
            fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
            gpus = int(re.fullmatch(r"gpu(?:|:\w+):(\d+)(?:\(.*\))?", fields["GresUsed"]).group(1))
            out[fields["NodeName"]] = (int(fields["CPUAlloc"]), gpus, fields["AllocTRES"], fields["State"])
        return out

    def assert_used(self, *jobs, each=(CPUS, GPUS)):
        """Exactly the nodes of these jobs are in use, and `each` CPUs and GPUs of each node by each job."""
        holders = [node for job in jobs for node in self.nodes_of(job)]
        expected = {node: tuple(holders.count(node) * count for count in each) for node in self.all}

        expected = {node: (*counts, f"cpu={counts[0]}" if counts[0] else "") for node, counts in expected.items()}
        used = {}

        def settled():
            # A node that was given back ends its last job first.
            used.update({node: counts[:3] for node, counts in self.used().items()})
            return used == expected
        try:
            self.cluster.wait_for(settled, f"the counts of jobs {jobs}", timeout=10, pause=0.02)
        except Failure:
            self.assertEqual(used, expected)

    def gpus_seen(self, job, *options, gpus=GPUS):
        """{node: (CUDA_VISIBLE_DEVICES, SLURM_STEP_GPUS)} of a step, one task on each node."""
        text = self.command("timeout", 30, "srun", f"--jobid={job}", "--ntasks-per-node=1", f"--gres=gpu:{gpus}", *options, "bash", "-c",
                            GPU_ENV)
        return {words[0]: tuple(words[1:]) for words in map(str.split, text.splitlines()) if re.fullmatch(r"n\d\d", words[0])}

    def assert_steps(self, job):
        """A step on each node alone, then one on all: each has all GPUs of its nodes."""
        nodes = self.nodes_of(job)
        every = (",".join(map(str, range(GPUS))),) * 2
        for node in nodes:
            self.assertEqual(self.gpus_seen(job, "-N1", "-w", node), {node: every})
        self.assertEqual(self.gpus_seen(job, f"-N{len(nodes)}", f"-n{len(nodes)}"), {node: every for node in nodes})

    def start_step(self, job, nodes):
        """A step with all GPUs and cores of these nodes. Returns it and a function that ends it."""
        stop = self.cluster.dir / "tmp" / f"stop-{job}-{nodes[0]}"
        step = subprocess.Popen(
            namespace.inside(self.layout, [
                "srun", f"--jobid={job}", f"-N{len(nodes)}", f"-n{len(nodes)}", "-w", ",".join(nodes), f"--gres=gpu:{GPUS}", "bash", "-c",
                f"echo up $SLURMD_NODENAME; until [ -e {stop} ]; do sleep 0.1; done; echo down $SLURMD_NODENAME"]),
            env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(stop.touch)
        self.cluster.wait_for(lambda: re.search(r"\d+\.\d+", self.command("squeue", "-h", "-s", "-j", job, check=False)), "the step runs")

        def end():
            stop.touch()
            text = step.communicate(timeout=60)[0]
            self.assertEqual((step.returncode, sorted(text.split("\n"))),
                             (0, sorted(["", *(f"{when} {node}" for node in nodes for when in ("up", "down"))])), text)
        return end

    # -- tests ---------------------------------------------------------------------------------------------------------------

    def test_slurmctld_comes_back(self):
        job = self.allocate(["n01", "n02", "n03", "n05"])
        self.lose("n02")
        self.assert_used(job)
        self.save()
        for number in (signal.SIGTERM, signal.SIGKILL):
            self.restart(number)
            self.assert_used(job)
        self.cluster.reconfigure()
        self.assert_used(job)
        self.assert_steps(job)
        self.lose("n05")
        self.assert_used(job)
        self.assert_steps(job)
        self.command("scancel", job)
        self.assert_used()

    def test_a_step_outlives_the_loss_of_another_node(self):
        job = self.allocate(["n01", "n02", "n03"])
        end = self.start_step(job, ["n02", "n03"])
        self.lose("n01")
        self.assertEqual(self.nodes_of(job), ["n02", "n03"])
        self.assert_used(job)
        end()
        self.assert_steps(job)
        self.command("scancel", job)
        self.assert_used()

    def test_jobs_that_share_nodes(self):
        half = ("-p", "shared", "--ntasks-per-node=4")
        job = self.allocate(["n02", "n03", "n04"], *half, gres=1)
        other = self.allocate(["n02", "n03"], *half, gres=1)
        self.assert_used(job, other, each=(4, 1))
        # Given away by the one, and lost by both.
        self.command("scontrol", "update", f"JobId={job}", "NodeList=n02,n03")
        self.assertEqual(self.nodes_of(job), ["n02", "n03"])
        self.assert_used(job, other, each=(4, 1))
        self.lose("n02")
        self.assertEqual((self.nodes_of(job), self.nodes_of(other)), (["n03"], ["n03"]))
        self.assert_used(job, other, each=(4, 1))
        seen = [self.gpus_seen(one, "-N1", "-n1", gpus=1)["n03"][0] for one in (job, other)]
        self.assertEqual(sorted(seen), ["0", "1"])
        self.command("scancel", job)
        self.assert_used(other, each=(4, 1))
        self.command("scancel", other)
        self.assert_used()

    def test_a_job_that_lost_a_node_keeps_its_gpus(self):
        """Also those that are not the same ones on each node, and also over a restart, where Slurm reads them from the request."""
        half = ("-p", "shared", "--ntasks-per-node=4")
        first = self.allocate(["n01"], *half, gres=1)
        job = self.allocate(["n01", "n02"], *half, gres=1)
        before = self.gpus_seen(job, "-N2", "-n2", gpus=1)
        self.assertNotEqual(before["n01"], before["n02"])
        self.command("scancel", first)
        self.lose("n01")
        self.assert_used(job, each=(4, 1))
        self.save()
        self.restart(signal.SIGTERM)
        self.assertEqual(self.gpus_seen(job, "-N1", "-n1", gpus=1), {"n02": before["n02"]})
        second = self.allocate(["n02"], *half, gres=1)
        self.assertNotEqual(self.gpus_seen(second, "-N1", "-n1", gpus=1)["n02"], before["n02"])
        self.command("scancel", job, second)
        self.assert_used()

    def restart(self, number):
        """And waits until slurmctld has heard its nodes: srun sleeps for long when it asks for a step before that."""
        self.end_parts("slurmctld", number=number)
        parts.start_slurmctld(self.layout)

        def registered():
            found = re.search(r"MESSAGE_NODE_REGISTRATION_STATUS\s.*count:(\d+)", self.command("sdiag"))
            return found and int(found.group(1)) >= self.nodes
        self.cluster.wait_for(registered, "every node has registered")

    def save(self):
        saved = time.time()
        state = self.cluster.dir / "ctld" / "job_state"
        self.command("sbatch", "--hold", "--wrap=true")  # slurmctld saves after it
        self.cluster.wait_for(lambda: state.exists() and state.stat().st_mtime > saved, "the jobs are saved")

    def test_losses(self):
        """A job loses one node after the other until one is left, and so does the next job, on nodes that others have lost."""
        dice = random.Random(SEED)
        lost = 0
        while lost < LOSSES:
            job = self.allocate(sorted(dice.sample(self.all, dice.randint(3, len(self.all)))))
            while len(nodes := self.nodes_of(job)) > 1:
                with self.subTest(lost=lost, nodes=nodes, seed=SEED):
                    lost += 1
                    self.lose(gone := dice.choice(nodes))
                    self.assertEqual(self.nodes_of(job), [node for node in nodes if node != gone])
                    self.assert_used(job)
            self.assert_steps(job)
            self.command("scancel", job)
            self.assert_used()
            self.cluster.wait_for_nodes_idle()


class ResizingOfOneType(Resizing):
    """GPUs with a type, which slurmctld counts on their own."""
    kind = "gpu:h100"
    test_losses = test_a_step_outlives_the_loss_of_another_node = None
    test_a_job_that_lost_a_node_keeps_its_gpus = None


if __name__ == "__main__":
    main()

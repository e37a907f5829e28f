# SPDX-License-Identifier: BSD-3-Clause
"""What changes around a training job after its submission: scontrol update by its owner and by an administrator, a step on other nodes, a
snapshot that loses one of its nodes. Its numbers stay those of the shape, its AdminComment says what is so, no rank gets onto a spare,
and slurmctld lives."""

import json
import re

from harness import BUILD, ClusterCase, main, program

TRAIN = ("-N3", "--train-parallel=tp=4", "--train-spares=1")  # 2 ranks on each of 2 nodes, and one node that waits
LINE = "banyan: tp=4 nodes=2 ranks=4 spares=1({})"
NO_SPARE = LINE.replace("1({})", "0")


class Changes(ClusterCase):
    nodes = 8
    options = ("--group-size", 4, "--without", "fault")

    def setUp(self):
        super().setUp()
        self.tmp = self.cluster.dir / "tmp"
        self.task = self.tmp / "task.sh"
        self.task.write_text("#!/bin/bash\necho task $RANK $SLURMD_NODENAME\n")
        self.task.chmod(0o755)
        self.addCleanup(self.cluster.run, "scancel", "--user=root")
        placed = json.loads(self.cluster.out(BUILD / "bin" / "banyan-topo", "place", self.cluster.dir / "fabric.snapshot", "--shape", "tp=4",
                                             "--nodes", 3, "--ranks-per-node", 2, "--spares", 1, "--json"))
        self.planned, (self.spare,) = placed["ranks"], placed["spares"]

    def ranks(self, text):
        """The node of each rank, in order."""
        found = sorted((int(rank), node) for rank, node in re.findall(r"^task (\d+) (\S+)$", text, re.M))
        self.assertEqual([rank for rank, _ in found], list(range(4)), text)
        return [node for _, node in found]

    def update(self, job, *words):
        return self.cluster.run("scontrol", "update", f"JobId={job}", *words, check=False)

    def comment(self, job):
        return self.cluster.job(job).get("AdminComment", "")

    def in_turn(self, *parts, options=()):
        """A running job whose script waits between its parts. Returns (job, next), which runs a part and gives its output."""
        self.cluster.wait_for_nodes_idle()  # the job is expected on the nodes of an empty cluster
        gate = self.tmp / "gate"
        for file in self.tmp.glob("gate*"):
            file.unlink()
        script = "".join(f"while [ ! -e {gate}{i} ]; do sleep 0.05; done\n{part}\necho end of {i}\n" for i, part in enumerate(parts))
        job = self.cluster.sbatch(*TRAIN, *options, script=script)
        self.cluster.wait_for_job(job, "RUNNING")
        done = [0]

        def following():
            i = done[0]
            done[0] += 1
            before = len(self.cluster.output(job))
            (self.tmp / f"gate{i}").touch()
            self.cluster.wait_for(lambda: f"end of {i}\n" in self.cluster.output(job), f"part {i} has ended")
            return self.cluster.output(job)[before:]
        return job, following

    def lose_a_node(self, job):
        """One of its ranks', and not that of its script. Returns the ranks of the steps that follow."""
        node = self.planned[2]
        self.assertNotEqual(node, self.cluster.job(job)["BatchHost"])
        for state in ("down", "drain"):  # or its slurmd has it back in a moment
            self.cluster.run("scontrol", "update", f"nodename={node}", f"state={state}", "reason=lost")
        self.addCleanup(self.cluster.run, "scontrol", "update", f"nodename={node}", "state=resume")
        return [*self.planned[:2], self.spare, self.spare]

    # -- numbers ---------------------------------------------------------------------------------------------------------------

    def test_numbers_of_a_job_that_waits(self):
        told = ""
        for options in ((), ("--array=1",)):
            with self.subTest(options=options):
                self.cluster.wait_for_nodes_idle()
                out = self.tmp / "held.out"
                out.unlink(missing_ok=True)
                job = self.cluster.sbatch("--hold", *TRAIN, *options, f"--output={out}", script=f"srun {self.task}\n")
                for words in (("NumNodes=2",), ("NumNodes=4-6",), ("NumNodes=2-3",), ("NumTasks=3",), ("NumTasks=8",), ("NumTasks=99999",),
                              ("NumNodes=2", "NumTasks=4")):
                    done = self.update(job, *words)
                    self.assertNotEqual(done.returncode, 0, words)
                    told += done.stderr
                for words in (("NumNodes=3",), ("NumNodes=3-3",), ("NumTasks=6",), ("TimeLimit=30",), ("Nice=5",)):
                    done = self.update(job, *words)
                    self.assertEqual(done.returncode, 0, f"{words}: {done.stderr}")
                self.cluster.run("scontrol", "release", job)
                self.cluster.wait_for_job(job)
                self.assertEqual(self.ranks(out.read_text()), self.planned)
                self.assertIn(LINE.format(self.spare), self.comment(job))
        # 22.05 has no way to tell the user why.
        log = (self.cluster.dir / "log" / "slurmctld.log").read_text()
        self.assertIn("keeps its number of nodes: 3 follows from --train-parallel=tp=4, not 2; cancel the job",
                      log if self.cluster.release() < (23, 2) else told)

    def test_a_plain_job_is_changed_as_ever(self):
        job = self.cluster.sbatch("--hold", "-N3", script="true\n")
        self.assertEqual(self.update(job, "NumNodes=2-4", "NumTasks=8", "AdminComment=hello").returncode, 0)
        self.assertEqual(self.comment(job), "hello")

    # -- AdminComment ----------------------------------------------------------------------------------------------------------

    def test_an_administrator_s_comment(self):
        job, following = self.in_turn(f"srun {self.task}", f"srun {self.task}")
        line = self.comment(job)
        self.assertIn(LINE.format(self.spare), line)
        forged = line.replace(f"({self.spare})", f"({self.planned[0]})")
        for typed, theirs in (("hello", " | hello"), ("", ""), (line + " | again", " | again"), (forged, ""), (forged + " | x | y", " | x | y"),
                              ("banyan: nonsense", " | banyan: nonsense")):
            self.assertEqual(self.update(job, f"AdminComment={typed}").returncode, 0)
            self.assertEqual(self.comment(job), line + theirs)
        self.assertEqual(self.ranks(following()), self.planned)
        self.assertEqual(self.update(job, "AdminComment=bye").returncode, 0)
        self.assertEqual(self.ranks(following()), self.planned)
        self.assertEqual(self.comment(job), line + " | bye")

    def test_a_node_that_was_lost_is_in_no_later_step(self):
        job, following = self.in_turn(f"srun {self.task}", f"srun {self.task}")
        moved = self.lose_a_node(job)
        for _ in range(2):
            self.assertEqual(self.ranks(following()), moved)
            self.assertIn(NO_SPARE, self.comment(job))

    def test_the_line_of_a_run_that_is_over(self):
        """The second run is placed without a fabric: nothing of the first one's line may be believed."""
        snapshot = self.cluster.dir / "fabric.snapshot"
        started = self.tmp / "started"
        started.unlink(missing_ok=True)
        job = self.cluster.sbatch(*TRAIN, "--requeue", "--open-mode=append", script=f"srun {self.task}\n[ -e {started} ] || {{ touch {started}; sleep 600; }}\n")
        self.cluster.wait_for(started.exists, "the first run is under way")
        self.assertIn(LINE.format(self.spare), self.comment(job))
        self.assertEqual(self.update(job, "AdminComment=hello").returncode, 0)
        good = snapshot.read_bytes()
        snapshot.unlink()
        self.addCleanup(snapshot.write_bytes, good)
        self.cluster.run("scontrol", "requeuehold", job)
        self.cluster.wait_for_job(job, "PENDING")
        self.assertNotEqual(self.update(job, "NumNodes=2").returncode, 0)
        self.cluster.run("scontrol", "release", job)
        self.cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now", check=False)  # it may have begun
        self.cluster.wait_for_job(job)
        self.assertRegex(self.comment(job), r"^banyan: tp=4 nodes=2 ranks=4 spares=1\(n\d+\) order=slurm\([a-z-]+\) \| hello$")

    # -- the snapshot ----------------------------------------------------------------------------------------------------------

    def without(self, node):
        """Puts a snapshot in place that lacks a node, as one has whose cables are pulled."""
        snapshot, net, other = self.cluster.dir / "fabric.snapshot", self.tmp / "other", self.tmp / "other.snapshot"
        # The next test's job must not be placed by what this one leaves in slurmctld.
        self.addCleanup(self.take, snapshot.read_bytes())
        tool = program("banyan-topo")
        self.cluster.run(tool, "gen", "--nodes", 8, "--group-size", 4, "-o", net)
        net.write_text(net.read_text().replace(f'"{node} ', '"x99 '))
        self.cluster.run(tool, "snapshot", net, "-o", other)
        self.take(other.read_bytes())

    def take(self, content):
        """Until slurmctld has read the snapshot."""
        log = self.cluster.dir / "log" / "slurmctld.log"
        begin = log.stat().st_size
        new = self.cluster.dir / "fabric.snapshot.new"
        new.write_bytes(content)
        new.rename(self.cluster.dir / "fabric.snapshot")

        def taken():
            self.cluster.run(*self.cluster.srun("-N1", "--train-parallel=dp=1"), "true")
            return "8 hosts in 2 leaf groups" in log.read_text()[begin:]
        self.cluster.wait_for(taken, "slurmctld has taken the snapshot")

    def test_a_snapshot_without_the_spare(self):
        job, following = self.in_turn(f"srun {self.task}", f"srun {self.task}")
        self.without(self.spare)
        for _ in range(2):
            self.assertEqual(self.ranks(following()), self.planned)
            self.assertIn(LINE.format(self.spare), self.comment(job))

    def test_a_snapshot_without_a_node_of_the_ranks(self):
        job, following = self.in_turn(f"srun {self.task}", f"srun {self.task}", f"srun {self.task}")
        self.without(self.planned[0])
        self.assertEqual(self.ranks(following()), self.planned)
        self.assertIn(LINE.format(self.spare), self.comment(job))
        moved = self.lose_a_node(job)
        for _ in range(2):
            self.assertEqual(self.ranks(following()), moved)
            self.assertIn(NO_SPARE, self.comment(job))

    def test_a_snapshot_without_the_node_that_was_lost(self):
        job, following = self.in_turn(f"srun {self.task}", f"srun {self.task}", f"srun {self.task}")
        self.assertEqual(self.ranks(following()), self.planned)
        moved = self.lose_a_node(job)
        self.without(self.planned[2])
        for _ in range(2):
            self.assertEqual(self.ranks(following()), moved)
            self.assertIn(NO_SPARE, self.comment(job))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""Jobs whose tasks are no ranks but start them, one on each node: the shape counts ranks, the placement is that of the ranks, and the
task's number is its node's. And MPI programs, which must hear of the nodes of the ranks what is so."""

import re
import shlex
import sys
from pathlib import Path

from harness import main
from on_demand import OnDemandCase

# Two nodes a leaf group: a pipeline sits in one, so that the order of the nodes is not Slurm's.
SHAPE = "tp=2,pp=2,dp=2"
NAMES = ("BANYAN_NODE_RANK", "BANYAN_NNODES", "BANYAN_NPROC_PER_NODE", "PET_NODE_RANK", "PET_NNODES", "PET_NPROC_PER_NODE", "PET_MASTER_ADDR",
         "MASTER_ADDR", "BANYAN_STEP_NODES", "BANYAN_TP_SIZE", "BANYAN_SHAPE", "RANK", "LOCAL_RANK", "BANYAN_TP_RANK", "BANYAN_NODE")
TELL = "bash -c " + shlex.quote("; ".join(["echo launcher $SLURM_PROCID"] + [f'echo "env $SLURM_PROCID {name}=${name}"' for name in NAMES]))


class Launchers(OnDemandCase):
    nodes = 8
    options = ("--group-size", 2, "--gpus", 2, "--without", "fault")

    def slots(self, shape=SHAPE, nodes=4, per_node=2):
        return self.place(shape, nodes, per_node, [f"n{i:02}" for i in range(1, 9)])["nodes"]

    def told(self, text):
        """{task: {name: value}}"""
        out = {}
        for task, name, value in re.findall(r"^env (\d+) (\w+)=(.*)$", text, re.MULTILINE):
            out.setdefault(int(task), {})[name] = value
        return out

    def check(self, text, slots, each):
        told = self.told(text)
        self.assertEqual(sorted(told), list(range(len(slots))), text)
        for task, env in told.items():
            self.assertEqual(env["BANYAN_NODE"], slots[task], text)
            for prefix in ("BANYAN", "PET"):
                self.assertEqual((env[f"{prefix}_NODE_RANK"], env[f"{prefix}_NNODES"], env[f"{prefix}_NPROC_PER_NODE"]),
                                 (str(task), str(len(slots)), str(each)))
            self.assertEqual(self.cluster.hosts(env["BANYAN_STEP_NODES"]), slots)
            self.assertEqual(env["MASTER_ADDR"], slots[0])
            self.assertEqual(env["PET_MASTER_ADDR"], env["MASTER_ADDR"])
            # The launcher's children are ranks, it is none.
            self.assertEqual((env["RANK"], env["LOCAL_RANK"], env["BANYAN_TP_RANK"]), ("", "", ""))
            self.assertEqual((env["BANYAN_TP_SIZE"], env["BANYAN_SHAPE"]), ("2", SHAPE))

    def test_one_task_a_node(self):
        slots = self.slots()
        self.assertNotEqual(slots, sorted(slots), "Slurm's own order would pass, too")
        for asked in (("--ntasks-per-node=1",), ("-n4",)):
            with self.subTest(asked=asked):
                job = self.cluster.sbatch("-N4", *asked, f"--train-parallel={SHAPE}", script=f"srun {TELL}\necho ==\nbanyan-run {TELL}\n")
                self.cluster.wait_for_job(job)
                self.assertRegex(self.cluster.job(job)["AdminComment"], f"^banyan: {SHAPE} nodes=4 ranks=8 tasks=4 ")
                by_srun, by_run = self.cluster.output(job).split("==\n")
                self.check(by_srun, slots, 2)
                self.check(by_run, slots, 2)

    def test_spares(self):
        job = self.cluster.sbatch("-N5", "--ntasks-per-node=1", f"--train-parallel={SHAPE}", "--train-spares=1",
                                  script=f"banyan-run {TELL}\n")
        self.cluster.wait_for_job(job)
        told = self.told(self.cluster.output(job))
        self.assertEqual(sorted(told), [0, 1, 2, 3])
        nodes = [told[task]["BANYAN_NODE"] for task in range(4)]
        self.assertEqual(self.cluster.hosts(told[0]["BANYAN_STEP_NODES"]), nodes)
        self.assertNotIn(re.search(r"spares=1\((\w+)\)", self.cluster.job(job)["AdminComment"]).group(1), nodes)

    def test_by_srun_alone(self):
        words = self.cluster.srun("-N4", "--ntasks-per-node=1", f"--train-parallel={SHAPE}")
        self.check(self.cluster.out(*words, *shlex.split(TELL)), self.slots(), 2)

    def test_what_the_user_sets_for_torchrun_stays(self):
        words = self.cluster.srun("-N4", "--ntasks-per-node=1", f"--train-parallel={SHAPE}")
        out = self.cluster.out(*words, *shlex.split(TELL), env={"PET_NPROC_PER_NODE": "auto"})
        self.assertEqual({env["PET_NPROC_PER_NODE"] for env in self.told(out).values()}, {"auto"})
        self.assertEqual({env["BANYAN_NPROC_PER_NODE"] for env in self.told(out).values()}, {"2"})

    def test_ranks_that_a_launcher_cannot_number(self):
        """Banyan keeps tensor parallel groups on a node: here ranks 0, 4 and not 0, 1."""
        done = self.cluster.run("sbatch", "-N4", "--ntasks-per-node=1", "--train-parallel=dp=4,tp=2", "--wrap=true", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("one task a node is a launcher of 2 consecutive ranks", done.stderr)
        self.assertIn("--ntasks-per-node=2", done.stderr)

    def test_a_step_of_one_task_a_node_in_a_job_of_ranks(self):
        """Such as a look at the GPUs beside the training: it is no launcher."""
        job = self.cluster.sbatch("-N4", "--ntasks-per-node=2", f"--train-parallel={SHAPE}", script=f"srun --ntasks-per-node=1 -n4 {TELL}\n")
        self.cluster.wait_for_job(job)
        told = self.told(self.cluster.output(job))
        self.assertEqual([told[task]["BANYAN_NNODES"] for task in sorted(told)], [""] * 4)

    def test_uneven_numbers_are_refused(self):
        done = self.cluster.run("sbatch", "-N3", "--ntasks-per-node=1", f"--train-parallel={SHAPE}", "--wrap=true", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"--train-parallel={SHAPE} is 8 ranks, but 3 nodes with 1 tasks each are 3", done.stderr)

    # -- MPI -------------------------------------------------------------------------------------------------------------------

    def test_pmi2_tells_where_the_ranks_are(self):
        program = (sys.executable, Path(__file__).with_name("pmi_map.py"))
        for shape, options in ((SHAPE, ()), ("dp=4,tp=2", ()), (SHAPE, ("-m", "cyclic")), (SHAPE, ("-m", "block:block"))):
            with self.subTest(shape=shape, options=options):
                self.cluster.wait_for_nodes_idle()
                out = self.cluster.out(*self.cluster.srun("-N4", "--ntasks-per-node=2", f"--train-parallel={shape}"), "--mpi=pmi2", *options, *program)
                lines = [line.split() for line in out.splitlines() if line.startswith("map ")]
                node_of = {int(rank): node for _, rank, node, _ in lines}
                self.assertEqual(sorted(node_of), list(range(8)), out)
                by_slot = list(dict.fromkeys(node_of[rank] for rank in range(8)))
                self.assertNotEqual([node_of[rank] for rank in range(8)], [node for node in sorted(by_slot) for _ in range(2)])
                mappings = {mapping for *_, mapping in lines}
                self.assertEqual(len(mappings), 1)
                names = sorted(by_slot)  # the step's node list is in the order of slurm.conf
                self.assertEqual([names[index] for index in nodes_of_vector(mappings.pop(), 8)], [node_of[rank] for rank in range(8)], out)


def nodes_of_vector(text, ranks):
    """The node index of each rank, as an MPI library reads "(vector,(first,nodes,block),...)": the blocks over and over."""
    blocks = [tuple(int(number) for number in found) for found in re.findall(r"\((\d+),(\d+),(\d+)\)", text)]
    out = []
    while len(out) < ranks:
        for first, nodes, block in blocks:
            for node in range(first, first + nodes):
                out += [node] * block
    return out[:ranks]


if __name__ == "__main__":
    main()

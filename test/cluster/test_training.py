# SPDX-License-Identifier: BSD-3-Clause
"""Whole training jobs: saved in memory, killed, healed with a spare, requeued; the loss is always that of an undisturbed run."""

import json
import os
import signal

from harness import main, needs_select
from training import XID_79, TrainingCase

from banyan_demo import trainer_log


class Training(TrainingCase):
    def setUp(self):
        super().setUp()
        # A node that an earlier test took out comes back the way an administrator brings it back.
        self.addCleanup(self.return_nodes)

    def return_nodes(self):
        for name in self.cluster.hosts(self.cluster.out("sinfo", "-h", "-o", "%N")):
            if "DOWN" in self.cluster.node(name)["state"] or "DRAIN" in self.cluster.node(name)["state"]:
                self.cluster.run("scontrol", "update", f"nodename={name}", "state=resume", check=False)

    def test_the_state_survives_every_rank(self):
        reference = self.undisturbed()
        job = self.submit_unending(8)
        self.wait_step(job, 15)
        placed = {rank: node for rank, (_, node) in self.ranks(job).items()}
        self.assertEqual(len(placed), 16)
        counted = self.counted(job)
        for pid, _ in self.ranks(job).values():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        log = self.end(job)
        self.assert_losses(log, reference)
        self.assertEqual({r["source"] for r in log.restored}, {"local"})
        self.assertEqual({r["rank"]: r["node"] for r in log.restored}, placed)
        self.assert_kept(job, counted)
        # The job ended of its own will: nobody needs its memory any more.
        self.cluster.wait_for(lambda: job not in self.sessions(), "the checkpoint daemons free the job's memory")

    def test_the_next_job_of_a_chain_loses_no_step(self):
        """It has another number, so storage is all it can begin from, and no flush was due by far."""
        reference = self.undisturbed()
        ckpt = f"dir={self.checkpoints()},every=1,flush=1000"
        first = self.submit(8, ckpt=ckpt, step_ms=200)
        self.wait_step(first, 15)
        counted, _ = self.counted(first)
        self.cluster.run("scancel", first)
        self.cluster.wait_for_job(first, "CANCELLED")
        log = self.wait_finished(self.submit(8, ckpt=ckpt))
        self.assertEqual({r["source"] for r in log.restored}, {"storage"})
        begun = {r["step"] for r in log.restored}
        self.assertEqual(len(begun), 1)
        self.assertGreaterEqual(begun.pop(), counted)
        losses = trainer_log.losses(log)
        self.assertEqual(losses, {step: reference[step] for step in losses})
        self.assertIn(max(reference), losses)

    def test_the_state_survives_the_step(self):
        reference = self.undisturbed()
        job = self.submit_unending(8)
        self.wait_step(job, 15)
        self.cluster.run("scancel", "--signal=KILL", f"{job}.0")
        log = self.end(job)
        self.assert_losses(log, reference)
        self.assertEqual(len(log.starts), 2)

    def test_a_spare_takes_the_place_of_a_failed_node(self):
        reference = self.undisturbed()
        job = self.submit_unending(9, spares=1, ckpt=f"dir={self.checkpoints()},every=1,flush=10")
        self.wait_step(job, 20)
        before = {rank: node for rank, (_, node) in self.ranks(job).items()}
        victim = sorted(set(before.values()))[3]
        counted = self.counted(job)
        self.cluster.kmsg(victim, XID_79)
        log = self.end(job)
        self.assert_losses(log, reference)
        after = {r["rank"]: r for r in log.restored}
        self.assertEqual(len(after), 16)
        moved = {rank for rank, node in before.items() if after[rank]["node"] != node}
        self.assertEqual(moved, {rank for rank, node in before.items() if node == victim})
        self.assertEqual({after[rank]["source"] for rank in moved}, {"peer"})
        self.assertEqual({after[rank]["source"] for rank in set(after) - moved}, {"local"})
        self.assert_kept(job, counted)
        node = self.cluster.node(victim)
        # DOWN takes it out of the job; once its slurmd registers again the drain keeps it out.
        self.assertTrue({"DOWN", "DRAIN"} & set(node["state"]), node["text"])
        self.assertTrue(node["reason"].startswith("banyan:"), node["reason"])
        incident = self.incident(lambda i: i["object"]["node"] == victim)
        self.assertEqual((incident["object"]["kind"], incident["object"]["gpu"]), ("gpu", 3))
        self.assertIn(job, incident["jobs"])

    def test_a_broken_leaf_spine_link_leaves_the_job_alone(self):
        job = self.submit(8, steps=80)
        self.wait_step(job, 5)
        leaf, port = self.uplink()
        self.cluster.link("down", leaf, port)
        incident = self.incident(lambda i: i["object"]["kind"] == "link" and not i["times"]["closed_ms"])
        ends = {(end["name"] or end["node"]).split(":")[0].split(";")[-1].split("-")[0] for end in incident["object"]["ends"]}
        self.assertEqual(ends, {"leaf", "spine"})
        self.assertTrue(all(end["port"] > 0 for end in incident["object"]["ends"]))
        self.cluster.link("up", leaf, port)
        log = self.wait_finished(job)
        self.assertEqual(len(log.starts), 1)
        self.assertEqual(log.restored, [])

    def test_a_broken_host_link_names_node_and_hca(self):
        hca = next(line.split('"')[1] for line in self.cluster.out("ibnetdiscover").splitlines()
                   if line.startswith("Ca") and '"n14 mlx5_5"' in line)
        self.cluster.link("down", hca, 1)
        incident = self.incident(lambda i: i["object"]["kind"] == "hca" and i["object"]["node"] == "n14")
        self.assertEqual(incident["object"]["hca"], "mlx5_5")
        self.cluster.link("up", hca, 1)
        self.incident(lambda i: i["id"] == incident["id"] and i["times"]["closed_ms"])

    # -- help --------------------------------------------------------------------------------------------------------------

    def checkpoints(self):
        folder = self.cluster.dir / "tmp" / self.id().rpartition(".")[2]
        folder.mkdir()
        return folder

    def incident(self, condition):
        def look():
            return next((i for i in json.loads(self.cluster.out("banyan-fault", "incidents", "--json")) if condition(i)), None)
        return self.cluster.wait_for(look, "the incident")

    def uplink(self):
        """(node id, port) of the first leaf's link to a spine."""
        leaf = None
        for line in self.cluster.out("ibnetdiscover").splitlines():
            if line.startswith("Switch"):
                leaf = line.split('"')[1] if "leaf" in line else None
            elif leaf and line.startswith("[") and "spine" in line:
                return leaf, int(line[1:line.index("]")])
        self.fail("the fabric has no uplink")


class Requeue(TrainingCase):
    """On a cluster of its own: Slurm 22.05 is slow to use a node again that was DOWN shortly before."""

    @needs_select("Slurm may choose wholly other nodes, and no plan names the former")
    def test_without_a_spare_the_job_is_requeued_at_once(self):
        reference = self.undisturbed()
        job = self.submit_unending(8)
        self.wait_step(job, 20)
        before = {rank: node for rank, (_, node) in self.ranks(job).items()}
        # Neither the batch host nor the last one.
        victim = sorted(set(before.values()))[4]
        self.cluster.kmsg(victim, XID_79)
        log = self.end(job)
        self.assert_losses(log, reference)
        self.assertEqual(self.cluster.job(job)["Restarts"], "1")
        after = {r["rank"]: r for r in log.restored}
        self.assertEqual({rank for rank, node in before.items() if after[rank]["node"] != node},
                         {rank for rank, node in before.items() if node == victim})
        self.assertNotIn("storage", {r["source"] for r in log.restored})

    @needs_select("no plan names the former nodes")
    def test_on_wholly_other_nodes_without_storage(self):
        """What it begins from is in the memory of nodes that are no longer its own, and the plan alone names these."""
        reference = self.undisturbed()
        job = self.submit_unending(8)
        self.wait_step(job, 20)
        before = {node for _, node in self.ranks(job).values()}
        counted = self.counted(job)
        self.cluster.run("scontrol", "update", f"nodename={','.join(sorted(before))}", "state=drain", "reason=service")
        self.addCleanup(self.cluster.run, "scontrol", "update", f"nodename={','.join(sorted(before))}", "state=resume", check=False)
        self.requeue_now(job)
        log = self.end(job)
        self.assert_losses(log, reference)
        self.assertEqual({r["source"] for r in log.restored}, {"peer"})
        self.assertFalse(before & {r["node"] for r in log.restored})
        self.assert_kept(job, counted)


if __name__ == "__main__":
    main()

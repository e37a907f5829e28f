# SPDX-License-Identifier: BSD-3-Clause
"""What the fault daemon does about a node that has to go, where more than one fault and a job are in it: a job without a plan, a
controller that ended in the middle, a slurmctld that does not answer, limits that hold it back; and a node that says nothing. What one
fault does to a job that trains: test/live/scenarios.py."""

import contextlib
import os
import signal
import sqlite3
import time
from pathlib import Path

from harness import main
from training import XID_79, TrainingCase
from trouble import Trouble

from banyan_cluster import parts
from banyan_demo import trainer_log

XID_95 = "NVRM: Xid (PCI:0000:13:00): 95, pid=77, name=python3, Uncontained: LTC TAG (0x2,0x1). RST: Yes, D-RST: No"


class LadderCase(TrainingCase):
    def setUp(self):
        super().setUp()
        self.trouble = Trouble(self.cluster)
        self.layout = self.trouble.layout
        self.addCleanup(self.trouble.return_nodes)

    # -- help --------------------------------------------------------------------------------------------------------------

    def incidents(self):
        return self.trouble.incidents()

    def incident(self, node, condition=lambda incident: True):
        """The newest one about the node."""
        def look():
            found = [i for i in self.incidents() if i["object"]["node"] == node and not i["times"]["closed_ms"]]
            return found[-1] if found and condition(found[-1]) else None
        return self.cluster.wait_for(look, f"the incident about {node}")

    def is_out(self, node):
        found = self.cluster.node(node)
        return "DRAIN" in {state.rstrip("*") for state in found["state"]} and found["reason"].startswith("banyan:")

    def start(self, nodes=9, spares=1, **options):
        """A job that trains, its nodes with ranks, and one of them without the script."""
        self.undisturbed()  # while there are nodes for it
        job = self.submit_unending(nodes, spares=spares, **options)
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        self.wait_step(job, 15)
        ranks = {node for _, node in self.ranks(job).values()}
        victim = sorted(ranks - {self.cluster.job(job)["BatchHost"]})[2]
        self.kept = self.counted(job)
        return job, ranks, victim

    def went_on_without(self, job, victim):
        """By a swap: no rank is on the victim any more, every other one kept its node, and the loss is as it should be."""
        reference = self.undisturbed()
        log = self.end(job)
        # A rank that is killed may not come to print what it has sealed.
        losses = trainer_log.losses(log)
        self.assertEqual({step: loss for step, loss in losses.items() if reference.get(step, loss) != loss}, {})
        self.assertIn(max(reference), losses)
        self.assertEqual(self.cluster.job(job)["Restarts"], "0")
        last = {r["rank"]: r["node"] for r in log.restored}
        self.assertEqual(len(last), 16, self.cluster.output(job))
        self.assertNotIn(victim, last.values())
        self.assert_kept(job, self.kept)
        return log


class Ladder(LadderCase):
    def test_a_job_without_a_plan_stays(self):
        """It may have no use for that GPU, and nobody would start its step again."""
        go = self.cluster.dir / "tmp" / "go-plain"
        job = self.cluster.sbatch("-N2", "--no-kill", "--requeue", script=f"until [ -e {go} ]; do sleep 0.1; done\n")
        self.cluster.wait_for_job(job, "RUNNING")
        victim = self.cluster.hosts(self.cluster.job(job)["NodeList"])[1]
        self.cluster.kmsg(victim, XID_95)
        found = self.incident(victim, lambda i: i["state"] == "done")
        self.assertIn(("job", f"job {job} was placed without a plan: the jobs of the node stay on it"),
                      [(action["what"], action["result"]) for action in found["actions"]])
        self.assertTrue(self.is_out(victim))
        self.assertIn(victim, self.cluster.hosts(self.cluster.job(job)["NodeList"]))
        go.touch()
        self.cluster.wait_for_job(job)
        self.assertEqual(self.cluster.job(job)["Restarts"], "0")

    # -- what ended or stood still in the middle -------------------------------------------------------------------------------

    def test_a_controller_that_ended_before_it_did_what_it_had_begun(self):
        """As the history of one has it: the number of the next incident, and that its node is being taken out."""
        self.trouble.end("faultd-controller")
        history = sqlite3.connect(self.cluster.dir / "incidents.db")
        number = (history.execute("SELECT max(number) FROM incidents").fetchone()[0] or 0) + 1
        history.execute("CREATE TABLE IF NOT EXISTS claims(incident INTEGER, what TEXT, target TEXT, at_ms INTEGER, "
                        "PRIMARY KEY(incident, what, target)) WITHOUT ROWID")
        history.execute("INSERT INTO claims VALUES(?, 'node_down', 'n15', 0)", (number,))
        history.commit()
        history.close()
        self.trouble.start_faultd()
        self.cluster.kmsg("n15", XID_79)
        self.incident("n15", lambda i: i["state"] == "done")
        self.assertTrue(self.is_out("n15"), self.cluster.node("n15")["text"])

    def test_a_controller_that_ended_while_it_looked_at_the_fabric(self):
        """What it had started to look goes on for a while, and must not keep the port."""
        pid = self.cluster.parts()["faultd-controller"]

        def look():
            for task in os.listdir(f"/proc/{pid}/task"):
                with contextlib.suppress(OSError):
                    for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split():
                        os.kill(int(child), signal.SIGSTOP)
                        return int(child)
            return None
        link = self.uplinks()[1]
        self.cluster.link("down", *link)
        self.addCleanup(self.cluster.link, "up", *link)
        looking = self.cluster.wait_for(look, "the controller looks at the fabric", pause=0.001)
        self.addCleanup(os.kill, looking, signal.SIGKILL)
        self.trouble.end("faultd-controller")
        self.trouble.start_faultd()

    # -- the fabric ------------------------------------------------------------------------------------------------------------

    def uplinks(self):
        """(node id, port) of each link of a leaf to a spine."""
        leaf, found = None, []
        for text in self.cluster.out("ibnetdiscover").splitlines():
            if text.startswith("Switch"):
                leaf = text.split('"')[1] if "leaf" in text else None
            elif leaf and text.startswith("[") and "spine" in text:
                found.append((leaf, int(text[1:text.index("]")])))
        return found


class Limits(LadderCase):
    """On a cluster of its own: what went out within the hour counts."""

    def test_what_was_held_back_is_done_later(self):
        """Half of the nodes may go within the hour; the next one opens the breaker."""
        names = self.layout.node_names[:9]
        for name in names[:8]:
            self.cluster.kmsg(name, XID_79)
        for name in names[:8]:
            self.cluster.wait_for(lambda name=name: self.is_out(name), f"{name} is out")
        self.cluster.kmsg(names[8], XID_79)
        self.incident(names[8], lambda i: i["state"] == "held")
        self.assertEqual(self.cluster.node(names[8])["reason"], "")
        self.assertIn("open: no node is taken out", self.cluster.out("banyan-fault", "status"))
        self.cluster.run("banyan-fault", "reset-breaker")
        # A node that is back no longer counts, however often it goes.
        self.cluster.run("banyan-fault", "resume", names[0])
        self.cluster.wait_for(lambda: self.is_out(names[8]), "the node that was held back is out")
        self.cluster.run("banyan-fault", "resume", names[8])
        self.cluster.kmsg(names[0], XID_79)
        self.cluster.wait_for(lambda: self.is_out(names[0]), "the one that was back goes out again")

    def test_an_administrator_rules_on_what_is_held_back(self):
        names = self.layout.node_names[:9]
        for name in names:
            self.cluster.kmsg(name, XID_79)
        self.cluster.wait_for(lambda: {i["object"]["node"] for i in self.incidents() if i["state"] in ("done", "held")} >= set(names),
                              "all were judged")
        found = self.cluster.wait_for(lambda: next((i for i in self.incidents() if i["state"] == "held"), None), "one is held back")
        held, victim = found["id"], found["object"]["node"]
        self.assertEqual(self.cluster.run("banyan-fault", "retry", held, check=False).returncode, 3)
        self.cluster.run("banyan-fault", "cancel", held)
        # With room again the controller takes it out no more.
        for name in names:
            self.cluster.run("banyan-fault", "resume", name, check=False)
        self.cluster.run("banyan-fault", "reset-breaker")
        other = next(name for name in names if name != victim)
        self.cluster.kmsg(other, XID_79)
        self.cluster.wait_for(lambda: self.is_out(other), "another goes out")
        self.assertFalse(self.is_out(victim))
        self.cluster.run("banyan-fault", "approve", held)
        self.cluster.wait_for(lambda: self.is_out(victim), "what was approved is done")
        story = self.cluster.out("banyan-fault", "explain", held)
        for words in ("cancel", "approve", "by uid 0", "rule      restart"):
            self.assertIn(words, story)


class Away(LadderCase):
    """On a cluster of its own: what slurmctld had not saved is lost with it."""
    nodes = 4

    def test_a_slurmctld_that_is_away_for_a_while(self):
        self.trouble.end("slurmctld")
        self.cluster.kmsg("n04", XID_79)
        self.incident("n04", lambda i: i["state"] == "held")
        parts.start_slurmctld(self.layout)
        self.cluster.wait_for(lambda: self.is_out("n04"), "the node is out")
        self.incident("n04", lambda i: i["state"] == "done")

    def test_a_node_is_returned_before_it_has_registered(self):
        """With a slurmctld that was started again: Slurm has it in service then, and calls that an error."""
        self.cluster.kmsg("n03", XID_79)
        self.incident("n03", lambda i: i["state"] == "done")
        self.cluster.wait_for(lambda: {"IDLE", "DRAIN"} <= set(self.cluster.node("n03")["state"]), "n03 answers, and is out")
        self.trouble.end("slurmd-n03")
        self.trouble.end("slurmctld", signal.SIGTERM)  # what it knows of the node is saved
        parts.start_slurmctld(self.layout)
        self.cluster.wait_for(lambda: "UNKNOWN" in self.cluster.node("n03")["state"][0], "n03 has not registered")
        self.cluster.run("banyan-fault", "resume", "n03")
        self.assertEqual([i["id"] for i in self.incidents() if i["object"]["node"] == "n03" and not i["times"]["closed_ms"]], [])
        parts.start_slurmd(self.layout, "n03")
        self.cluster.wait_for(lambda: self.cluster.node("n03")["state"] == ["IDLE"], "n03 is in service")


class Silence(LadderCase):
    """A node that says nothing any more, and what only looks like one."""

    def setUp(self):
        super().setUp()
        self.earlier = {i["id"] for i in self.incidents()}

    def about(self, *nodes):
        """What this test has brought about."""
        return [i for i in self.incidents() if i["object"]["node"] in nodes and i["id"] not in self.earlier]

    def says(self, words):
        log = self.cluster.dir / "log" / "faultd-controller.log"
        self.cluster.wait_for(lambda: words in log.read_text(errors="replace"), f"the controller says: {words}")

    def test_a_node_that_dies(self):
        job, _, victim = self.start()
        at = time.time()
        self.trouble.power_off(victim)
        found = self.incident(victim)
        self.went_on_without(job, victim)
        found = self.incident(victim, lambda i: i["state"] == "done")
        self.assertEqual((found["reason"], found["object"]["kind"], found["jobs"]), ("node-silent", "node", [job]))
        print(f"noticed {found['times']['incident_ms'] / 1000 - at:.1f} s after its death, "
              f"out {found['times']['node_out_ms'] / 1000 - at:.1f} s", flush=True)
        # When it is back, Slurm has it again, and the incident is over.
        parts.start_slurmd(self.layout, victim)
        self.trouble.start_agent(victim)
        self.cluster.wait_for(lambda: self.cluster.node(victim)["state"] == ["IDLE"], f"{victim} is back")
        self.assertTrue(next(i for i in self.incidents() if i["id"] == found["id"])["times"]["closed_ms"])

    def test_an_agent_that_is_away(self):
        os.kill(self.cluster.parts()["faultd-n02"], signal.SIGKILL)
        self.says("the agent of n02 is gone: the node answers")
        self.trouble.start_agent("n02")
        self.assertEqual(self.about("n02"), [])

    def test_an_agent_and_a_slurmd_that_are_away_while_a_job_trains(self):
        """As while packages are changed. The checkpoint daemon of the node is there."""
        reference = self.undisturbed()
        job, _, victim = self.start()
        for part in ("faultd", "slurmd"):
            os.kill(self.cluster.parts()[f"{part}-{victim}"], signal.SIGKILL)
        self.says(f"the agent of {victim} is gone: the node answers")
        parts.start_slurmd(self.layout, victim)
        self.trouble.start_agent(victim)
        self.stop.touch()
        log = self.wait_finished(job)
        self.assertEqual(len(log.starts), 1)
        self.assert_losses(log, reference)
        self.assertEqual(self.about(victim), [])

    def test_more_agents_than_can_be_judged(self):
        """With their slurmds: from here it looks as if the controller had no network."""
        names = self.layout.node_names[8:14]
        for name in names:
            os.kill(self.cluster.parts()[f"slurmd-{name}"], signal.SIGKILL)
        for name in names:
            os.kill(self.cluster.parts()[f"faultd-{name}"], signal.SIGKILL)
        for name in names:
            self.says(f"the agent of {name} is gone: with too many others to judge any of them")
        for name in names:
            parts.start_slurmd(self.layout, name)
            self.trouble.start_agent(name)
        self.assertEqual(self.about(*names), [])


if __name__ == "__main__":
    main()

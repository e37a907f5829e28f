# SPDX-License-Identifier: BSD-3-Clause
"""One scenario on a lab: its moves, and what came of them."""

import collections
import time

from recovery_lab import ENDED, RANKS, SETTLED, now_ms

from banyan_demo import trainer_log

LIMIT_S = 180  # until all is as it should be
TAKEN_OUT = ("down", "drain")


class Run:
    """One scenario on the lab."""

    def __init__(self, lab, scenario, stage):
        self.lab, self.scenario, self.stage = lab, scenario, stage
        self.job = stage.job
        self.earlier = {i["id"] for i in lab.trouble.incidents()}
        log = lab.log(self.job.job)
        self.replayed_before, self.starts_before = log.replayed, len(log.starts)
        self.before = {rank: node for rank, (_, node) in lab.ranks(self.job.job).items()}
        self.undo, self.seen = [], []

    def play(self):
        self.first_ms = now_ms()
        for move, *words in self.scenario.faults:
            named = words.pop() if words and isinstance(words[-1], dict) else {}
            undo = move(self.stage, *words, **named)
            if undo:
                self.undo.append(undo)
        self.last_ms = now_ms()

    # -- what came of it ---------------------------------------------------------------------------------------------------

    def node(self, part):
        return "" if part == "-" else self.stage.roles[part]

    def expected(self):
        return collections.Counter((kind, self.node(part), reason, action) for kind, part, reason, action in self.scenario.culprits)

    def blamed(self):
        """The incidents since, with what was done about each."""
        found = collections.Counter()
        for incident in self.lab.trouble.incidents():
            # Which task of a job failed is a note on the job (test_job_ends), and accuses no part.
            if incident["id"] in self.earlier or incident["reason"] == "job-failed":
                continue
            done = {a["what"] for a in incident["actions"] if a["result"].startswith("done")}
            action = "down" if "node_down" in done else "drain" if "node_drain" in done else incident.get("asked", "nothing")
            where = incident["object"]["node"] if incident["object"]["kind"] not in ("link", "manager") else ""
            if incident["object"]["kind"] == "switch" and not any(where == node for node in self.lab.trouble.layout.node_names):
                where = ""
            found[(incident["object"]["kind"], where, incident["reason"], action if incident["state"] == "done" else incident["state"])] += 1
        return found

    def incomplete(self):
        """What the incidents since do not say: the job that had the node when it broke, and where it is known from."""
        new = [i for i in self.lab.trouble.incidents() if i["id"] not in self.earlier]
        found, first = [], {i["object"]["node"]: i for i in reversed(new)}
        for node in set(self.before.values()) & set(first):
            about_jobs = first[node]["reason"] in ("gpu-app", "job-nccl", "job-memory") or first[node].get("asked") in TAKEN_OUT
            if about_jobs and self.job.job not in first[node]["jobs"]:
                found.append(f"incident {first[node]['id']} about {node} has jobs {first[node]['jobs']}")
        known = {line["source"] for i in new for line in i["evidence"]}
        return found + [f"no evidence from {source}" for source in set(self.scenario.sources) - known]

    def gone(self):
        """Nodes that have to be out of service."""
        parts = {part for _, part, _, action in self.scenario.culprits if action in TAKEN_OUT} | set(self.scenario.also_out)
        return {self.stage.roles[part] for part in parts - set(self.scenario.back)}

    def way(self, log, fields):
        """How the job goes on, as far as it does."""
        state = fields.get("JobState", "gone")
        if state in ENDED:
            return "stopped" if "is not started again" in self.lab.cluster.output(self.job.job) and state == "FAILED" else f"ended: {state}"
        ranks = {rank: node for rank, (_, node) in self.lab.ranks(self.job.job).items()}
        since = max([self.last_ms, *log.starts[-1:]]) if len(log.starts) > self.starts_before else self.last_ms
        if len(ranks) != RANKS or len([at for _, at in log.step_times if at > since]) < SETTLED:
            return "stands still"
        if set(ranks.values()) & self.gone():
            return "trains on a broken node"
        if int(fields.get("Restarts", 0)):
            return "requeue"
        if ranks == self.before:
            return "in place" if len(log.starts) > self.starts_before else "untouched"
        return "swap"

    def wrong(self):
        """What is not as it should be; nothing when all is."""
        found = []
        blamed, expected = self.blamed(), self.expected()
        found += [f"no incident {key}" for key in (expected - blamed)] + [f"incident {key} is not expected" for key in (blamed - expected)]
        out, gone = self.lab.out_of_service(), self.gone()
        found += [f"{node} is in service" for node in sorted(gone - out)] + [f"{node} is out of service" for node in sorted(out - gone)]
        found += self.incomplete()
        log, fields = self.lab.log(self.job.job), self.lab.cluster.job(self.job.job)
        way = self.way(log, fields)
        if way != self.scenario.outcome:
            found.append(f"the job: {way}")
        self.seen = sorted(" ".join(key) for key in blamed)
        self.way_seen = way
        self.lost = log.replayed - self.replayed_before
        losses = trainer_log.losses(log)
        self.same = bool(losses) and all(self.lab.reference.get(step) == bits for step, bits in losses.items())
        started = [at for at in log.starts if at > self.first_ms]
        first = [at for _, at in log.step_times if started and at > started[-1]]
        self.first_step_s = round((min(first) - self.first_ms) / 1000, 2) if first else None
        return found

    def judge(self):
        end, found = time.monotonic() + LIMIT_S, self.wrong()
        while found and time.monotonic() < end:
            if self.way_seen.startswith("ended"):
                break
            time.sleep(0.5)
            found = self.wrong()
        if not self.same:
            found.append("the loss differs")
        if self.lost > self.scenario.lost:
            found.append(f"{self.lost} steps were lost")
        return found

# SPDX-License-Identifier: BSD-3-Clause
"""A job without --train options is placed by cons_tres_banyan exactly as by cons_tres: the same script of jobs with mixed options goes
to two slurmctlds, one with each, and every job has the same nodes, cores, memory and GPUs on both after every pass of the scheduler.

Once with the main scheduler alone and once with backfill alone. BANYAN_EQUALITY_JOBS sets the number of jobs of both together,
BANYAN_EQUALITY_SEED the dice.
"""

import collections
import concurrent.futures
import os
import random
import re
import unittest

import harness
from job_mix import JobMix
from lone_controller import RUNNING, LoneController, state_of

# jobs of the two comparisons together, and of the mix with training jobs
JOBS = int(os.environ.get("BANYAN_EQUALITY_JOBS", "500"))
MIXED = int(os.environ.get("BANYAN_EQUALITY_MIXED", "150"))
SEED = int(os.environ.get("BANYAN_EQUALITY_SEED", "20261121"))
WAVE = 25    # submissions between two passes of the scheduler
ROUNDS = 4   # passes for each wave
ENDED = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "PREEMPTED", "NODE_FAIL", "DEADLINE")


class Script:
    """One script of jobs, played on one controller or on several in step."""

    def __init__(self, seed, jobs, controllers, het, train_share=0.0):
        self.controllers = controllers
        self.dice = random.Random(seed + 1)
        self.mix = JobMix(seed, controllers[0].names, het, train_share)
        self.jobs = jobs
        self.numbers = []     # by submission: the job number, None when refused or only tested
        self.submissions = []
        self.placed = set()   # names of jobs and array tasks that had nodes at some time
        self.answers = 0      # of --test-only
        self.refused = 0
        self.seen = lambda name, options, job: None  # called for every job that has nodes

    def on_all(self, function):
        """function(controller) on each at once; the results must be alike, and one of them is returned."""
        with concurrent.futures.ThreadPoolExecutor(len(self.controllers)) as pool:
            return list(pool.map(function, self.controllers))

    def play(self, check):
        self.on_all(self.reserve)
        while len(self.submissions) < self.jobs:
            count = min(WAVE, self.jobs - len(self.submissions))
            wave = [self.mix.submission() for _ in range(count)]
            self.on_all(lambda controller: controller.gate("shut"))
            self.agree(check, self.on_all(lambda controller: self.submit(controller, wave)), wave)
            for _ in range(ROUNDS - 1):
                self.pass_and_compare(check)
                self.end_some()
            self.pass_and_compare(check)
            tests = [one for one in wave if one.test_only]
            answers = self.on_all(lambda controller: [self.test_only(controller, one) for one in tests])
            for one, *said in zip(tests, *answers):
                check(f"--test-only {' '.join(one.options)}", *said)
                self.answers += 1
            self.end_some()

    def drain(self, check):
        """Ends what runs until nothing is left. Returns the jobs that never get nodes."""
        while True:
            self.pass_and_compare(check)
            running = [name for name, job in self.latest.items() if state_of(job) in RUNNING]
            waiting = [name for name, job in self.latest.items() if state_of(job) not in (*RUNNING, *ENDED)]
            if not running:
                return waiting
            self.on_all(lambda controller: controller.gate("shut"))
            self.cancel(running)

    def reserve(self, controller):
        common = ["Users=root", "StartTime=now", "Duration=10-0", "Flags=IGNORE_JOBS"]
        controller.must("scontrol", "create", "reservation", "ReservationName=hosts", f"Nodes={','.join(controller.names[-3:])}", *common)
        controller.must("scontrol", "create", "reservation", "ReservationName=count", "NodeCnt=4", *common)

    def submit(self, controller, wave):
        base = len(self.submissions)
        numbers = list(self.numbers)
        said = []
        for offset, one in enumerate(wave):
            if one.test_only:
                number, text = None, ""
            else:
                number, text = controller.sbatch(*self.resolve(one, numbers))
                if one.cancel and number and offset % 2:
                    controller.must("scancel", number)
            numbers.append(number)
            said.append((number, text))
        assert len(numbers) == base + len(wave)
        return said

    def resolve(self, one, numbers):
        options = list(one.options)
        if one.after and numbers[one.after[1]]:
            options.append(f"--dependency={one.after[0]}:{numbers[one.after[1]]}")
        return options

    def agree(self, check, said, wave):
        for one, *answers in zip(wave, *said):
            check(f"submitting {' '.join(one.options)}", *answers)
            self.refused += answers[0][0] is None and not one.test_only
            self.numbers.append(answers[0][0])
            self.submissions.append(one)

    def test_only(self, controller, one):
        """What --test-only says, without the time of the answer."""
        status, text = controller.run("sbatch", "--test-only", *one.options, controller.script)
        head, _, tail = text.partition(" to start at ")
        return status, head if not tail else f"{head} {tail.partition(' ')[2]}"

    def pass_and_compare(self, check):
        self.on_all(lambda controller: controller.gate("open"))
        seen = self.on_all(lambda controller: controller.settle())
        self.latest = seen[0]
        numbers = {str(number): index for index, number in enumerate(self.numbers) if number}
        for name in sorted(set().union(*seen), key=lambda n: [int(part) for part in n.split("_")]):
            index = numbers.get(name.partition("_")[0])
            options = " ".join(self.submissions[index].options) if index is not None else "a later component of a heterogeneous job"
            check(f"job {name} ({options})", *(self.placing(jobs.get(name)) for jobs in seen))
            if state_of(seen[0][name]) in RUNNING:
                self.placed.add(name)
                self.seen(name, options, seen[0][name])

    @staticmethod
    def placing(job):
        return job and {key: job.get(key) for key in ("JobState", "NodeList", "Partition", "BatchHost", "cores")}

    def end_some(self):
        """Ends half of what runs and what was to be cancelled, behind a shut gate, and the two first in the queue: one that can never
        start would hold all others for ever under the main scheduler."""
        jobs = self.latest
        running = [name for name, job in jobs.items() if state_of(job) in RUNNING]
        pending = {name: job for name, job in jobs.items() if state_of(job) == "PENDING" and not job["Dependency"].strip("(null)")}
        chosen = self.dice.sample(running, (len(running) + 1) // 2)
        chosen += sorted(pending, key=lambda name: -int(pending[name]["Priority"]))[:2]
        chosen += [str(number) for one, number in zip(self.submissions, self.numbers) if one.cancel and str(number) in pending]
        self.on_all(lambda controller: controller.gate("shut"))
        self.cancel(chosen)

    def cancel(self, names):
        # A component of a heterogeneous job goes with its leader.
        leaders = [self.latest[name].get("HetJobId", name) for name in names]
        for leader in dict.fromkeys(leaders):
            self.on_all(lambda controller: controller.must("scancel", leader))

    def report(self, title):
        counts = collections.Counter(tag for one in self.submissions for tag in one.tags)
        ever = sum(1 for name in self.latest if name in self.placed)
        return (f"{title}: {len(self.submissions)} submissions, {self.refused} refused, {self.answers} answers of --test-only, "
              f"{len(self.latest)} jobs and array tasks, {ever} of them had nodes\n  " + ", ".join(f"{count} {tag}" for tag, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))))


def on_controllers(*arguments, then):
    """Brings up LoneController(*one) for each, passes them on, and removes them."""
    up = []
    try:
        for one in arguments:
            up.append(LoneController(*one))
            up[-1].up()
        return then(up)
    finally:
        for controller in up:
            controller.remove()


class Differs(AssertionError):
    pass


def same(what, *answers):
    if any(answer != answers[0] for answer in answers):
        raise Differs(f"seed {SEED}: {what}: differs\n  cons_tres:        {answers[0]}\n  cons_tres_banyan: {answers[-1]}")


def compare(scheduler, jobs, seed):
    """Plays one script on both select plugins. Returns the script and what our plugins reported."""
    def play(controllers):
        script = Script(seed, jobs, controllers, het=scheduler == "backfill")
        try:
            script.play(same)
            script.drain(same)
        finally:
            print(script.report(f"{scheduler} scheduler"), flush=True)
        return script, controllers[1].complaints()
    return on_controllers(("cons_tres", scheduler), ("cons_tres_banyan", scheduler), then=play)


def mixed(jobs, seed):
    """Plays a script with training jobs on cons_tres_banyan alone. Returns what compare() does, the jobs that never end, and what is odd
    about the plans."""
    def nothing_to_compare(_what, *_answers):
        pass

    def play(controllers):
        script = Script(seed, jobs, controllers, het=True, train_share=0.5)
        odd = []

        def look(name, options, job):
            odd.extend(f"job {name} ({options}): {text}" for text in oddities(controllers[0], options, job))
        script.seen = look
        try:
            script.play(nothing_to_compare)
            left = [script.latest[name]["line"] for name in script.drain(nothing_to_compare)]
        finally:
            print(script.report("with training jobs"), flush=True)
        return script, controllers[0].complaints(), left, odd
    return on_controllers(("cons_tres_banyan", "backfill"), then=play)


def oddities(controller, options, job):
    """What is wrong with the line that says how a job with nodes was placed."""
    told = re.search(r" AdminComment=banyan: (\S+) nodes=(\d+) ranks=\d+ spares=(\d+)(?:\((\S+)\))? groups=(\S+)", job["line"])
    if "--train-parallel" not in options:
        return [f"is no training job, but says {told.group(0)}"] if told else []
    if not told:
        return ["has no plan"]
    shape, nodes, spares, spare_names, groups = told.groups()
    held = controller.hosts(job["NodeList"])
    in_groups = sum(int(group.partition(":")[2]) for group in groups.split(","))
    wrong = []
    if f"--train-parallel={shape}" not in options.split():
        wrong.append(f"is placed as {shape}")
    if int(nodes) + int(spares) != len(held) or int(nodes) != in_groups:
        wrong.append(f"has {len(held)} nodes, but the plan {told.group(0)}")
    if not set(controller.hosts(spare_names)) <= set(held):
        wrong.append(f"has {job['NodeList']}, but spares {spare_names}")
    return wrong


class Equality(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # At once: most of their time is waiting for the scheduler's next pass.
        pool = concurrent.futures.ThreadPoolExecutor(3)
        cls.addClassCleanup(pool.shutdown)
        cls.main = pool.submit(compare, "main", JOBS // 2, SEED)
        cls.backfill = pool.submit(compare, "backfill", JOBS - JOBS // 2, SEED + 100)
        cls.mixed = pool.submit(mixed, MIXED, SEED + 200)

    def check(self, future):
        script, complaints = future.result()
        self.assertGreater(len(script.placed), len(script.latest) / 3, "few of these jobs ever had nodes: the script tests too little")
        self.assertEqual(complaints, [])

    def test_main_scheduler(self):
        self.check(self.main)

    def test_backfill(self):
        self.check(self.backfill)

    def test_train_jobs_among_others(self):
        """With training jobs mixed in every job still gets its turn, and each training job has its plan on exactly the nodes it got."""
        script, complaints, left, odd = self.mixed.result()
        self.assertGreater(len(script.placed), len(script.latest) / 3, "few of these jobs ever had nodes: the script tests too little")
        self.assertEqual(left, [])
        self.assertEqual(odd, [])
        self.assertEqual(complaints, [])


if __name__ == "__main__":
    harness.main()

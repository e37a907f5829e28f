# SPDX-License-Identifier: BSD-3-Clause
"""Tasks of a training step that fail are one incident of their job, which does nothing; tasks that Slurm ends are none. What banyan-run
gives up stands in it, too."""

import json

from harness import ClusterCase, main


class JobEnds(ClusterCase):
    nodes = 3
    options = ("--group-size", 4, "--gpus", 4)

    def incidents(self, job):
        return json.loads(self.cluster.out("banyan-fault", "incidents", "--json", "--job", job))

    def train(self, script, *options):
        job = self.cluster.sbatch("-wn02,n03", "-N2", "--ntasks-per-node=2", "--train-parallel=tp=2,dp=2", *options, script=script)
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        return job

    def told(self, job, what):
        """The job's one incident, when a line of its evidence has that."""
        def found():
            kept = self.incidents(job)
            if not kept or kept[0]["state"] != "done":
                return None
            whole = json.loads(self.cluster.out("banyan-fault", "explain", "--json", kept[0]["id"]))
            return (kept, whole) if any(what in line["text"] for line in whole["evidence"]) else None
        kept, whole = self.cluster.wait_for(found, f"job {job} has an incident with {what}")
        self.assertEqual(len(kept), 1)
        return whole

    def test_a_task_that_fails_accuses_its_job_alone(self):
        job = self.train("srun --kill-on-bad-exit=1 bash -c 'if [ $RANK = 2 ]; then exit 9; fi; sleep 600'\n")
        whole = self.told(job, f"step {job}.0, rank 2: exit code 9")
        self.assertEqual((whole["reason"], whole["symptom"], whole["rule"]), ("job-failed", "job-failed", "job-failed"))
        self.assertEqual(whole["jobs"], [job])
        self.assertEqual(whole["actions"], [])
        # The ranks that srun ended for it say nothing.
        self.cluster.wait_for(lambda: self.cluster.job(job)["JobState"] == "FAILED", "the job has ended")
        whole = self.told(job, "rank 2: exit code 9")
        self.assertEqual([line["text"] for line in whole["evidence"]], [f"step {job}.0, rank 2: exit code 9"])
        for node in ("n02", "n03"):
            self.assertEqual(self.cluster.node(node)["reason"], "")

    def test_a_signal_is_a_crash(self):
        job = self.train("srun --kill-on-bad-exit=1 bash -c 'if [ $RANK = 1 ]; then kill -BUS $$; fi; sleep 600'\n")
        whole = self.told(job, f"step {job}.0, rank 1: signal 7 (SIGBUS)")
        self.assertEqual((whole["symptom"], whole["rule"]), ("job-crashed", "application"))

    def test_what_banyan_run_gives_up_stands_in_the_jobs_incident(self):
        job = self.train("banyan-run --max-idle-restarts=1 bash -c 'if [ $RANK = 3 ]; then sleep 3; exit 7; fi; sleep 600'\n", "--train-ckpt=every=1")
        whole = self.told(job, f"job {job}: banyan-run says: step {job}.1 ended with code ")
        texts = " ".join(line["text"] for line in whole["evidence"])
        for step in (0, 1):
            self.assertIn(f"step {job}.{step}, rank 3: exit code 7", texts)

    def test_so_does_an_error_of_the_programs_own(self):
        job = self.train("banyan-run python3 -c undefined_name\n", "--train-ckpt=every=1")
        self.told(job, f"job {job}: banyan-run says: step {job}.0 ended with code 1 after 0 restarts: the program ended itself: rank")
        self.told(job, "the first error was NameError: name 'undefined_name' is not defined")

    def test_a_step_without_training_and_a_cancelled_job_say_nothing(self):
        plain = self.cluster.sbatch("-wn01", "-N1", script="srun false\n")
        cancelled = self.train("srun bash -c 'touch began-$SLURM_JOB_ID; sleep 600'\n")
        self.cluster.wait_for(lambda: self.cluster.job(plain)["JobState"] == "FAILED", "the plain job has ended")
        self.cluster.wait_for(lambda: self.cluster.out("squeue", "--steps", "-h", "-j", cancelled, "-o", "%i"), "the other has a step")
        self.cluster.run("scancel", cancelled)
        self.cluster.wait_for(lambda: self.cluster.job(cancelled)["JobState"] == "CANCELLED", "it is cancelled")
        # What is told comes in order: a later failure on the same nodes is heard, and those are not.
        later = self.train("srun --kill-on-bad-exit=1 bash -c 'exit 3'\n")
        self.told(later, "exit code 3")
        self.assertEqual(self.incidents(plain) + self.incidents(cancelled), [])


if __name__ == "__main__":
    main()

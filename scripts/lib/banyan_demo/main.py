#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""scripts/demo after set-up and build: brings the cluster up, plays the acts, prints the timeline, ends everything."""

import argparse
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(REPOSITORY / "scripts/lib"))

from banyan_cluster import layout, process  # noqa: E402
from banyan_demo import trainer_log  # noqa: E402
from banyan_demo.figures import Figures  # noqa: E402
from banyan_demo.story import SHAPE, VICTIM_GPU, DemoError, Story  # noqa: E402


def parse(arguments):
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__)
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE")
    parser.add_argument("--dir", type=os.path.abspath, default=str(layout.default_directory("demo")),
                        help="the cluster's directory (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=160, help="training steps (default 160)")
    parser.add_argument("--step-ms", type=int, default=50, help="time of a training step (default 50 ms)")
    parser.add_argument("--keep", action="store_true", help="leave the cluster running, to look around in it")
    return parser.parse_args(arguments)


def cluster(*words):
    subprocess.run([REPOSITORY / "scripts/cluster", *map(str, words)], check=True)


def heading(text):
    print(f"\n== {text}", flush=True)


def act_discover(story):
    heading("Discover: ibnetdiscover asks the subnet manager's fabric, banyan-topo reads it")
    print(story.tool("banyan-topo", "show", story.cluster / "fabric.snapshot").rstrip())


def act_reference(story):
    heading(f"An undisturbed run first: {SHAPE}, 8 nodes, {story.steps} steps of {story.step_ms} ms")
    job, log = story.submit("undisturbed", nodes=8, spares=0)
    done = story.wait_end(job, log)
    last = max(done.steps)
    print(f"job {job}: {len(done.steps)} steps, loss of step {last} has the bits {done.steps[last][0]}")
    return done


def act_place(story):
    job, log = story.submit("main", nodes=9, spares=1)
    story.wait_step(log, 1)
    heading(f"Place: job {job}, sbatch -N 9 --train-parallel={SHAPE} --train-spares=1")
    record = story.record(job)
    print(record["AdminComment"])
    nodes = re.search(r"(?:^| )NodeList=(\S+)", " ".join(f"{k}={v}" for k, v in record.items())).group(1)
    print(story.tool("banyan-topo", "draw", story.cluster / "fabric.snapshot", "--nodes", nodes, "--shape", SHAPE,
                     "--spares", 1).rstrip())
    return job, log


def act_process_fault(story, job, log):
    story.wait_step(log, story.steps // 5)
    at = story.kill_ranks(job)
    before = max(trainer_log.read(log).steps)
    story.note(at, "kill -9 of all 16 ranks (nodes healthy)")
    wait_restore(story, log, count=16)
    read = trainer_log.read(log)
    restored = [r for r in read.restored if r["at"] > at]
    note_restore(story, restored, at)
    return at, before


def act_fabric_faults(story):
    leaf, port, spine = first_uplink(story)
    at = story.link("down", leaf, port)
    link = story.incident(lambda i: i["object"]["kind"] == "link" and i["times"]["line_ms"] >= at - 50, "leaf-spine link")
    story.note(at, f"a leaf-spine cable is pulled ({leaf} port {port})")
    story.note(link["times"]["incident_ms"], f"faultd [{link['id']}]: {link['cause']}; jobs left alone")
    story.link("up", leaf, port)
    hca, node = "H-" + host_hca(story, "n16", 2), "n16"
    at2 = story.link("down", hca, 1)
    host = story.incident(lambda i: i["object"]["kind"] == "hca" and i["object"]["node"] == node, "host link")
    story.note(at2, "a host cable is pulled (n16 mlx5_2)")
    story.note(host["times"]["incident_ms"], f"faultd [{host['id']}]: {host['cause']}")
    story.link("up", hca, 1)
    return link["times"]["incident_ms"] - at, host["times"]["incident_ms"] - at2


def act_gpu_fault(story, job, log):
    # Not the batch host: the script of the job runs there, and dies with it.
    nodes = sorted({r["node"] for r in trainer_log.read(log).restored})
    victim = nodes[3]
    now_step = max(trainer_log.read(log).steps)
    story.wait_step(log, max(now_step + 5, story.steps // 2))
    starts = len(trainer_log.read(log).starts)
    at = story.gpu_falls_off(victim)
    story.note(at, f"NVRM line in {victim}'s kernel log: Xid 79, GPU {VICTIM_GPU} fell off the bus")
    incident = story.incident(lambda i: i["object"]["kind"] == "gpu" and i["times"].get("node_out_ms"), "the GPU")
    times = incident["times"]
    story.note(times["incident_ms"], f"faultd [{incident['id']}]: {incident['cause']}, job {job}")
    if times.get("sealed_ms"):
        story.note(times["sealed_ms"], "newest step sealed and replicated")
    story.note(times["node_out_ms"], f"{victim} is DOWN and out of the job")
    wait_restore(story, log, count=16, after=at)
    read = trainer_log.read(log)
    restored = [r for r in read.restored if r["at"] > times["node_out_ms"]]
    note_restore(story, restored, at)
    if len(read.starts) <= starts:
        raise DemoError("the trainer did not start again")
    return victim, at, incident


def wait_restore(story, log, count, after=None):
    from banyan_demo.story import now_ms, wait_for
    since = after if after is not None else now_ms() - 1000

    def seen():
        read = trainer_log.read(log)
        fresh = [r for r in read.restored if r["at"] > since]
        return len(fresh) >= count and any(at > fresh[-1]["at"] for _, at in read.step_times)
    wait_for(f"{count} ranks restored and training again", seen, 60)


def note_restore(story, restored, at):
    by_source = {}
    for one in restored:
        by_source.setdefault(one["source"], [0, 0])
        by_source[one["source"]][0] += 1
        by_source[one["source"]][1] += one["bytes"]
    names = {"local": "local memory", "peer": "their buddies' memory"}
    text = ", ".join(f"{n} ranks from {names.get(source, source)} ({size / 1048576:.1f} MiB)"
                     for source, (n, size) in sorted(by_source.items()))
    story.note(max(r["at"] for r in restored), f"step {restored[0]['step']} restored: {text}")


def first_uplink(story):
    """(leaf's node id, port, spine's name) of one leaf-spine link, from the fabric as it was discovered."""
    text = story.tool("ibnetdiscover")
    leaf = None
    for line in text.splitlines():
        head = re.match(r'Switch\s+\d+ "(S-[0-9a-f]+)"\s+# "([^"]*)"', line)
        if head:
            leaf = head.group(1) if "leaf" in head.group(2) else None
        up = re.match(r'\[(\d+)\]\s+"S-[0-9a-f]+"\[\d+\].*# "([^"]*spine[^"]*)"', line)
        if leaf and up:
            return leaf, int(up.group(1)), up.group(2)
    raise DemoError("the fabric has no leaf-spine link")


def host_hca(story, node, rail):
    found = re.search(rf'^Ca\s+\d+ "H-([0-9a-f]+)"\s+# "{node} mlx5_{rail}"', story.tool("ibnetdiscover"), re.M)
    if not found:
        raise DemoError(f"{node} mlx5_{rail} is not on the fabric")
    return found.group(1)


def print_timeline(story, origin):
    heading("Timeline (ms after the job's first training step)")
    last = None
    for at, text in sorted(story.events):
        gap = "" if last is None else f"+{at - last:.0f}"
        print(f"  {at - origin:9.0f}  {gap:>7}  {text}")
        last = at


def measure(story, job, log, reference, act):
    """The figures, from what the programs themselves wrote down."""
    figures = Figures()
    done = trainer_log.read(log)
    incident, line_ms = act["incident"], act["line_ms"]
    before = max(step for step, at in done.step_times if at <= line_ms)
    resumed = [r for r in done.restored if r["at"] > incident["times"]["node_out_ms"]]
    # The old step may print a last line while it is being killed: the new one's first comes after the restore.
    first_after = min(at for step, at in done.step_times if at > max(r["at"] for r in resumed))
    lost = before - resumed[0]["step"]
    storage = sum(r["bytes"] for r in resumed if r["source"] == "storage")
    same = trainer_log.losses(done) == trainer_log.losses(reference)
    figures.below("log line to incident", incident["times"]["incident_ms"] - line_ms, "ms", 100)
    figures.below("log line to node out of the job", incident["times"]["node_out_ms"] - line_ms, "ms", 1000)
    figures.below("log line to the first step of the new run", first_after - line_ms, "ms", 5000)
    figures.at_most("training steps lost to the node's fault", max(lost, 0), "steps", 1)
    figures.at_most("bytes read from storage at the swap", storage, "B", 0)
    figures.add("bytes from local memory at the swap", sum(r["bytes"] for r in resumed if r["source"] == "local"), "B", "swap")
    figures.add("bytes from the buddies' memory at the swap", sum(r["bytes"] for r in resumed if r["source"] == "peer"), "B", "swap")
    figures.add("loss curve equals the undisturbed run, bit for bit", int(same), "bool", "undisturbed run", "= 1", same)
    figures.add("leaf-spine link broken to incident", act["link_ms"], "ms", "console command")
    figures.add("host link broken to incident", act["host_ms"], "ms", "console command")
    gaps = [b[1] - a[1] for a, b in zip(reference.step_times, reference.step_times[1:])]
    useful = statistics.median(gaps) * (len(done.steps) - 1)
    wall = done.finished - done.step_times[0][1]
    figures.add("goodput over this run (two faults in it)", 100 * useful / wall, "%", "undisturbed step time")
    return figures


class Memory(threading.Thread):
    """Peak of the memory that all processes of the cluster use together; shared pages are counted once (PSS)."""

    def __init__(self, directory):
        super().__init__(daemon=True)
        self.directory, self.peak_kib, self.over = directory, 0, threading.Event()

    def run(self):
        while not self.over.wait(1):
            known = layout.load(self.directory)
            if known:
                self.peak_kib = max(self.peak_kib, sum(pss_kib(pid) for pid in process.find(known)))


def pss_kib(pid):
    try:
        return int(re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M).group(1))
    except (OSError, AttributeError):
        return 0  # it ended while we looked


def play(options):
    start = time.monotonic()
    memory = Memory(options.dir)
    memory.start()
    cluster("up", "--dir", options.dir, "--nodes", 16)
    story = Story(options.dir, REPOSITORY, options.steps, options.step_ms)
    act_discover(story)
    reference = act_reference(story)
    job, log = act_place(story)
    act_process_fault(story, job, log)
    link_ms, host_ms = act_fabric_faults(story)
    victim, line_ms, incident = act_gpu_fault(story, job, log)
    done = story.wait_end(job, log)
    story.note(done.finished, f"finished: {len(done.steps)} steps")
    print_timeline(story, done.step_times[0][1])
    heading("Figures")
    figures = measure(story, job, log, reference,
                      {"incident": incident, "line_ms": line_ms, "link_ms": link_ms, "host_ms": host_ms})
    memory.over.set()
    figures.at_most("memory of all processes together, peak", memory.peak_kib // 1024, "MiB", 4096)
    figures.below("demo after set-up", time.monotonic() - start, "s", 180)
    print(figures.table())
    if options.json:
        figures.write(options.json)
    return 0 if figures.hold() else 1


def main():
    options = parse(None)
    try:
        return play(options)
    except (DemoError, subprocess.SubprocessError) as error:
        print(f"scripts/demo: {error}; logs are in {options.dir}", file=sys.stderr)
        for log in sorted(Path(options.dir, "demo").glob("*.log")):
            said = [line for line in log.read_text(errors="replace").splitlines() if line.startswith("banyan")]
            print("".join(f"  {log.name}: {line}\n" for line in said[-10:]), end="", file=sys.stderr)
        return 2
    finally:
        if not options.keep:
            subprocess.run([REPOSITORY / "scripts/cluster", "down", "--dir", options.dir], check=False)


if __name__ == "__main__":
    sys.exit(main())

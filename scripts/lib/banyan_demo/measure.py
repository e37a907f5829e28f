# SPDX-License-Identifier: BSD-3-Clause
"""What the demo measures: from what the programs wrote down, and from /proc."""

import re
import statistics
import threading
import time
from pathlib import Path

from banyan_cluster import layout, process
from banyan_demo import trainer_log
from banyan_demo.figures import Figures


BUSY_PERCENT = 40  # of all cores: with less left for it the demo measures the others


def busy_percent(seconds=1.0):
    """How much of the host's CPU time others take now. A sample: to be taken before the cluster is up."""
    def ticks():
        fields = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        return sum(fields), fields[3] + fields[4]  # all, idle and waiting for disks
    total, idle = ticks()
    time.sleep(seconds)
    total_after, idle_after = ticks()
    return 100 * (1 - (idle_after - idle) / max(total_after - total, 1))


def measure(done, reference, act, busy):
    """The figures, from what the programs themselves wrote down. `busy`: see Figures."""
    figures = Figures(busy)
    incident, line_ms, resumed = act["incident"], act["line_ms"], act["resumed"]
    before = max(step for step, at in done.step_times if at <= line_ms)
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

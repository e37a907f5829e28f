# SPDX-License-Identifier: BSD-3-Clause
"""The acts in the order of the demo. Each waits for what it wants to see, however long that takes: the job trains meanwhile."""

import re

from banyan_demo import trainer_log
from banyan_demo.story import SHAPE, VICTIM_GPU, DemoError


def heading(text):
    print(f"\n== {text}", flush=True)


def discover(story):
    heading("Discover: ibnetdiscover asks the subnet manager's fabric, banyan-topo reads it")
    print(story.tool("banyan-topo", "show", story.cluster / "fabric.snapshot").rstrip())


def place(story):
    job, log = story.submit_until_told("main", nodes=9, spares=1)
    story.wait_step(job, log, 1)
    heading(f"Place: job {job}, sbatch -N 9 --train-parallel={SHAPE} --train-spares=1")
    record = story.record(job)
    print(record["AdminComment"])
    print(story.tool("banyan-topo", "draw", story.cluster / "fabric.snapshot", "--nodes", record["NodeList"], "--shape", SHAPE,
                     "--spares", 1).rstrip(), flush=True)
    return job, log


def process_fault(story, job, log):
    heading("Save: kill -9 of all ranks while the job trains")
    story.wait_step(job, log, max(story.steps // 5, 1))
    at = story.kill_ranks(job)
    story.note(at, "kill -9 of all 16 ranks (nodes healthy)")
    note_restore(story, story.wait_restored(job, log, at))


def fabric_faults(story, job, log):
    heading("Watch: cables are pulled while the job trains")
    starts = len(trainer_log.read(log).starts)
    leaf, port = first_uplink(story)
    at = story.link("down", leaf, port)
    link = story.incident(lambda i: i["object"]["kind"] == "link" and i["times"]["line_ms"] >= at - 50, "leaf-spine link")
    story.note(at, f"a leaf-spine cable is pulled ({leaf} port {port})")
    story.note(link["times"]["incident_ms"], f"faultd [{link['id']}]: {link['cause']}; jobs left alone")
    story.link("up", leaf, port)
    node = story.nodes_beside(job)[-1]
    hca = "H-" + host_hca(story, node, 2)
    at2 = story.link("down", hca, 1)
    host = story.incident(lambda i: i["object"]["kind"] == "hca" and i["object"]["node"] == node, "host link")
    story.note(at2, f"a host cable is pulled ({node} mlx5_2)")
    story.note(host["times"]["incident_ms"], f"faultd [{host['id']}]: {host['cause']}")
    story.link("up", hca, 1)
    if len(trainer_log.read(log).starts) != starts:
        raise DemoError("the job was disturbed by a cable that it can do without")
    return link["times"]["incident_ms"] - at, host["times"]["incident_ms"] - at2


def gpu_fault(story, job, log):
    heading("Heal: a GPU falls off the bus of a node that trains")
    read = trainer_log.read(log)
    # Not the batch host: the script of the job runs there, and dies with it.
    victim = sorted({r["node"] for r in read.restored} - {story.record(job)["BatchHost"]})[2]
    story.wait_step(job, log, max(max(read.steps) + 5, story.steps // 2))
    starts = len(trainer_log.read(log).starts)
    at = story.gpu_falls_off(victim)
    story.note(at, f"NVRM line in {victim}'s kernel log: Xid 79, GPU {VICTIM_GPU} fell off the bus")
    incident = story.incident(lambda i: i["object"]["kind"] == "gpu" and i["times"].get("node_out_ms"), "the GPU")
    times = incident["times"]
    story.note(times["incident_ms"], f"faultd [{incident['id']}]: {incident['cause']}, job {job}")
    if times.get("sealed_ms"):
        story.note(times["sealed_ms"], "newest step sealed and replicated")
    story.note(times["node_out_ms"], f"{victim} is DOWN and out of the job")
    restored = story.wait_restored(job, log, at)
    note_restore(story, restored)
    if len(trainer_log.read(log).starts) <= starts:
        raise DemoError("the trainer did not start again")
    if victim in {one["node"] for one in restored}:
        raise DemoError(f"{victim} still trains")
    return at, incident, restored


def end(story, job, log):
    """A little more training on the new nodes, so that there is something to compare, and a good end."""
    story.wait_step(job, log, max(max(trainer_log.read(log).steps) + 20, story.steps))
    story.tell_to_end()
    done = story.wait_end(job, log)
    story.note(done.finished, f"finished: {len(done.steps)} steps")
    return done


def compare(story, done):
    heading(f"Compare: an undisturbed run on 8 nodes, {len(done.steps)} steps of {story.step_ms} ms")
    job, log = story.submit("undisturbed", nodes=8, spares=0, train=("--steps", len(done.steps)))
    reference = story.wait_end(job, log)
    last = max(reference.steps)
    print(f"job {job}: {len(reference.steps)} steps, loss of step {last} has the bits {reference.steps[last][0]}; "
          f"the disturbed run has {done.steps[last][0]}")
    return reference


def note_restore(story, restored):
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
    """(leaf's node id, port) of one leaf-spine link, from the fabric as it was discovered."""
    text = story.tool("ibnetdiscover")
    leaf = None
    for line in text.splitlines():
        head = re.match(r'Switch\s+\d+ "(S-[0-9a-f]+)"\s+# "([^"]*)"', line)
        if head:
            leaf = head.group(1) if "leaf" in head.group(2) else None
        up = re.match(r'\[(\d+)\]\s+"S-[0-9a-f]+"\[\d+\].*# "([^"]*spine[^"]*)"', line)
        if leaf and up:
            return leaf, int(up.group(1))
    raise DemoError("the fabric has no leaf-spine link")


def host_hca(story, node, rail):
    found = re.search(rf'^Ca\s+\d+ "H-([0-9a-f]+)"\s+# "{node} mlx5_{rail}"', story.tool("ibnetdiscover"), re.M)
    if not found:
        raise DemoError(f"{node} mlx5_{rail} is not on the fabric")
    return found.group(1)

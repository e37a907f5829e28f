# SPDX-License-Identifier: BSD-3-Clause
"""A step that DCP wrote in one layout loads in another: tensor by tensor the same, out of memory and out of storage."""

import dcp_jobs
import pytest


def begun(lab, nodes, kind, job=7, **layout):
    """Ranks that have saved step 2, behind the job's back where it can be, and what they saved."""
    first = lab.ranks(nodes, job, **layout)
    first.run(dcp_jobs.make, lab.tmp / "a", kind)
    first.run(dcp_jobs.train, 2)
    return first, first.run(dcp_jobs.bits)[0], first.run(dcp_jobs.rng)


@pytest.mark.parametrize(("old", "new", "kind", "save"), [
    (3, 5, "fsdp", dcp_jobs.save), (8, 3, "fsdp", dcp_jobs.save), (4, 2, "hsdp", dcp_jobs.save), (2, 3, "ddp", dcp_jobs.save),
    (3, 2, "ddp", dcp_jobs.save_behind), (4, 3, "tp", dcp_jobs.save)])
def test_another_number_of_ranks_from_storage(lab, old, new, kind, save):
    nodes = lab.daemons(2)
    out = lab.tmp / "out"
    out.mkdir(mode=0o777)
    nodes.open(7, old, [1], directory=out, flush=1)
    first, expected, rng = begun(lab, nodes, kind, per_node=old, over=[1])
    assert first.run(save, 2) == ["step 2: ok"] * old
    assert first.run(dcp_jobs.wait, 2, "durable") == ["step 2: ok"] * old
    assert first.run(dcp_jobs.finish) == ["step 2: ok"] * old
    on = first.run(dcp_jobs.train, 1)[0]
    first.kill()
    nodes.detach(7, 1)
    outside = lab.rank({"RANK": "0", "WORLD_SIZE": "1", "BANYAN_LIB": nodes.environment(7, 0, 1)["BANYAN_LIB"]})
    outside.run(dcp_jobs.make, lab.tmp / "c", "ddp", 9)
    assert outside.run(dcp_jobs.load, old, out)[0] == 2 and outside.run(dcp_jobs.bits) == expected
    nodes.open(8, new, [2], directory=out, flush=1)
    second = lab.ranks(nodes, 8, per_node=new, over=[2])
    second.run(dcp_jobs.make, lab.tmp / "b", "fsdp", 9)
    assert second.run(dcp_jobs.latest) == [2] * new
    found = second.run(dcp_jobs.load, old)
    assert [(step, note["step"]) for step, note, _ in found] == [(2, 2)] * new
    assert [rank for _, _, rank in found] == [rank % old for rank in range(new)]
    assert second.run(dcp_jobs.bits) == [expected] * new
    assert second.run(dcp_jobs.rng) == [rng[rank % old] for rank in range(new)] and len(set(rng)) == old
    again = second.run(dcp_jobs.train, 1)
    assert all(losses == pytest.approx(on, rel=1e-5) for losses in again)
    assert second.run(dcp_jobs.save, 3) == ["step 3: ok"] * new
    assert second.run(dcp_jobs.wait, 3, "durable") == ["step 3: ok"] * new


@pytest.mark.parametrize(("old", "new", "kind"), [(3, 5, "fsdp"), (8, 3, "fsdp"), (4, 2, "hsdp"), (4, 2, "tp")])
def test_another_number_of_ranks_from_memory(lab, old, new, kind):
    most = max(old, new)
    nodes = lab.daemons(most)
    nodes.open(7, slots=[{"ranks": [i], "buddy": (i + 1) % most} for i in range(most)], min_nodes=2, group=1)
    before, after = list(range(1, old + 1)), list(range(1, new + 1))
    nodes.begin(7, 1, before)
    first, expected, rng = begun(lab, nodes, kind, over=before)
    assert first.run(dcp_jobs.save_behind, 2, False) == ["step 2: ok"] * old
    assert first.run(dcp_jobs.wait, 2, "replicated") == ["step 2: ok"] * old
    first.kill()
    if old > new:
        nodes.kill(old)  # a node is lost with its memory
    nodes.begin(7, 2, after)
    second = lab.ranks(nodes, 7, over=after)
    second.run(dcp_jobs.make, lab.tmp / "b", "fsdp", 9)
    assert [found[0] for found in second.run(dcp_jobs.load, old)] == [2] * new
    assert second.run(dcp_jobs.bits) == [expected] * new
    assert second.run(dcp_jobs.rng) == [rng[rank % old] for rank in range(new)] and len(set(rng)) == old
    assert second.run(dcp_jobs.save_behind, 3, True) == ["step 3: ok"] * new
    assert second.run(dcp_jobs.wait, 3, "memory") == ["step 3: ok"] * new

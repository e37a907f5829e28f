# SPDX-License-Identifier: BSD-3-Clause
"""The trainer's processes on this host, found by what Slurm and banyan put into their environment."""

import os
from pathlib import Path


def of_job(cluster, job):
    """{rank: (pid, node)} of the trainers of `job` in the cluster of directory `cluster`."""
    out = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if os.path.basename(os.readlink(entry / "exe")) != "banyan-trainer":
                continue
            env = dict(item.partition("=")[::2] for item in (entry / "environ").read_text(errors="replace").split("\0"))
        except OSError:
            continue  # it ended while we looked
        if env.get("SLURM_JOB_ID") == str(job) and env.get("SLURM_CONF", "").startswith(f"{cluster}/"):
            out[int(env["RANK"])] = (int(entry.name), env["BANYAN_NODE"])
    return out

# SPDX-License-Identifier: BSD-3-Clause
"""What banyan's programs say of the GPUs of this machine. Each figure is a dictionary, as rank.py prints it."""

import json
import subprocess
import tempfile

from harness import program


def answer(name, *words):
    """What it printed, and its exit code."""
    done = subprocess.run([program(name), *words], capture_output=True, text=True, timeout=100, check=False)
    return done.stdout, done.returncode


def doctor():
    text, _ = answer("banyan-doctor", "--json", "--role", "compute")
    for found in json.loads(text)["findings"]:
        if found["subject"] in ("GPUs", "GPU driver", "NCCL", "checkpoints from GPUs"):
            figure = {"what": f"banyan-doctor, {found['subject']}", "told": f"{found['verdict']}: {found['what']}"}
            yield figure | ({"must": False} if found["verdict"] == "wrong" else {})


def sweep(gpus):
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as conf:
        conf.write(f"[sweep]\ngpus = {gpus}\npcie = 1\nallreduce = 1\n")
        conf.flush()
        text, _ = answer("banyan-sweep", "--config", conf.name, "--json", "--even-if-busy")
    for check in json.loads(text)["checks"]:
        yield {"what": f"banyan-sweep, {check['check']}", "told": f"{check['verdict']}: {'; '.join(check['what'])}",
               "must": check["verdict"] != "unfit"}


def look():
    text, code = answer("banyan-faultd", "look", "gpus")
    gpus = json.loads(text).get("gpus", []) if code == 0 else []
    yield {"what": "banyan-faultd look gpus", "told": f"{len(gpus)} GPUs" if code == 0 else f"exit code {code}"}


def all_of_them(gpus):
    yield from doctor()
    if gpus:
        yield from sweep(gpus)
        yield from look()

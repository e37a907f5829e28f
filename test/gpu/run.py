# SPDX-License-Identifier: BSD-3-Clause
"""Checks and figures of banyan on a machine with a GPU: `python3 run.py [GIB]`, with a torch that sees it. GIB: the state's size,
default 8. Without a GPU all runs on CPUs, which says whether it runs. Exit code 1: something is wrong."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

import programs  # noqa: E402
import torch  # noqa: E402
from lone_ckptd import Daemon  # noqa: E402

JOB = 7
LIMIT = 200  # seconds, for all ranks together


def open_session(daemon, step, gib):
    """As the prolog and the launch of a step do it: the memory is there before the rank is, for one tensor more."""
    if step == 0:
        daemon.call("session_open", dict(job=JOB, restart=0, uid=os.getuid(), gid=os.getgid(), self="n1", world=1, dir="", every=1, flush=0,
                                         buffers=3, bytes=int((gib + (0.3 if gib >= 1 else 0.01)) * 2**30), spares=[],
                                         nodes=[dict(name="n1", addr="127.0.0.1", ranks=[0], buddy=0)]), seconds=LIMIT)
    daemon.call("step_open", dict(job=JOB, step=step, nodes=["n1"]))


def rank(mode, gib, daemon):
    """The figures of one process; the first one is killed when it is ready."""
    environment = os.environ | {"BANYAN_JOB": str(JOB), "RANK": "0", "WORLD_SIZE": "1", "BANYAN_CKPT_SOCKET": str(daemon.socket),
                                "BANYAN_CKPT_WAIT_MS": "20000", "BANYAN_LIBRARY": str(HERE.parent / "lib-rank" / "libbanyan_ckpt.so.0")}
    words = [sys.executable, HERE / "rank.py", mode, str(gib)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment, text=True) as process:
        late = threading.Timer(LIMIT, process.kill)
        late.start()
        complete = mode == "second"
        for line in process.stdout:
            figure = json.loads(line)
            if figure["what"] == "ready":
                complete = True
                break
            yield figure
        if mode == "first":
            process.kill()
        late.cancel()
        if process.wait() not in (0, -9) or not complete:
            yield {"what": f"the {mode} rank ended with {process.returncode} before its work was done", "must": False}


def in_words(figure):
    rest = {key: value for key, value in figure.items() if key not in ("what", "must", "told")}
    words = [figure["told"]] if "told" in figure else []
    words += ["yes" if figure["must"] else "NO, AND THAT IS WRONG"] if "must" in figure and "told" not in figure else []
    names = {"seconds": "{} s", "gb_per_second": "{} GB/s", "slower_by_percent": "{} % slower", "in_a_save": "{} s in a save"}
    for key, value in rest.items():
        words.append(("yes" if value else "no") if isinstance(value, bool) else names.get(key, key + " {}").format(value))
    return ", ".join(words)


def main():
    gib = float(sys.argv[1]) if len(sys.argv) > 1 else 8.0
    begin, wrong = time.monotonic(), 0

    def tell(figures):
        bad = 0
        for figure in figures:
            print(f"{figure['what']:<58} {in_words(figure)}", flush=True)
            bad += figure.get("must") is False
        return bad

    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    print(f"banyan on {torch.cuda.get_device_name() if gpus else 'CPUs alone'}, torch {torch.__version__}\n")
    wrong += tell(programs.all_of_them(gpus))
    with Daemon() as daemon:
        for step, mode in enumerate(("first", "second")):
            open_session(daemon, step, gib)
            wrong += tell(rank(mode, gib, daemon))
    tell([{"what": "all together", "seconds": round(time.monotonic() - begin)}])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

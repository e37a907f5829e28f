# SPDX-License-Identifier: BSD-3-Clause
"""A rank in whatever image: image_rank.py BEGINS loads the library from beside the job's socket, expects its state of step BEGINS (-1:
that there is none), and saves the next step. Says how it went in one line. For Python 3.9 and newer, and nothing of others."""

import ctypes
import os
import sys

BYTES = 1 << 20


def load(path):
    try:
        return ctypes.CDLL(path), "from its file"
    except OSError:  # the folder is mounted noexec
        copy = os.memfd_create("libbanyan_ckpt")
        with open(path, "rb") as library, open(copy, "wb", closefd=False) as into:
            into.write(library.read())
        return ctypes.CDLL(f"/proc/self/fd/{copy}"), "from memory"


def content(step):
    return bytes([step % 251]) * BYTES


def main():
    begins = int(sys.argv[1])
    library, how = load(os.path.join(os.path.dirname(os.environ["BANYAN_CKPT_SOCKET"]), "libbanyan_ckpt.so.0"))
    library.bck_error.restype = library.bck_version.restype = ctypes.c_char_p
    library.bck_checkpoint.argtypes = [ctypes.c_uint64]
    library.bck_wait.argtypes = [ctypes.c_uint64, ctypes.c_int, ctypes.c_int]
    library.bck_protect_bytes.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t]

    def must(code, what, *fine):
        if code != 0 and code not in fine:
            sys.exit(f"{what}: {code}, {library.bck_error().decode()}")
        return code

    state, step = ctypes.create_string_buffer(BYTES), ctypes.c_uint64()
    must(library.bck_init(None, -1, -1), "bck_init")
    must(library.bck_protect_bytes(b"state", state, BYTES), "bck_protect_bytes")
    found = must(library.bck_restart(ctypes.byref(step), None), "bck_restart", -3)
    if found == 0 and state.raw != content(step.value):
        sys.exit(f"step {step.value} brought something else")
    now = -1 if found != 0 else step.value
    if now != begins:
        sys.exit(f"began from step {now}, not {begins}")
    state[:] = content(now + 1)
    must(library.bck_checkpoint(now + 1), "bck_checkpoint")
    must(library.bck_wait(now + 1, 1, 20_000), "bck_wait")
    print(f"rank {os.environ['RANK']} saved step {now + 1}, Python {sys.version_info[0]}.{sys.version_info[1]}, "
          f"library {library.bck_version().decode()} {how}", flush=True)
    os._exit(0)  # as one that is killed


main()

# SPDX-License-Identifier: BSD-3-Clause
"""libbanyan_ckpt.so by ctypes, for states that are dictionaries of torch's tensors."""

import ctypes
import os
from pathlib import Path

import torch

NOT_FOUND = -3
ON_ALL_RANKS = 1  # BCK_MEMORY
DTYPES = {torch.float32: b"F32", torch.bfloat16: b"BF16", torch.int64: b"I64"}
NUMBERS = ctypes.POINTER(ctypes.c_uint64)


class Tensor(ctypes.Structure):
    """bck_tensor."""

    _fields_ = [("name", ctypes.c_char_p), ("ptr", ctypes.c_void_p), ("bytes", ctypes.c_uint64), ("dtype", ctypes.c_char_p),
                ("ndim", ctypes.c_int), ("shape", NUMBERS), ("global_shape", NUMBERS), ("offset", NUMBERS)]


def load(path):
    """The library, after those that it needs and the machine may lack: they lie beside it."""
    path = Path(path)
    others = [file for file in path.parent.iterdir() if file != path]
    for _ in others:  # each is loaded once those are that it needs
        for file in list(others):
            try:
                ctypes.CDLL(str(file), mode=ctypes.RTLD_GLOBAL)
                others.remove(file)
            except OSError:
                pass
    library = ctypes.CDLL(str(path))
    library.bck_error.restype = ctypes.c_char_p
    library.bck_checkpoint_of.argtypes = [ctypes.c_uint64, ctypes.POINTER(Tensor), ctypes.c_size_t]
    library.bck_restart_into.argtypes = [NUMBERS, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(Tensor), ctypes.c_size_t]
    library.bck_restart_query.argtypes = [NUMBERS]
    library.bck_wait.argtypes = [ctypes.c_uint64, ctypes.c_int, ctypes.c_int]
    return library


class Failed(RuntimeError):
    pass


class Checkpoints:
    """Of one rank; its job, its rank and its daemon stand in the environment."""

    def __init__(self):
        self.library = load(os.environ["BANYAN_LIBRARY"])
        self.step = 0
        self.check(self.library.bck_init(None, -1, -1), "bck_init")

    def check(self, code, doing):
        if code != 0:
            raise Failed(f"{doing}: {code}, {self.library.bck_error().decode()}")

    def nothing_is_there(self):
        step = ctypes.c_uint64()
        code = self.library.bck_restart_query(ctypes.byref(step))
        if code != NOT_FOUND:
            self.check(code or 1, "bck_restart_query")

    @staticmethod
    def described(state):
        out, kept = (Tensor * len(state))(), []
        for place, (name, tensor) in zip(out, state.items()):
            shape = (ctypes.c_uint64 * tensor.dim())(*tensor.shape)
            kept.append(shape)
            (place.name, place.ptr, place.bytes, place.dtype, place.ndim, place.shape) = (
                name.encode(), tensor.data_ptr(), tensor.numel() * tensor.element_size(), DTYPES[tensor.dtype], tensor.dim(), shape)
        out.kept = kept  # as long as the array
        return out

    def save(self, tensors):
        self.step += 1
        self.check(self.library.bck_checkpoint_of(self.step, tensors, len(tensors)), f"the save of step {self.step}")

    def wait(self):
        self.check(self.library.bck_wait(self.step, ON_ALL_RANKS, 60_000), f"step {self.step} is not complete")

    def restore(self, tensors):
        """The step."""
        step, source = ctypes.c_uint64(), ctypes.c_int()
        self.check(self.library.bck_restart_into(ctypes.byref(step), ctypes.byref(source), tensors, len(tensors)), "bck_restart_into")
        self.step = step.value
        return step.value

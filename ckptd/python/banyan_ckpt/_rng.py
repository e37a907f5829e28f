# SPDX-License-Identifier: BSD-3-Clause
"""The random number generators of the process, as one object of the state."""

from __future__ import annotations

import random
import sys
from typing import Any


class Rng:
    """Python's, numpy's (where it is loaded) and torch's generators, on the CPU and on each GPU that the process uses. Each rank has its
    own."""

    def state_dict(self) -> dict[str, Any]:
        out: dict[str, Any] = {"python": random.getstate()}
        if (numpy := sys.modules.get("numpy")) is not None:
            out["numpy"] = numpy.random.get_state(legacy=False)
        if (torch := sys.modules.get("torch")) is not None:
            out["torch"] = torch.get_rng_state()
            if torch.cuda.is_available() and torch.cuda.is_initialized():
                out["cuda"] = torch.cuda.get_rng_state_all()
        return out

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        random.setstate(state_dict["python"])
        if "numpy" in state_dict:
            import numpy
            numpy.random.set_state(state_dict["numpy"])
        if "torch" in state_dict:
            import torch
            torch.set_rng_state(state_dict["torch"])
            here = torch.cuda.device_count() if torch.cuda.is_available() else 0
            for device, state in enumerate(state_dict.get("cuda", [])[:here]):
                torch.cuda.set_rng_state(state, device)

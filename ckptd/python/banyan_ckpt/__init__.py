# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints for PyTorch in the node's memory, outside the training process.

    import banyan_ckpt as banyan

    banyan.init()
    state = {"model": model, "optimizer": optimizer, "loader": loader, "rng": banyan.Rng()}
    loaded = banyan.load(state)
    step = loaded.step + 1 if loaded else 0
    while step < steps:
        train()
        banyan.save(step, state)
        step += 1
    banyan.finish()

init_process_group(init_method="banyan://") lets the ranks find each other without asking for names.

Calls may come from any thread; they take turns. None does a collective; load() and latest() wait until every rank can have its state.
"""

import sys

try:
    from . import _native
except ImportError as error:
    raise ImportError(f"banyan_ckpt's native module does not load in Python {sys.version.split()[0]} ({error}): install the wheel of this "
                      "Python (pip install --force-reinstall banyan-ckpt)") from error

from . import _rendezvous
from ._calls import finish, heartbeat, latest, load, milestone, reserve, save, seal_requested, wait
from ._errors import Error, Loaded, Outcome, StateError
from ._rng import Rng
from ._session import World, init, world

_rendezvous.register()

__version__ = _native.VERSION
__all__ = ["Error", "Loaded", "Outcome", "Rng", "StateError", "World", "__version__", "finish", "heartbeat", "init", "latest", "load", "milestone", "reserve",
           "save", "seal_requested", "wait", "world"]

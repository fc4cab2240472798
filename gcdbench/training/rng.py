"""The process-wide random streams, borrowed for the time of a fit and given back unchanged.

Everything of ours draws from named generators. A tail with dropout or a plugin may still draw from the global
streams of torch, numpy or Python; inside :func:`isolated` these are set for every step from (seed, step, rank).
A step is then reproducible by itself: no history, no checkpointed state, and nothing leaks out of the fit.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from gcdbench.training.context import derive_seed


@contextmanager
def isolated() -> Iterator[None]:
    """Restore the global random streams on leaving."""
    torch_state, python_state = torch.get_rng_state(), random.getstate()
    numpy_state = np.random.get_state()  # noqa: NPY002 (somebody else's code may use it)
    cuda_states = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    try:
        yield
    finally:
        torch.set_rng_state(torch_state)
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)
        if cuda_states:
            torch.cuda.set_rng_state_all(cuda_states)


def set_streams(seed: int, purpose: str) -> None:
    """Set the global streams from a run's seed and a purpose; only inside :func:`isolated`."""
    value = derive_seed(seed, purpose)
    torch.manual_seed(value)
    np.random.seed(value & 0xFFFFFFFF)  # noqa: NPY002
    random.seed(value)


def generator_states(owner: object) -> dict[str, Any]:
    """States of the generators an object keeps as attributes, torch's and numpy's, by attribute name."""
    states: dict[str, Any] = {}
    for name, value in vars(owner).items():
        if isinstance(value, torch.Generator):
            states[name] = value.get_state()
        elif isinstance(value, np.random.Generator):
            states[name] = dict(value.bit_generator.state)
    return states


def restore_generators(owner: object, states: dict[str, Any]) -> None:
    """The inverse of :func:`generator_states`."""
    for name, state in states.items():
        value = getattr(owner, name, None)
        if isinstance(value, torch.Generator):
            value.set_state(state)
        elif isinstance(value, np.random.Generator):
            value.bit_generator.state = state

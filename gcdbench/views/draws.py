"""Counter-based random numbers: each is a hash of what it is for, so nothing depends on the order of drawing.

A draw for sample ``id`` at counter ``draw`` under ``seed`` is the same number whatever the batch, the number of
workers or processes, and wherever a run was interrupted and resumed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Words = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def _mix(words: Words) -> Words:
    """The finaliser of splitmix64 (Steele, Lea and Flood, 2014), elementwise."""
    words = (words ^ (words >> np.uint64(30))) * _MIX_1
    words = (words ^ (words >> np.uint64(27))) * _MIX_2
    return words ^ (words >> np.uint64(31))


def random_words(seed: int, *counters: ArrayLike) -> Words:
    """64 random bits for each element of the broadcast ``counters``."""
    state = np.asarray(np.uint64(seed & 0xFFFFFFFFFFFFFFFF))
    with np.errstate(over="ignore"):  # arithmetic modulo 2**64 is the point
        state = _mix(state + _GOLDEN)
        for counter in counters:
            state = _mix((state ^ np.asarray(counter).astype(np.uint64)) * _MIX_2 + _GOLDEN)
    return state


def uniforms(seed: int, *counters: ArrayLike) -> NDArray[np.float64]:
    """Numbers in [0, 1) with 53 random bits, one for each element of the broadcast ``counters``."""
    return (random_words(seed, *counters) >> np.uint64(11)).astype(np.float64) * 2.0**-53

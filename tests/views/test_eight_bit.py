"""8-bit views against their definition: nearest of 256 levels between a channel's smallest and largest value."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gcdbench.views.eight_bit import LEVELS, decode, encode, record_bytes

finite = st.floats(-6e4, 6e4, width=32)


@given(arrays(np.float32, st.tuples(st.integers(1, 3), *(st.integers(1, 4),) * 3), elements=finite))
def test_the_error_is_at_most_half_a_step_of_the_channel(hidden: np.ndarray) -> None:
    count, height, width, channels = hidden.shape
    records = encode(hidden)
    assert records.shape == (count, record_bytes(height, width, channels))
    back = decode(records, height, width, channels)
    for image in range(count):
        for channel in range(channels):
            values, found = hidden[image, ..., channel], back[image, ..., channel]
            low, high = float(values.min()), float(values.max())
            # Offset and scale are rounded outwards to float16: at most one unit in the last place each.
            slack = 2.0**-10 * max(abs(low), 2.0**-14)
            step = (high - low + slack) / LEVELS * (1 + 2.0**-10) + 2.0**-24
            assert np.abs(found - values).max() <= 0.5 * step + 1e-5 * max(abs(low), abs(high))


def test_what_is_zero_or_constant_stays_so() -> None:
    """After a ReLU a third of all values is zero."""
    hidden = np.maximum(np.random.default_rng(0).normal(size=(4, 8, 8, 6)), 0).astype(np.float32)
    hidden[:, :, :, 5] = 0.5
    back = decode(encode(hidden), 8, 8, 6)
    assert (back[hidden == 0] == 0).all()
    assert (back[..., 5] == 0.5).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_does_not_look_healthy(bad: float) -> None:
    hidden = np.ones((1, 2, 2, 2), dtype=np.float32)
    hidden[0, 0, 0, 1] = bad
    back = decode(encode(hidden), 2, 2, 2)
    assert (back[..., 0] == 1).all()
    if np.isnan(bad):
        assert np.isnan(back[..., 1]).all()
    else:
        assert np.abs(back[0, 0, 0, 1]) > 6e4

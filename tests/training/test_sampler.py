from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcdbench.training.sampler import balanced_order, batch_size_for, epoch_rng

LABELS = np.array([0] * 50 + [1] * 50 + [-1] * 900)


def test_half_of_the_draws_are_labelled() -> None:
    """The published weights (1, and N_labelled / N_unlabelled) give a binomial(N, 1/2); five standard deviations."""
    drawn = np.concatenate([balanced_order(LABELS, epoch_rng(0, epoch)) for epoch in range(20)])
    share = (LABELS[drawn] >= 0).mean()
    assert abs(share - 0.5) < 5 * 0.5 / np.sqrt(len(drawn))


def test_images_of_one_kind_are_equally_likely() -> None:
    drawn = np.concatenate([balanced_order(LABELS, epoch_rng(1, epoch)) for epoch in range(200)])
    counts = np.bincount(drawn, minlength=len(LABELS))
    labelled, unlabelled = counts[LABELS >= 0], counts[LABELS < 0]
    assert len(drawn) == 200 * len(LABELS)
    for part in (labelled, unlabelled):
        # Poisson-like: the variance equals the mean.
        assert part.min() > 0
        assert part.var() == pytest.approx(part.mean(), rel=0.35)


def test_epochs_and_seeds_have_their_own_order_and_no_history() -> None:
    first = balanced_order(LABELS, epoch_rng(0, 0))
    assert np.array_equal(first, balanced_order(LABELS, epoch_rng(0, 0)))
    assert not np.array_equal(first, balanced_order(LABELS, epoch_rng(0, 1)))
    assert not np.array_equal(first, balanced_order(LABELS, epoch_rng(1, 0)))


@given(st.lists(st.integers(-1, 3), min_size=1, max_size=40), st.integers(0, 1000))
def test_every_position_exists_and_a_single_kind_is_uniform(labels: list[int], seed: int) -> None:
    order = balanced_order(np.array(labels), epoch_rng(seed, 0))
    assert order.shape == (len(labels),)
    assert order.min() >= 0
    assert order.max() < len(labels)


def test_threads_do_not_change_the_order() -> None:
    code = (
        "import numpy as np, hashlib; from gcdbench.training.sampler import *;"
        "print(hashlib.sha256(balanced_order(np.arange(1000) % 7 - 1, epoch_rng(3, 5)).tobytes()).hexdigest())"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "OMP_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2")
    }
    assert len(answers) == 1


@pytest.mark.parametrize(
    ("images", "wanted", "world", "expected"),
    [(1000, 128, 1, 128), (100, 128, 1, 100), (1, 128, 1, 1), (101, 128, 2, 100), (1000, 128, 2, 128), (1, 128, 2, 2)],
)
def test_batch_size(images: int, wanted: int, world: int, expected: int) -> None:
    assert batch_size_for(images, wanted, world) == expected

"""Likeness and unlikeness against transcriptions of their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.covariance import LedoitWolf

from gcdbench.models.reference import LEAST_IMAGES, Reference, look_at, upper_quantile


def cloud(count: int, width: int = 6, seed: int = 0, shift: float = 0.0) -> np.ndarray:
    """Correlated positive rows, as channel means are; ``shift`` moves them where nothing of the cloud is."""
    rng = np.random.default_rng(seed)
    mixing = np.random.default_rng(99).normal(size=(width, width))
    rows = 5.0 + 0.4 * rng.normal(size=(count, width)) @ mixing
    rows[:, 0] += shift
    return rows.astype(np.float32)


def expected_distance(used: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """sqrt((x − μ)ᵀ Σ⁻¹ (x − μ)) row by row, in double precision."""
    length = lambda x: x.astype(np.float64) / np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True)  # noqa: E731
    used, rows = length(used), length(rows)
    model = LedoitWolf().fit(used)
    return np.array(
        [np.sqrt((x - model.location_) @ np.linalg.inv(model.covariance_) @ (x - model.location_)) for x in rows]
    )


@pytest.mark.parametrize("kind", ["prefix", "feature"])
def test_distances_are_mahalanobis_distances_in_units_of_the_threshold(kind) -> None:  # type: ignore[no-untyped-def]
    seen, feature = cloud(200), cloud(200, 4, seed=3)
    labels = np.full(200, -1)
    given = seen if kind == "prefix" else feature
    reference, told = look_at(feature, labels, seen=given, kind=kind, k_old=0)
    assert told is not None
    distances = expected_distance(given[::2], given[1::2])
    assert told.threshold == pytest.approx(np.sort(distances)[99], rel=1e-3)  # ceil(101 · 0.99) = 100 of 100
    assert told.images == 100
    new = cloud(50, 6, seed=7, shift=1.0), cloud(50, 4, seed=8, shift=1.0)
    hidden = torch.from_numpy(new[0])[:, :, None, None].expand(-1, -1, 2, 3)
    _, scores = reference(torch.from_numpy(new[1]), hidden)
    expected = expected_distance(given[::2], new[0] if kind == "prefix" else new[1]) / told.threshold
    np.testing.assert_allclose(scores.numpy(), expected, rtol=2e-3)


def test_about_one_in_a_hundred_of_the_same_kind_is_flagged_and_nearly_all_of_another() -> None:
    reference, _ = look_at(cloud(4000), np.full(4000, -1), seen=cloud(4000), kind="prefix", k_old=0)
    same, other = cloud(4000, seed=1), cloud(4000, seed=2, shift=20.0)
    flagged = [
        float((reference.distance(torch.from_numpy(x)) > reference.threshold).float().mean()) for x in (same, other)
    ]
    assert 0.003 < flagged[0] < 0.02
    assert flagged[1] > 0.99


def test_likeness_is_the_cosine_to_the_mean_direction_of_a_class() -> None:
    feature = cloud(60, 5)
    labels = np.where(np.arange(60) % 3 == 2, -1, np.arange(60) % 3)
    reference, _ = look_at(feature, labels, seen=cloud(60), kind="prefix", k_old=2)
    new = cloud(10, 5, seed=4)
    likeness, _ = reference(torch.from_numpy(new), torch.ones(10, 6, 1, 1))
    for i, row in enumerate(new):
        for c in range(2):
            members = feature[labels == c]
            mean = np.mean([m / np.linalg.norm(m) for m in members], axis=0)
            expected = row @ mean / np.linalg.norm(row) / np.linalg.norm(mean)
            assert float(likeness[i, c]) == pytest.approx(expected, abs=1e-5)


def test_few_images_say_nothing_about_what_is_usual() -> None:
    count = LEAST_IMAGES - 1
    reference, told = look_at(cloud(count), np.zeros(count, dtype=np.int64), seen=cloud(count), kind="prefix", k_old=1)
    assert told is None
    _, scores = reference(torch.from_numpy(cloud(3)), torch.ones(3, 6, 1, 1))
    assert torch.isnan(scores).all()


def test_channels_that_never_vary_do_no_harm() -> None:
    """Dead channels of a ReLU network, and images that are all the same."""
    rows = cloud(100)
    rows[:, 2] = 0.0
    for seen in (rows, np.ones((100, 6), dtype=np.float32)):
        reference, told = look_at(rows, np.full(100, -1), seen=seen, kind="prefix", k_old=0)
        assert told is not None
        assert torch.isfinite(reference.distance(torch.from_numpy(cloud(20, seed=5)))).all()


def test_the_quantile_of_few_distances_is_the_largest() -> None:
    assert upper_quantile(np.arange(1.0, 21.0, dtype=np.float32)) == 20.0
    assert upper_quantile(np.arange(1.0, 1001.0, dtype=np.float32)) == 991.0  # ceil(1001 · 0.99)


def test_tensors_come_back_as_they_were() -> None:
    reference, told = look_at(cloud(80), np.zeros(80, dtype=np.int64), seen=cloud(80), kind="prefix", k_old=1)
    again = Reference(**dict(reference.state_dict()), unlikeness=told)
    x, hidden = torch.from_numpy(cloud(5, seed=9)), torch.rand(5, 6, 2, 2)
    for mine, theirs in zip(reference(x, hidden), again(x, hidden), strict=True):
        assert torch.equal(mine, theirs)

"""Localisation scores against loops and against torch's interpolation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gcdbench.reporting.explain.localisation import localise, upsample


@pytest.mark.parametrize(("cells", "size"), [((1, 1), 5), ((2, 3), 8), ((4, 4), 32), ((7, 7), 224), ((6, 6), 4)])
def test_upsampling_is_torchs_bilinear(cells: tuple[int, int], size: int) -> None:
    maps = np.random.default_rng(0).normal(size=(3, *cells)).astype(np.float32)
    expected = torch.nn.functional.interpolate(
        torch.from_numpy(maps)[:, None], size=(size, size), mode="bilinear", align_corners=False
    )[:, 0]
    np.testing.assert_allclose(upsample(maps, size), expected.numpy(), atol=1e-5)


@pytest.mark.parametrize("chunk", [1, 3, 256])
def test_scores_are_their_definitions(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr("gcdbench.reporting.explain.localisation.CHUNK", chunk)
    rng = np.random.default_rng(1)
    maps = rng.random((5, 4, 4)).astype(np.float32)
    masks = rng.random((5, 16, 16)) < 0.3
    masks[2] = False  # no lesion in view: left out
    hits, inside, area = [], [], []
    for values, mask in zip(maps, masks, strict=True):
        if not mask.any():
            continue
        fine = torch.nn.functional.interpolate(torch.from_numpy(values)[None, None], (16, 16), mode="bilinear")[0, 0]
        energy = fine.double().numpy() - float(fine.min())
        peak = [
            (i, j) for i in range(16) for j in range(16) if energy[i, j] > float(energy.max()) - 1e-4 * energy.max()
        ]
        hits.append(sum(bool(mask[i, j]) for i, j in peak) / len(peak))
        inside.append(sum(energy[i, j] for i in range(16) for j in range(16) if mask[i, j]) / energy.sum())
        area.append(sum(bool(value) for value in mask.ravel()) / 256)
    found = localise(maps, masks)
    assert found.n == 4
    assert found.pointing == pytest.approx(100 * np.mean(hits))
    assert found.energy_inside == pytest.approx(100 * np.mean(inside), rel=1e-4)
    assert found.area == pytest.approx(100 * np.mean(area))


def test_a_map_on_the_lesion_and_one_beside_it() -> None:
    mask = np.zeros((1, 32, 32), dtype=bool)
    mask[0, :16, :16] = True
    on, beside = np.zeros((1, 4, 4), dtype=np.float32), np.zeros((1, 4, 4), dtype=np.float32)
    on[0, 1, 1], beside[0, 3, 3] = 1.0, 1.0
    assert localise(on, mask).pointing == 100.0
    # A tent over the cell, 8 pixels to either side; along each axis an eighth of it lies beyond the lesion.
    assert localise(on, mask).energy_inside == pytest.approx(100 * (7 / 8) ** 2)
    assert localise(beside, mask).pointing == 0.0
    assert localise(beside, mask).energy_inside < 1.0


@settings(deadline=None)
@given(arrays(np.bool_, (2, 8, 8)), st.floats(-100, 100, width=32))
def test_a_constant_map_scores_the_lesions_area(masks: np.ndarray, value: float) -> None:
    found = localise(np.full((2, 3, 3), value, dtype=np.float32), masks)
    if found.n:
        assert found.pointing == pytest.approx(found.area)
        assert found.energy_inside == pytest.approx(found.area)
    else:
        assert np.isnan(found.pointing)


@settings(deadline=None)
@given(
    arrays(np.float32, (2, 4, 4), elements=st.floats(0, 1, width=32)),
    arrays(np.bool_, (2, 12, 12)),
    st.floats(0.5, 4, width=32),
)
def test_scores_ignore_the_scale_of_a_map_and_stay_within_bounds(
    maps: np.ndarray, masks: np.ndarray, factor: float
) -> None:
    first, second = localise(maps, masks), localise(maps * np.float32(factor), masks)
    if first.n and np.ptp(maps, axis=(1, 2)).min() > 1e-3:
        assert first.energy_inside == pytest.approx(second.energy_inside, abs=1e-2)
        assert -1e-6 <= first.energy_inside <= 100 + 1e-6
        assert 0 <= first.pointing <= 100

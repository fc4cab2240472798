"""Batched augmentation against torchvision's transforms, sample by sample and in distribution."""

from __future__ import annotations

import colorsys
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gcdbench.core.arrays import IntArray, Pixels
from gcdbench.core.errors import ConfigError, UnknownName
from gcdbench.models.torchvision_shim import import_torchvision
from gcdbench.views import augmentation as views
from gcdbench.views.draws import random_words, uniforms

PAPER = views.AUGMENTATIONS["paper"]


def smooth_pixels(count: int, side: int, seed: int = 0) -> Pixels:
    """Coloured blobs: unlike noise, their statistics depend on every colour operation."""
    rng = np.random.default_rng(seed)
    coarse = torch.from_numpy(rng.uniform(0, 255, (count, 3, 4, 4)))
    fine = torch.nn.functional.interpolate(coarse, size=(side, side), mode="bilinear")
    return np.ascontiguousarray(fine.permute(0, 2, 3, 1).round().numpy().astype(np.uint8))


def draw(ids: IntArray, counter: int = 0, seed: int = 0, slack: int = 4) -> views.ViewParameters:
    return views.draw_parameters(PAPER, ids=ids, draw=counter, seed=seed, slack=slack)


@pytest.fixture(params=["this machine's kernels", "plain torch"])
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of making a view."""
    if request.param == "plain torch":
        monkeypatch.setattr(views, "make_views", lambda *arguments, **settings: None)


@pytest.mark.usefixtures("kernels")
def test_views_equal_torchvision_with_the_same_parameters() -> None:
    """Every sample's crop, flip and colour operations, in its own order, one by one by torchvision."""
    tv: Any = import_torchvision("torchvision.transforms.v2.functional")
    pixels, size = smooth_pixels(48, 20), 16
    parameters = draw(np.arange(48))
    ours = views.render(pixels, size, parameters)
    operations = (tv.adjust_brightness, tv.adjust_contrast, tv.adjust_saturation, tv.adjust_hue)
    for i, image in enumerate(torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255):
        expected = tv.crop(image, int(parameters.top[i]), int(parameters.left[i]), size, size)
        if parameters.flip[i]:
            expected = tv.horizontal_flip(expected)
        for operation in parameters.order[i]:
            expected = operations[operation](expected, float(parameters.factors[i, operation]))
        torch.testing.assert_close(ours[i], expected, rtol=0, atol=2e-5)
    assert len(np.unique(parameters.order, axis=0)) > 12  # the orders did differ


@pytest.mark.usefixtures("kernels")
def test_standardisation_is_subtract_then_divide() -> None:
    pixels = smooth_pixels(3, 20)
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    plain = views.render(pixels, 16, draw(np.arange(3)))
    ours = views.render(pixels, 16, draw(np.arange(3)), mean=mean, std=std)
    expected = (plain.double() - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None]
    torch.testing.assert_close(ours.double(), expected, rtol=0, atol=1e-5)


def test_same_distribution_as_torchvisions_random_transforms() -> None:
    """RandomCrop, RandomHorizontalFlip and ColorJitter on one image, 1500 times: four statistics of the views agree."""
    transforms: Any = import_torchvision("torchvision.transforms.v2")
    pixels, size, count = smooth_pixels(1, 20, seed=3), 14, 1500
    image = torch.from_numpy(pixels[0]).permute(2, 0, 1).float() / 255
    theirs_transform = transforms.Compose(
        [transforms.RandomCrop(size), transforms.RandomHorizontalFlip(), transforms.ColorJitter(0.4, 0.4, 0.4, 0.1)]
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        theirs = torch.stack([theirs_transform(image) for _ in range(count)])
    ours = views.augment(
        np.repeat(pixels, count, axis=0), augmentation=PAPER, ids=np.arange(count), draw=0, seed=5, size=size
    )

    def statistics(batch: torch.Tensor) -> list[np.ndarray]:
        red, green, blue = batch.mean(dim=(2, 3)).unbind(1)
        left_right = batch[..., : size // 2].mean(dim=(1, 2, 3)) - batch[..., size // 2 :].mean(dim=(1, 2, 3))
        values = (red + green + blue, red - blue, batch.std(dim=(1, 2, 3)), left_right, batch[:, 0, 0, 0])
        return [value.numpy() for value in values]

    for mine, other in zip(statistics(ours), statistics(theirs), strict=True):
        assert stats.ks_2samp(mine, other).pvalue > 1e-3


def test_every_parameter_is_uniform() -> None:
    """Crop corners, flips, orders and factors over 20,000 ids; their counters are independent of one another."""
    parameters = draw(np.arange(20_000), slack=4)
    for corner in (parameters.top, parameters.left):
        assert stats.chisquare(np.bincount(corner, minlength=5)).pvalue > 1e-4
    assert stats.binomtest(int(parameters.flip.sum()), 20_000).pvalue > 1e-4
    codes = parameters.order @ np.array([64, 16, 4, 1])
    counts = np.unique(codes, return_counts=True)[1]
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > 1e-4
    for column, (low, high) in enumerate([(0.6, 1.4)] * 3 + [(-0.1, 0.1)]):
        scaled = (parameters.factors[:, column] - low) / (high - low)
        assert stats.kstest(scaled, "uniform").pvalue > 1e-4
    table = np.stack([parameters.top, parameters.left, parameters.flip, *parameters.factors.T, codes])
    off_diagonal = np.corrcoef(table) - np.eye(len(table))
    assert np.abs(off_diagonal).max() < 0.04


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(9)), st.integers(0, 2**62), st.integers(0, 10**6))
def test_a_view_does_not_depend_on_its_batch(order: list[int], seed: int, counter: int) -> None:
    """Any order, any split of the batch: each id has the same view, bit by bit."""
    pixels = smooth_pixels(9, 12)
    ids = np.array([3, 14, 15, 92, 65, 35, 89, 79, 3_000_000_000])

    def make(rows: list[int]) -> torch.Tensor:
        chosen = np.array(rows)
        return views.augment(pixels[chosen], augmentation=PAPER, ids=ids[chosen], draw=counter, seed=seed, size=8)

    whole = make(list(range(9)))
    assert torch.equal(make(order), whole[torch.tensor(order)])
    assert torch.equal(torch.cat([make([0, 1]), make([2, 3, 4, 5, 6, 7, 8])]), whole)


def test_seed_draw_and_id_all_matter() -> None:
    ids = np.arange(50)
    base = uniforms(1, ids, 2)
    assert not np.isin(uniforms(2, ids, 2), base).any()
    assert not np.isin(uniforms(1, ids, 3), base).any()
    assert len(np.unique(base)) == 50
    # (id, draw) and (draw, id) are different counters
    assert random_words(1, 2, 3) != random_words(1, 3, 2)


def test_hue_equals_colorsys() -> None:
    """An independent conversion of single colours, greys and ties between channels included."""
    rng = np.random.default_rng(0)
    colours = np.concatenate([rng.uniform(size=(60, 3)), np.eye(3), 1 - np.eye(3), [[0.5] * 3, [0] * 3, [1] * 3]])
    shifts = rng.uniform(-0.5, 0.5, len(colours))
    images = torch.from_numpy(colours).float()[:, :, None, None]
    ours = views.shift_hue(images, torch.from_numpy(shifts).float())[:, :, 0, 0].numpy()
    for colour, shift, result in zip(colours, shifts, ours, strict=True):
        hue, saturation, value = colorsys.rgb_to_hsv(*colour)
        np.testing.assert_allclose(result, colorsys.hsv_to_rgb((hue + shift) % 1, saturation, value), atol=2e-6)


def test_test_view_is_the_centre() -> None:
    pixels = smooth_pixels(2, 9)
    expected = torch.from_numpy(pixels[:, 2:7, 2:7].astype(np.float32) / 255).permute(0, 3, 1, 2)
    torch.testing.assert_close(views.centre_view(pixels, size=5), expected, rtol=0, atol=1e-6)


@pytest.mark.usefixtures("kernels")
def test_geometric_views_keep_colours() -> None:
    """Without jitter a view holds the stored bytes."""
    pixels = smooth_pixels(6, 12)
    geometric = views.AUGMENTATIONS["geometric"]
    made = views.augment(pixels, augmentation=geometric, ids=np.arange(6), draw=0, seed=0, size=8)
    parameters = views.draw_parameters(geometric, ids=np.arange(6), draw=0, seed=0, slack=4)
    for i in range(6):
        top, left = parameters.top[i], parameters.left[i]
        expected = pixels[i, top : top + 8, left : left + 8]
        expected = expected[:, ::-1] if parameters.flip[i] else expected
        assert np.array_equal((made[i].permute(1, 2, 0).numpy() * 255).round(), expected)


def test_floats_between_0_and_1_are_the_same_images_as_bytes() -> None:
    pixels = smooth_pixels(6, 12)
    given = (pixels / 255).astype(np.float32)
    before = given.copy()
    parameters = draw(np.arange(6))
    torch.testing.assert_close(
        views.render(given, 8, parameters), views.render(pixels, 8, parameters), rtol=0, atol=2e-5
    )
    torch.testing.assert_close(views.centre_view(given, size=8), views.centre_view(pixels, size=8), rtol=0, atol=1e-6)
    assert np.array_equal(given, before)
    with pytest.raises(ValueError, match="not int16"):
        views.centre_view(pixels.astype(np.int16), size=8)  # type: ignore[arg-type]


def test_wrong_requests_are_sentences() -> None:
    with pytest.raises(ConfigError, match="cannot be cut"):
        views.centre_view(smooth_pixels(1, 8), size=9)
    with pytest.raises(UnknownName, match="did you mean 'paper'"):
        views.find_augmentation("papr")

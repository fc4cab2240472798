"""Masks follow the pixels through resize and crop; drawings show what they are given."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from gcdbench.core.errors import StoreError
from gcdbench.images.decoding import open_image, stored_side, to_square
from gcdbench.plugins.manager import PluginManager
from gcdbench.reporting.explain.drawing import colour, draw_map, draw_mask, draw_overlay, draw_sheet, stretch
from gcdbench.reporting.explain.images import open_images, require_same_images, view_mask
from gcdbench.views.augmentation import crop_centre


@pytest.mark.parametrize("shape", [(100, 100), (90, 160), (200, 120), (31, 33)])
def test_a_mask_lies_where_its_pixels_lie(shape: tuple[int, int]) -> None:
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    mask = (rows - 0.4 * shape[0]) ** 2 + (columns - 0.55 * shape[1]) ** 2 < (0.3 * min(shape)) ** 2
    buffer = io.BytesIO()
    Image.fromarray(np.repeat(mask[..., None], 3, axis=2).astype(np.uint8) * 255).save(buffer, format="PNG")
    pixels = to_square(open_image(buffer.getvalue()), stored_side(64))
    expected = crop_centre(pixels[None], 64)[0, :, :, 0] >= 128
    found = view_mask(mask, 64)
    assert found.shape == (64, 64)
    assert np.mean(found != expected) < 0.01  # bicubic and box filters may disagree on the very edge
    assert 0.05 < found.mean() < 0.6


def test_phantoms_images_and_masks_belong_together() -> None:
    images = open_images("phantom", PluginManager(points=[]), image_size=64, options={"n_per_class": "4"})
    ids = np.array([5, 0, 11])
    masks = images.masks(ids)
    assert images.has_masks
    assert masks.any(axis=(1, 2)).all()
    for place, number in enumerate(ids):
        assert np.array_equal(masks[place], images.masks(np.array([number]))[0])
    assert images.pixels(ids).shape == (3, 64, 64, 3)
    require_same_images(images, images.store.key)
    with pytest.raises(StoreError, match="not those"):
        require_same_images(images, "another")


def test_stretch_colour_and_panels() -> None:
    values = np.array([[0.0, 1.0], [2.0, 4.0]], dtype=np.float32)
    np.testing.assert_allclose(stretch(values), values / 4)
    assert (stretch(np.full((2, 2), 3.0, dtype=np.float32)) == 0.5).all()
    lightness = colour(np.linspace(0, 1, 9, dtype=np.float32)[None]).astype(float) @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(lightness[0]) > 0).all()
    drawn = draw_map(values, 8)
    assert (drawn[:4, :4] == drawn[0, 0]).all()
    assert (drawn[0, 0] != drawn[7, 7]).any()
    overlay = draw_overlay(np.zeros((8, 8, 3), dtype=np.uint8), values)
    assert overlay.shape == (8, 8, 3)
    assert overlay[7, 7].sum() > overlay[0, 0].sum()
    assert draw_mask(np.eye(3, dtype=bool))[1, 1].tolist() == [255, 255, 255]


def test_a_sheet_has_a_place_for_every_picture() -> None:
    red = np.zeros((10, 10, 3), dtype=np.uint8)
    red[..., 0] = 255
    sheet = np.asarray(draw_sheet([[red, None], [None, red]], columns=["a", "b\nc"], captions=["one", "two"], cell=20))
    found = np.argwhere((sheet == [255, 0, 0]).all(axis=2))
    assert len(found) == 2 * 20 * 20
    assert found[:, 0].max() - found[:, 0].min() > 40
    assert draw_sheet([]).size[0] > 0


def test_a_long_column_title_stays_within_its_column() -> None:
    picture = np.zeros((8, 8, 3), dtype=np.uint8)
    titles = ["medxplore/border-replicate and more\nspatial variance", ""]
    sheet = np.asarray(draw_sheet([[picture, picture]], columns=titles, cell=60))
    head = sheet[: len(sheet) - 60 - 6]
    assert (head[:, :66] != head[0, 0]).any()
    assert (head[:, 72:] == head[0, 0]).all()

"""Twelve and sixteen bits: contrast against arithmetic, and eight bits as they always were."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from gcdbench.datasets.sources.kinds import deepest_kind, needed_decoder
from gcdbench.images.decoding import decode_pixels
from gcdbench.images.deep import DeepDecoder, decode_deep, stretch
from gcdbench.images.image_store import prepare_store
from tests.data.conftest import noise_image
from tests.data.loading import opened


def encode(image: Image.Image, kind: str) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format=kind)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
@pytest.mark.parametrize(("low", "high"), [(0, 4095), (0, 65535), (900, 1500), (0, 200)])
def test_a_ramp_keeps_its_contrast_whatever_bits_it_uses(kind: str, low: int, high: int) -> None:
    ramp = np.linspace(low, high, 4096).reshape(64, 64).astype(np.uint16)
    pixels = decode_deep(encode(Image.fromarray(ramp), kind))
    assert pixels.shape == (64, 64, 3)
    expected = np.linspace(0, 255, 4096).reshape(64, 64)
    # Half a percent at either end is clipped, which moves a value by at most 1 % of the range, plus rounding.
    assert np.abs(pixels[..., 0] - expected).max() <= 0.01 * 255 + 1.5
    assert len(np.unique(pixels)) > 150


def test_a_burnt_in_marker_does_not_take_the_contrast() -> None:
    ramp = np.linspace(100, 1100, 10_000).reshape(100, 100).astype(np.uint16)
    ramp[0, :5] = 65535
    assert np.ptp(decode_deep(encode(Image.fromarray(ramp), "PNG"))[1:].astype(int)) > 240


@settings(max_examples=60, deadline=None)
@given(arrays(np.uint16, (9, 7), elements=st.integers(0, 65535)))
def test_stretching_keeps_the_order_of_values_and_is_a_percentile_window(values: np.ndarray) -> None:
    made = stretch(values).astype(int)
    order = np.argsort(values, axis=None, kind="stable")
    assert (np.diff(made.ravel()[order]) >= 0).all()
    low, high = (float(np.quantile(values.astype(float), share)) for share in (0.005, 0.995))
    if low < high:
        for value, shown in zip(values.ravel().tolist(), made.ravel().tolist(), strict=True):
            expected = 255 * min(1.0, max(0.0, (value - low) / (high - low)))
            assert abs(shown - expected) <= 0.5 + 1e-9


def test_flat_images_and_almost_flat_ones() -> None:
    assert not stretch(np.full((20, 20), 777, dtype=np.uint16)).any()
    dot = np.zeros((100, 100), dtype=np.uint16)
    dot[3, 3] = 500
    assert stretch(dot)[3, 3] == 255
    assert not stretch(np.full((3, 3), np.nan)).any()


@pytest.mark.parametrize("mode", ["RGB", "L", "P", "RGBA", "1", "CMYK"])
def test_eight_bit_files_decode_as_without_the_deep_decoder(mode: str) -> None:
    data = encode(noise_image(3).convert(mode), "TIFF" if mode == "CMYK" else "PNG")
    assert np.array_equal(decode_deep(data), decode_pixels(data))


def test_the_decoder_is_chosen_by_the_files(tmp_path: Path) -> None:
    deep = Image.fromarray(np.arange(64, dtype=np.uint16).reshape(8, 8) * 60)
    files = {
        "plain.png": noise_image(1),
        "grey.png": noise_image(1).convert("L"),
        "plain.tif": noise_image(2),
        "deep.png": deep,
        "deep.tif": deep,
        "deep.jp2": deep,
        "real.tiff": Image.fromarray(np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)),
    }
    for name, image in files.items():
        image.save(tmp_path / name)
    (tmp_path / "broken.tif").write_bytes(b"II*\0")
    plain = [str(tmp_path / name) for name in ("plain.png", "grey.png", "plain.tif", "broken.tif", "gone.png")]
    assert needed_decoder(deepest_kind(plain)) is None
    for name in ("deep.png", "deep.tif", "deep.jp2", "real.tiff"):
        assert needed_decoder(deepest_kind([*plain, str(tmp_path / name)])) == DeepDecoder()


def test_stores_of_eight_bit_folders_keep_their_key_and_deep_ones_have_another(make_folder, cache: Path) -> None:
    """The key of a store of plain files must be the one that earlier versions gave, or runs would change their ids."""
    root = make_folder({"a": 2, "b": 2})
    plain = opened(f"folder:{root}")
    assert plain.decode is None
    key = prepare_store(plain, 16, cache, workers=1).key
    Image.fromarray(np.linspace(0, 4095, 1024).reshape(32, 32).astype(np.uint16)).save(root / "a" / "0000.png")
    mixed = opened(f"folder:{root}")
    store = prepare_store(mixed, 16, cache, workers=1)
    assert store.key != key
    row = int(np.flatnonzero([mixed.keys[i] == "a/0000.png" for i in store.order])[0])
    assert np.ptp(store.pixels[row].astype(int)) > 200
    (root / "a" / "0000.png").unlink()
    noise_image(0).save(root / "a" / "0000.png")
    assert prepare_store(opened(f"folder:{root}"), 16, cache, workers=1).key == key

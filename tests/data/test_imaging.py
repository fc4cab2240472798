"""From file to pixels: geometry against Pillow's two-step way, depth and modes against arithmetic."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from gcdbench.images.decoding import UnreadableImageError, decode_pixels, open_image, stored_side, to_square


def encode(image: Image.Image, kind: str = "PNG", **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format=kind, **options)
    return buffer.getvalue()


@pytest.mark.parametrize(("image_size", "side"), [(224, 256), (128, 146), (96, 110), (64, 73), (28, 32)])
def test_stored_side(image_size: int, side: int) -> None:
    assert stored_side(image_size) == side


@pytest.mark.parametrize(("width", "height"), [(320, 256), (256, 512), (64, 64), (96, 48)])
def test_square_equals_resizing_then_cropping(width: int, height: int) -> None:
    rng = np.random.default_rng(width)
    image = Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))
    side = 32
    factor = side / min(width, height)
    resized = image.resize((round(width * factor), round(height * factor)), Image.Resampling.BICUBIC)
    left, top = (resized.width - side) // 2, (resized.height - side) // 2
    expected = np.asarray(resized.crop((left, top, left + side, top + side)), dtype=np.int64)
    # Pillow rounds between its two passes, whose order depends on the shape: one grey level is allowed.
    assert np.abs(to_square(image, side) - expected).max() <= 1


def test_a_sixteen_bit_image_keeps_its_high_byte() -> None:
    values = np.arange(0, 65536, 257, dtype=np.uint16)[:256].reshape(16, 16)
    data = encode(Image.fromarray(values))
    assert np.array_equal(decode_pixels(data), np.repeat((values >> 8).astype(np.uint8)[..., None], 3, axis=2))


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "LA", "1", "CMYK"])
def test_every_mode_becomes_rgb(mode: str) -> None:
    image = Image.fromarray(np.full((9, 7, 3), 255, dtype=np.uint8)).convert(mode)
    pixels = decode_pixels(encode(image, "TIFF" if mode == "CMYK" else "PNG"))
    assert pixels.shape == (9, 7, 3)
    assert pixels.min() == 255


def test_a_very_wide_image_does_not_take_memory() -> None:
    """Resizing the short side of 20,000 x 2 first would make an image of 2.5 million columns."""
    pixels = to_square(Image.new("RGB", (20_000, 2), (10, 20, 30)), 256)
    assert pixels.shape == (256, 256, 3)
    assert pixels.reshape(-1, 3).max(axis=0).tolist() == [10, 20, 30]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"GIF89a", "image file"),
        (b"hello" * 99, "not an image"),
        (encode(Image.new("RGB", (64, 64)), "JPEG")[:-300], "runcated"),
        (encode(Image.new("RGB", (64, 64)))[:60], ""),
        (encode(Image.new("1", (20_000, 20_000))), "pixels"),
    ],
)
def test_unreadable_bytes_have_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableImageError) as caught:
        open_image(data)
    assert reason in str(caught.value)
    assert str(caught.value)

"""From the bytes of an image file to the square RGB pixels that are stored."""

from __future__ import annotations

import io
import struct
import warnings

import numpy as np
from PIL import Image, UnidentifiedImageError

from gcdbench.core.arrays import Pixels

RULE = "short-side-bicubic-centre/1"
"""Names the way from file to stored pixels; part of every store's key, so raise it when pixels change."""

MAX_PIXELS = 150_000_000
"""Above this an image is refused instead of decoded: 150 million pixels take 450 MB in every worker."""

_CROP_SHARE = 0.875


class UnreadableImageError(Exception):
    """Bytes that cannot be turned into pixels; the text says why."""


def stored_side(image_size: int) -> int:
    """Side of the stored square for a network input of ``image_size``: crops of that size are taken from it."""
    return round(image_size / _CROP_SHARE)


def open_image(data: bytes) -> Image.Image:
    """Open and fully decode an image file (its first frame); any failure becomes :class:`UnreadableImageError`."""
    if not data:
        raise UnreadableImageError("the file is empty")
    try:
        with warnings.catch_warnings():
            # Our own limit applies; Pillow's warning would only add noise, its error is caught below.
            warnings.simplefilter("ignore")
            image = Image.open(io.BytesIO(data))
            if image.width * image.height > MAX_PIXELS:
                raise UnreadableImageError(f"{image.width} x {image.height} pixels are more than can be decoded safely")
            image.load()
    except Image.DecompressionBombError:
        raise UnreadableImageError("more pixels than can be decoded safely") from None
    except UnidentifiedImageError:
        raise UnreadableImageError("not an image file that Pillow knows, and not DICOM") from None
    except (OSError, SyntaxError, ValueError, EOFError, struct.error, MemoryError) as error:
        raise UnreadableImageError(str(error) or type(error).__name__) from None
    return image


def to_rgb(image: Image.Image) -> Image.Image:
    """An 8-bit RGB image. Deep grey images keep their high byte: Pillow's own conversion would saturate them."""
    if image.mode == "RGB":
        return image
    if image.mode.startswith("I") or image.mode == "F":
        values = np.asarray(image)
        if image.mode == "F":
            values = values * 255.0 if values.max(initial=0.0) <= 1.0 else values
        elif image.mode != "I" or values.max(initial=0) > 255:
            values = values >> 8
        image = Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))
    return image.convert("RGB")


def to_square(image: Image.Image, side: int) -> Pixels:
    """(side, side, 3) uint8: short side resized to ``side`` (bicubic, antialiased), centre kept.

    One resampling of the centre square: the same pixels as resizing first and cropping then,
    without the huge intermediate image that a very wide file would give.
    """
    short = min(image.size)
    left, top = (image.width - short) / 2, (image.height - short) / 2
    box = (left, top, left + short, top + short)
    return np.asarray(to_rgb(image).resize((side, side), Image.Resampling.BICUBIC, box=box), dtype=np.uint8)


def decode_pixels(data: bytes) -> Pixels:
    """(H, W, 3) uint8 of an image file at its own size."""
    return np.asarray(to_rgb(open_image(data)), dtype=np.uint8)

"""Images of more than eight bits: 12- and 16-bit grey files and DICOM, brought to eight bits with their contrast.

The rule for grey values that no window comes with: the 0.5th percentile of the image becomes 0, the 99.5th becomes 255,
linear in between. Each image is stretched by itself, whatever bits its scanner used; that brightness differs between
two scans is therefore lost, and kept where a DICOM file says which window to show. Colour files of 16 bits keep their
high byte. Files of eight bits are decoded as everywhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gcdbench.core.arrays import Pixels
from gcdbench.images.decoding import open_image, to_rgb

LOW, HIGH = 0.5, 99.5
"""Percentiles that become black and white."""

_MAGIC, _MAGIC_AT = b"DICM", 128
HEADER_BYTES = _MAGIC_AT + len(_MAGIC)
"""So many bytes of a file tell whether it is DICOM, or a deep PNG."""

_PNG = b"\x89PNG\r\n\x1a\n"
_GREY_PNG = (0, 4)


@dataclass(frozen=True, kw_only=True)
class DeepDecoder:
    """``decode`` of a dataset that holds DICOM files or deep images; ``key`` is part of its image store's key."""

    key: ClassVar[str] = "percentile-0.5-99.5/1"

    def __call__(self, data: bytes) -> Pixels:
        return decode_deep(data)


def decode_deep(data: bytes) -> Pixels:
    """(H, W, 3) uint8 of a DICOM file or of any image file."""
    if is_dicom(data):
        from gcdbench.images.dicom import decode_dicom

        return decode_dicom(data)
    image = open_image(data)
    if is_deep_mode(image.mode):
        return grey_to_rgb(stretch(np.asarray(image)))
    return np.asarray(to_rgb(image), dtype=np.uint8)


def stretch(values: NDArray[Any], shown: NDArray[np.bool_] | None = None) -> NDArray[np.uint8]:
    """Grey values of any range to 0 .. 255 by the percentile rule. ``shown`` marks the pixels that count for it."""
    numbers = np.asarray(values, dtype=np.float64)
    counted = np.isfinite(numbers) if shown is None else np.isfinite(numbers) & shown
    if not counted.any():
        return np.zeros(numbers.shape, dtype=np.uint8)
    low, high = np.percentile(numbers[counted], (LOW, HIGH))
    if low == high:  # almost all pixels are equal: what differs is all there is to see
        low, high = float(numbers[counted].min()), float(numbers[counted].max())
    return scale(np.nan_to_num(numbers, nan=low), low, high)


def scale(values: NDArray[Any], low: float, high: float) -> NDArray[np.uint8]:
    """``low`` .. ``high`` to 0 .. 255, rounded; what lies outside is clipped, and a range without width is black."""
    if low == high:
        return np.zeros(values.shape, dtype=np.uint8)
    return np.rint(np.clip((values - low) / (high - low), 0.0, 1.0) * 255.0).astype(np.uint8)


def grey_to_rgb(values: NDArray[np.uint8]) -> Pixels:
    """(H, W) to (H, W, 3)."""
    return np.repeat(values[..., None], 3, axis=2)


def is_dicom(head: bytes) -> bool:
    """Whether a file that begins with these bytes is DICOM."""
    return head[_MAGIC_AT:HEADER_BYTES] == _MAGIC


def is_deep_grey_png(head: bytes) -> bool:
    """Whether a file that begins with these bytes is a grey PNG of 16 bits."""
    return head[:8] == _PNG and len(head) > 25 and head[24] == 16 and head[25] in _GREY_PNG


def is_deep_mode(mode: str) -> bool:
    """Whether Pillow's ``mode`` has more than eight bits."""
    return mode.startswith("I") or mode == "F"


def is_deep_file(file: Any) -> bool:
    """Whether the image in an open file has more than eight grey bits; only its header is read."""
    try:
        with Image.open(file) as image:
            return is_deep_mode(image.mode)
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError):
        return False  # whoever decodes it says what is wrong with it

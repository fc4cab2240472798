"""``phantom``: endoscopy-like images made by code, so that every machine has a dataset that is hard and exact.

Eight classes: four gross kinds of lesion (:mod:`phantom_lesions`), each with two surface patterns.
The first four classes are the old ones; class f + 4 looks like class f from afar. What changes most from image
to image (light, hue, folds, vessels, frame, captions, highlights) says nothing about the class.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gcdbench.core.arrays import IntArray, Pixels
from gcdbench.core.errors import DataError
from gcdbench.datasets.card import load_card
from gcdbench.datasets.source import DatasetRequest, DatasetSource
from gcdbench.datasets.sources.options import refuse_unknown_options
from gcdbench.datasets.sources.phantom_lesions import PATTERNS, SHAPES, Lesion, make_lesions
from gcdbench.datasets.sources.phantom_noise import Field, between, direction, smooth, triangle, uniform, value_noise

VERSION = 1
"""Raise when any pixel changes: the manifest of a run names the content by its hash."""

IMAGES_PER_PATIENT = 4
DEFAULT_PER_CLASS = 80
DEFAULT_SIZE = 160
_TEST_EVERY = 5
"""Every fifth patient belongs to the test part."""
_CHUNK = 8
_TINTS = tuple(tuple(shape.tint[channel] for shape in SHAPES) for channel in range(3))


def _coordinates(size: int) -> tuple[Field, Field]:
    line = (np.arange(size, dtype=np.float32) * np.float32(2.0) + np.float32(1.0 - size)) / np.float32(size)
    return np.broadcast_to(line, (1, size, size)), np.broadcast_to(line[:, None], (1, size, size))


def _folds(index: IntArray, x: Field, y: Field, coarse: Field) -> Field:
    """Relative brightness of mucosal folds: bent ridges in one direction per image, faint or strong."""
    amount = uniform(index, 30, 3)[:, :, None, None]
    cosine, sine = direction(index, 31)
    phase = (x * cosine + y * sine) * between(amount[:, 0], 0.8, 2.4) + coarse * np.float32(1.8) + amount[:, 1]
    return (smooth(triangle(phase)) - np.float32(0.5)) * between(amount[:, 2], 0.10, 0.60)


def _frame(patient: IntArray, x: Field, y: Field) -> Field:
    """(n, S, S) in [0, 1]: the field of view, a disc, an octagon or a wide square, by patient."""
    style = uniform(patient, 40, 4)[:, :, None, None]
    dx, dy = x - between(style[:, 1], -0.06, 0.06), y - between(style[:, 2], -0.06, 0.06)
    across, along = np.abs(dx), np.abs(dy)
    disc = np.sqrt(dx * dx + dy * dy) * np.float32(0.95)
    square = np.maximum(across, along)
    octagon = np.maximum(square, (across + along) * np.float32(0.72))
    radius = np.where(style[:, 0] < 0.4, octagon, np.where(style[:, 0] < 0.75, disc, square))
    return smooth((between(style[:, 3], 0.88, 0.99) - radius) * np.float32(14.0))


def _draw_overlay(image: Field, patient: IntArray, size: int) -> None:
    """Caption in the upper left corner and, for some patients, a position box below, drawn into (n, S, S, 3)."""
    style = uniform(patient, 50, 3)
    dot = max(1, size // 80)
    letters = uniform(patient, 51, 9 * 14).reshape(-1, 9, 14) < 0.55
    letters[:, 2::3] = False
    letters[:, :, 3::4] = False
    letters &= (style[:, 0] < 0.7)[:, None, None]
    caption = np.repeat(np.repeat(letters, dot, axis=1), dot, axis=2)
    height, width = caption.shape[1:]
    corner = image[:, dot : dot + height, dot : dot + width]
    corner[caption] = np.float32(205.0)
    side = size // 5
    boxed = style[:, 1] < 0.45
    tone = between(style[:, 2:], 60.0, 150.0)[boxed]
    box = np.stack([tone * np.float32(0.2), tone, tone * np.float32(0.5)], axis=-1)[:, None]
    image[boxed, -side:, :side] = box


def render(index: IntArray, labels: IntArray, patient: IntArray, size: int) -> tuple[Pixels, Lesion]:
    """(n, size, size, 3) images of samples ``index`` (n,) and their lesions."""
    x, y = _coordinates(size)
    lesion = make_lesions(index, labels, x, y)
    coarse, middle = value_noise(index, 1, size, 3), value_noise(index, 2, size, 9)
    fine = value_noise(index, 3, size, 34)
    light = uniform(index, 4, 8)[:, :, None, None]
    dx, dy = x - between(light[:, 0], -0.5, 0.5), y - between(light[:, 1], -0.5, 0.5)
    vignette = np.float32(1.25) / (np.float32(1.0) + between(light[:, 2], 0.25, 0.9) * (dx * dx + dy * dy))
    lumen_x, lumen_y = x - between(light[:, 3], -1.0, 1.0), y - between(light[:, 4], -1.0, 1.0)
    depth = between(light[:, 5], 0.0, 0.75)
    lumen = np.float32(1.0) - depth / (np.float32(1.0) + (lumen_x * lumen_x + lumen_y * lumen_y) * np.float32(9.0))

    relief = _folds(index, x, y, coarse) + (middle - np.float32(0.5)) * np.float32(0.22)
    relief = relief * (np.float32(1.0) - np.float32(0.6) * lesion.cover)
    relief = relief + lesion.cover * (lesion.shading + lesion.pattern) + (fine - np.float32(0.5)) * np.float32(0.16)
    brightness = between(light[:, 6], 0.65, 1.2) * vignette * lumen * (np.float32(1.0) + relief)

    vessel_noise = value_noise(index, 5, size, 11)
    vessels = smooth((triangle(vessel_noise * np.float32(1.5)) - np.float32(0.86)) * np.float32(8.0))
    vessels = vessels * between(light[:, 7], 0.0, 0.35) * (np.float32(1.0) - lesion.cover)
    wet = value_noise(index, 6, size, 26) + (brightness - np.float32(1.0)) * np.float32(0.12)
    highlight = smooth((wet - between(uniform(index, 7, 1)[:, :, None], 0.86, 0.95)) * np.float32(9.0))

    view = _frame(patient, x, y)
    hue, balance = uniform(patient, 60, 3), uniform(index, 61, 3)
    family = labels % len(SHAPES)
    image = np.empty((len(index), size, size, 3), dtype=np.float32)
    for channel, (low, high) in enumerate(((150.0, 220.0), (60.0, 135.0), (45.0, 125.0))):
        base = between(hue[:, channel], low, high) * between(balance[:, channel], 0.88, 1.12)
        tint = np.asarray(_TINTS[channel], dtype=np.float32)[family] - np.float32(1.0)
        colour = base[:, None, None] * (np.float32(1.0) + lesion.cover * tint[:, None, None])
        if channel:
            colour = colour * (np.float32(1.0) - vessels)
        lit = colour * brightness
        lit = lit + (np.float32(245.0) - lit) * highlight
        image[..., channel] = np.float32(9.0) + (lit - np.float32(9.0)) * view
    image += _grain(index, size)[..., None]
    _draw_overlay(image, patient, size)
    return np.clip(image + np.float32(0.5), 0, 255).astype(np.uint8), lesion


@lru_cache(maxsize=1)
def _grain_tile() -> Field:
    return between(uniform(np.zeros(1, dtype=np.int64), 70, 512 * 512).reshape(512, 512), -5.0, 5.0)


def _grain(index: IntArray, size: int) -> Field:
    """Sensor noise: a window of one fixed tile, at a random place for each image."""
    tile = _grain_tile()
    start = (uniform(index, 71, 2) * np.float32(512.0)).astype(np.int64)
    line = np.arange(size)
    rows, columns = (start[:, :1] + line) % 512, (start[:, 1:] + line) % 512
    windows: Field = tile[rows[:, :, None], columns[:, None, :]]
    return windows


def decode_square(raw: bytes) -> Pixels:
    """(S, S, 3) image from its S·S·3 bytes."""
    side = math.isqrt(len(raw) // 3)
    return np.frombuffer(raw, dtype=np.uint8).reshape(side, side, 3)


@dataclass
class PhantomImages:
    """Makes images when asked, some neighbours at a time: one by one would be several times slower."""

    labels: IntArray
    patients: IntArray
    size: int
    _cached: tuple[int, Pixels, NDArray[np.bool_]] | None = field(default=None, compare=False)

    def _find(self, i: int) -> tuple[Pixels, NDArray[np.bool_]]:
        chunk = i // _CHUNK
        if self._cached is None or self._cached[0] != chunk:
            index = np.arange(chunk * _CHUNK, min((chunk + 1) * _CHUNK, len(self.labels)), dtype=np.int64)
            pixels, lesion = render(index, self.labels[index], self.patients[index], self.size)
            self._cached = (chunk, pixels, lesion.mask)
        row = i - chunk * _CHUNK
        return self._cached[1][row], self._cached[2][row]

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_cached": None}

    def raw(self, i: int) -> bytes:
        """Bytes of image i, for :func:`decode_square`."""
        return bytes(self._find(i)[0].tobytes())

    def mask(self, i: int) -> NDArray[np.bool_]:
        """(S, S) lesion mask of image i."""
        return np.array(self._find(i)[1])


def _whole_number(options: Mapping[str, str], key: str, default: int, low: int, high: int) -> int:
    text = options.get(key, str(default))
    if not text.isdecimal() or not low <= int(text) <= high:
        raise DataError(
            f"The phantom option {key}='{text}' is not a whole number from {low} to {high}.",
            hint=f"leave it out for the default of {default}",
        )
    return int(text)


def _images_per_class(options: Mapping[str, str]) -> int:
    return _whole_number(options, "n_per_class", DEFAULT_PER_CLASS, IMAGES_PER_PATIENT, 100_000)


def count_images(options: Mapping[str, str]) -> int:
    """Number of images that :func:`make_phantom` makes with these options."""
    return len(PATTERNS) * _images_per_class(options)


def make_phantom(request: DatasetRequest) -> DatasetSource:
    """The phantom; options ``n_per_class`` (images of each class, test part included) and ``size`` (pixels)."""
    refuse_unknown_options(request, "n_per_class", "size")
    per_class = _images_per_class(request.options)
    size = _whole_number(request.options, "size", DEFAULT_SIZE, 32, 1024)
    classes = len(PATTERNS)
    index = np.arange(per_class * classes, dtype=np.int64)
    labels = index % classes
    # Patients are numbered over all classes in turn; each has one kind of lesion and several images of it.
    visit = index // classes // IMAGES_PER_PATIENT
    patients = visit * classes + labels
    test = visit % _TEST_EVERY == _TEST_EVERY // 2
    images = PhantomImages(labels=labels, patients=patients, size=size)
    test_count = int(test.sum()) // classes
    return DatasetSource(
        card=replace(
            load_card("phantom"), counts=(per_class - test_count,) * classes, test_counts=(test_count,) * classes
        ),
        keys=tuple(f"patient-{p:05d}/image-{i:06d}" for p, i in zip(patients.tolist(), index.tolist(), strict=True)),
        labels=labels,
        raw=images.raw,
        decode=decode_square,
        mask=images.mask,
        partition=np.where(test, "test", "train").astype(np.str_),
        groups=np.char.add("patient-", patients.astype(np.str_)),
        location="made by code",
        fingerprint=f"phantom-{VERSION}-{per_class}-{size}",
    )

"""Lesions of the phantom: four gross shapes, each with two surface patterns that differ only close up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gcdbench.datasets.sources.phantom_noise import Field, between, direction, smooth, triangle, uniform, value_noise

PATTERN_AMPLITUDE = 0.20
"""Contrast of the surface pattern, relative to the brightness of the mucosa around it."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What one family of lesions looks like from afar; both of its classes share it.

    stretch: long over short axis; ragged: how far the outline strays; tint: change of R, G, B inside;
    relief: strength of the shading that makes it look raised (> 0) or sunken (< 0).
    """

    stretch: float
    ragged: float
    tint: tuple[float, float, float]
    relief: float


SHAPES = (
    Shape(stretch=1.1, ragged=0.25, tint=(1.10, 0.90, 0.90), relief=0.34),
    Shape(stretch=1.2, ragged=0.35, tint=(1.05, 1.25, 1.05), relief=-0.30),
    Shape(stretch=1.3, ragged=0.75, tint=(0.96, 0.72, 0.78), relief=0.05),
    Shape(stretch=1.8, ragged=0.35, tint=(0.88, 1.06, 1.28), relief=0.16),
)


def _stripes(u: Field, v: Field) -> Field:
    return triangle(u)


def _dots(u: Field, v: Field) -> Field:
    product = triangle(u) * triangle(v)
    return smooth(product * np.float32(2.2) - np.float32(0.2))


def _rings(u: Field, v: Field) -> Field:
    return triangle(np.sqrt(u * u + v * v))


def _mesh(u: Field, v: Field) -> Field:
    return np.maximum(smooth(triangle(u) * 2 - 1), smooth(triangle(v) * 2 - 1))


def _pits(u: Field, v: Field) -> Field:
    return np.float32(1.0) - _dots(u, v)


def _chevrons(u: Field, v: Field) -> Field:
    return triangle(u + triangle(v * np.float32(0.5)) * np.float32(1.5))


def _bricks(u: Field, v: Field) -> Field:
    row: Field = np.floor(v)
    shifted: Field = u * np.float32(0.4) + row * np.float32(0.5)
    return np.maximum(smooth(triangle(v) * 2 - 1), smooth(triangle(shifted) * 4 - 3))


def _waves(u: Field, v: Field) -> Field:
    return triangle(u + smooth(triangle(v * np.float32(0.4))) * np.float32(0.9))


PATTERNS: tuple[Callable[[Field, Field], Field], ...] = (
    _dots, _rings, _mesh, _chevrons,
    _pits, _stripes, _bricks, _waves,
)  # fmt: skip
"""Pattern of each class; class f + 4 is the look-alike of class f."""


@dataclass(frozen=True, kw_only=True)
class Lesion:
    """One lesion per image, all (n, S, S): soft cover in [0, 1], shading and pattern as relative brightness."""

    cover: Field
    shading: Field
    pattern: Field

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Pixels of the lesion."""
        return self.cover >= np.float32(0.5)


def _of_class(values: tuple[float, ...], family: NDArray[np.int64]) -> Field:
    column: Field = np.asarray(values, dtype=np.float32)[family][:, None, None]
    return column


def make_lesions(index: NDArray[np.int64], labels: NDArray[np.int64], x: Field, y: Field) -> Lesion:
    """Lesions of samples ``index`` (n,) with classes ``labels`` (n,); ``x``, ``y`` (1, S, S) are pixels in [−1, 1]."""
    size = x.shape[-1]
    family = labels % len(SHAPES)
    place = uniform(index, 20, 6)[:, :, None, None]
    cosine, sine = direction(index, 21)
    dx, dy = x - between(place[:, 0], -0.38, 0.38), y - between(place[:, 1], -0.38, 0.38)
    u, v = dx * cosine + dy * sine, dy * cosine - dx * sine
    radius = between(place[:, 2], 0.36, 0.50)
    stretch: Field = np.sqrt(_of_class(tuple(shape.stretch for shape in SHAPES), family))
    long_axis, short_axis = u / (radius * stretch), v * stretch / radius
    outline = value_noise(index, 22, size, 7) - np.float32(0.5)
    ragged = _of_class(tuple(shape.ragged for shape in SHAPES), family)
    distance = long_axis * long_axis + short_axis * short_axis + ragged * np.float32(1.6) * outline
    cover = smooth((np.float32(1.0) - distance) * np.float32(2.5) + np.float32(0.5))

    relief = _of_class(tuple(shape.relief for shape in SHAPES), family) * between(place[:, 3], 0.6, 1.2)
    light_x, light_y = direction(index, 23)
    shading = relief * np.clip((dx * light_x + dy * light_y) / radius, -1, 1)

    # The pattern lives in the lesion's own frame, bent a little, at a scale of its own in every image.
    scale = between(place[:, 4], 4.6, 6.6)
    bend_u, bend_v = value_noise(index, 24, size, 5), value_noise(index, 25, size, 5)
    pattern_u, pattern_v = u * scale + bend_u, v * scale + bend_v
    pattern = np.empty_like(cover)
    for label in np.unique(labels):
        chosen = labels == label
        field = PATTERNS[label](pattern_u[chosen], pattern_v[chosen])
        pattern[chosen] = _standardise(field)
    contrast = between(place[:, 5], 0.8, 1.2) * np.float32(PATTERN_AMPLITUDE)
    return Lesion(cover=cover, shading=shading, pattern=pattern * contrast)


def _standardise(field: Field) -> Field:
    """Mean and spread fixed by value, so that the average colour of a lesion does not give its pattern away.

    The integer histogram keeps the sums exact: floating-point sums depend on the order of addition.
    """
    levels = np.floor(field * np.float32(256.0)).astype(np.int64)
    count = levels.shape[1] * levels.shape[2]
    total = levels.sum(axis=(1, 2))
    squares = (levels * levels).sum(axis=(1, 2))
    mean = (total / count).astype(np.float32) / np.float32(256.0)
    variance = (squares / count).astype(np.float32) / np.float32(65536.0) - mean * mean
    spread = np.sqrt(np.maximum(variance, np.float32(1e-4)))
    standard: Field = (field - mean[:, None, None]) / spread[:, None, None] * np.float32(0.5)
    return standard

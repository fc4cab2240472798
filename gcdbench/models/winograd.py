"""3×3 convolutions by Winograd's minimal filtering, as matrix products on a CPU.

A 4×4 tile of outputs takes 36 products instead of 144 (Lavin and Gray, Fast Algorithms for Convolutional Neural
Networks, CVPR 2016); with stride 2, where even inputs meet the middle tap and odd ones the other two, it takes 81.
Activations are cell-major, (H·W, C, B), so that the transforms of all tiles are one matrix product over cells and
each of the 36 or 81 products is one between channels. Everything is differentiable as it stands, so the backward
pass saves as much. With these points the error is about twice that of a direct float32 convolution.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcdbench.models.products import product

TILE, KERNEL = 4, 3
POINTS = (0.0, 1.0, -1.0, 0.5, -2.0)
"""Where polynomials are evaluated, in addition to infinity; of the usual choices these round least."""

MAX_CELLS = 100
"""Largest output map (h·w) for which all tiles are transformed by one dense matrix."""

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Filter:
    """An algorithm for one axis: ``output · ((weight · taps) ∘ (window · inputs))`` are TILE outputs of a filter.

    output (4, n), weight (n, 3), window (n, inputs of a tile); the first input lies one before the tile.
    """

    output: Matrix
    weight: Matrix
    window: Matrix
    stride: int


def _evaluate(points: tuple[float, ...], terms: int) -> Matrix:
    """(points + 1, terms): powers of each point; infinity picks the leading coefficient."""
    powers = np.array(points)[:, None] ** np.arange(terms)
    return np.concatenate([powers, np.eye(terms)[-1:]])


def minimal_filter(taps: int) -> tuple[Matrix, Matrix, Matrix]:
    """Output (4, n), weight (n, taps) and window (n, n) matrices of n = 3 + taps products.

    Polynomials are multiplied by evaluating, multiplying and interpolating; filtering is the transpose of that.
    Rows are scaled so that the largest entry of each row of the window matrix is one, which keeps rounding small.
    """
    count = TILE + taps - 1
    points = POINTS[: count - 1]
    window = np.linalg.inv(_evaluate(points, count)).T
    scale = np.abs(window).max(axis=1, keepdims=True)
    return _evaluate(points, TILE).T, _evaluate(points, taps) * scale, window / scale


def make_filter(stride: int) -> Filter:
    """The algorithm for three taps at stride 1 or 2."""
    if stride == 1:
        return Filter(*minimal_filter(KERNEL), stride)
    output, outer, window = minimal_filter(2)
    middle = np.zeros((TILE, KERNEL))
    middle[:, 1] = 1.0
    weight = np.concatenate([middle, np.stack([outer[:, 0], np.zeros(len(outer)), outer[:, 1]], axis=1)])
    positions = np.eye(2 * TILE + 1)  # inputs −1 .. 7 of a tile: even inputs are at odd positions
    spread = np.concatenate([positions[1::2], window @ positions[0::2]])
    return Filter(np.concatenate([np.eye(TILE), output], axis=1), weight, spread, stride)


@lru_cache(maxsize=16)
def transforms(height: int, width: int, stride: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """For maps of that size: cells to windows (n²·tiles, h·w), taps to filters (n², 9), products to cells."""
    axis = make_filter(stride)

    def gather(size: int) -> Matrix:  # (n, tiles, size): transform of each tile's inputs, zeros beyond the map
        tiles = np.arange(0, size, TILE * stride)
        inputs = tiles[:, None] + np.arange(axis.window.shape[1]) - 1
        table: Matrix = np.einsum("nu,tus->nts", axis.window, inputs[..., None] == np.arange(size))
        return table

    def scatter(size: int) -> Matrix:  # (outputs, tiles, n)
        cells = np.arange(-(-size // stride))
        inside = cells[:, None] // TILE == np.unique(cells // TILE)
        table: Matrix = inside[:, :, None] * axis.output[cells % TILE][:, None, :]
        return table

    rows, columns = scatter(height), scatter(width)
    matrices = (
        np.einsum("nai,mbj->nmabij", gather(height), gather(width)).reshape(-1, height * width),
        np.kron(axis.weight, axis.weight),
        np.einsum("ian,jbm->ijnmab", rows, columns).reshape(len(rows) * len(columns), -1),
    )
    first, second, third = (torch.from_numpy(np.ascontiguousarray(matrix)).to(dtype) for matrix in matrices)
    return first, second, third


def conv3x3(x: Tensor, weight: Tensor, height: int, width: int, stride: int = 1) -> Tensor:
    """3×3 convolution with padding 1: (h·w, C, B) and weight (O, C, 3, 3) to (oh·ow, O, B)."""
    to_windows, to_filters, to_cells = transforms(height, width, stride, x.dtype)
    outputs, inputs = weight.shape[:2]
    batch = x.shape[2]
    windows = product(to_windows, x.reshape(len(x), -1)).view(len(to_filters), -1, inputs, batch)
    # Taps outermost: the product below and its gradient then run along contiguous rows.
    taps = weight.permute(2, 3, 0, 1).reshape(KERNEL * KERNEL, -1)
    filters = product(to_filters, taps).view(-1, outputs, inputs)
    # Tile by tile, so that the filters are not copied for each of them; a 4×4 map is one tile.
    tiles = [product(filters, tile) for tile in windows.unbind(1)]
    joined = tiles[0] if len(tiles) == 1 else torch.stack(tiles, dim=1)
    return product(to_cells, joined.view(-1, outputs * batch)).view(-1, outputs, batch)

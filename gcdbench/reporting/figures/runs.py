"""Figures of single runs: confusion matrix, training curves, and the embedding by t-SNE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gcdbench.reporting.figures.style import CYCLE, LEGEND, new_figure
from gcdbench.runs.events import EpochEnd

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TSNE_SAMPLES = 2000
"""t-SNE is drawn of at most so many samples, chosen evenly: more take minutes and show no more."""


def draw_confusion(matrix: NDArray[np.int64], classes: Sequence[str], k_old: int, title: str) -> Figure:
    """(C, C + 1) counts after the Hungarian map, rows in percent of their class; lines separate old from new.

    The last column (clusters mapped to no class) is shown only when it holds something.
    """
    counts = matrix if matrix[:, -1].any() else matrix[:, :-1]
    percent = 100 * counts / np.maximum(matrix.sum(1, keepdims=True), 1)
    size = max(3.0, 0.42 * len(classes) + 1.6)
    figure, (axis,) = new_figure(width=size + 0.4, height=size)
    axis.imshow(percent, cmap="Blues", vmin=0, vmax=100)
    for y, x in zip(*np.nonzero(percent >= 0.5), strict=True):
        colour = "white" if percent[y, x] > 55 else "black"
        axis.text(x, y, f"{percent[y, x]:.0f}", ha="center", va="center", color=colour, fontsize=7)
    names = [*classes, "no class"][: counts.shape[1]]
    axis.set_xticks(range(len(names)), names, rotation=45, ha="right", fontsize=7)
    axis.set_yticks(range(len(classes)), classes, fontsize=7)
    axis.axhline(k_old - 0.5, color="#c14b3a", linewidth=1)
    axis.axvline(k_old - 0.5, color="#c14b3a", linewidth=1)
    axis.set_xlabel("assigned class (old | new)")
    axis.set_ylabel("true class (new below old)")
    axis.set_title(title)
    axis.tick_params(length=0)
    return figure


def draw_training(curves: Mapping[str, Sequence[EpochEnd]]) -> Figure:
    """Loss terms by epoch, one panel per run; ``curves`` holds the ends of each run's epochs."""
    figure, axes = new_figure(max(1, len(curves)), width=3.6, height=2.6)
    for axis, (title, events) in zip(axes, curves.items(), strict=False):
        events = list({event.epoch: event for event in events}.values())  # a resumed run repeats epochs: last wins
        names = list(dict.fromkeys(name for event in events for name in event.losses))
        for i, name in enumerate(names):
            points = [(event.epoch + 1, event.losses[name]) for event in events if name in event.losses]
            axis.plot(*zip(*points, strict=True), color=CYCLE[i % len(CYCLE)], label=name, linewidth=1.2)
        axis.set_xlabel("epoch")
        axis.set_ylabel("loss term, weighted")
        axis.set_title(title)
        if names:
            axis.legend(fontsize=7, **LEGEND)
    return figure


def tsne(embedding: NDArray[np.floating[Any]], seed: int = 0) -> NDArray[np.float32]:
    """(N, D) to (N, 2), deterministic: rows to unit length, then scikit-learn's t-SNE from a PCA start."""
    from sklearn.manifold import TSNE

    vectors = embedding.astype(np.float32)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    perplexity = float(min(30, max(2, (len(vectors) - 1) // 3)))
    found: NDArray[np.float32] = TSNE(init="pca", random_state=seed, perplexity=perplexity).fit_transform(vectors)
    return found


def sample_evenly(n: int, most: int = TSNE_SAMPLES) -> NDArray[np.int64]:
    """Positions of at most ``most`` of ``n`` samples."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))


def draw_embedding(
    points: NDArray[np.float32], y_true: NDArray[np.int64], classes: Sequence[str], k_old: int, title: str
) -> Figure:
    """(N, 2) points coloured by true class; dots are old classes, crosses new ones."""
    figure, (axis,) = new_figure(width=4.6, height=3.6)
    for label, name in enumerate(classes):
        chosen = y_true == label
        style: dict[str, Any] = (
            {"marker": "o", "s": 8, "linewidths": 0} if label < k_old else {"marker": "x", "s": 10, "linewidths": 0.8}
        )
        side = "old" if label < k_old else "new"
        axis.scatter(
            points[chosen, 0], points[chosen, 1], color=CYCLE[label % len(CYCLE)], label=f"{name} ({side})", **style
        )
    axis.set_xticks([])
    axis.set_yticks([])
    axis.set_title(title)
    axis.legend(fontsize=6, loc="center left", bbox_to_anchor=(1, 0.5), **LEGEND)
    return figure

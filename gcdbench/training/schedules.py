"""What changes over a run: learning rate and teacher temperature, both functions of the epoch alone."""

from __future__ import annotations

import math


def cosine_lr(epoch: int, epochs: int, lr: float, min_lr: float) -> float:
    """Cosine from ``lr`` at epoch 0 towards ``min_lr``, which it would reach at epoch ``epochs`` (SimGCD's scripts)."""
    return min_lr + (lr - min_lr) * (1.0 + math.cos(math.pi * epoch / max(epochs, 1))) / 2.0


def ramp(epoch: int, epochs: int, *, start: float, end: float, share: float) -> float:
    """Linear from ``start`` to ``end`` over the first ``share`` of the epochs, both ends included, then ``end``."""
    length = round(share * epochs)
    if epoch >= length:
        return end
    return start + (end - start) * epoch / max(length - 1, 1)


def teacher_temperature(epoch: int, epochs: int, *, start: float, end: float, warmup: float) -> float:
    """Linear from ``start`` to ``end`` over the first ``warmup`` share of the epochs, then ``end``.

    With 200 epochs and 0.15 these are SimGCD's 30 values, both ends included; a share instead of a count, so that
    a short run has a warm-up too.
    """
    return ramp(epoch, epochs, start=start, end=end, share=warmup)

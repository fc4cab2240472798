"""Settings of the training engine, shared by every trained method."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """SGD with a cosine schedule, as SimGCD's scripts set it (paper notes, row 23)."""

    epochs: int = 200
    batch_size: int = 128
    lr: float = 0.1
    min_lr_ratio: float = 1e-3
    momentum: float = 0.9
    weight_decay: float = 5e-5
    clip_norm: float = 0.0

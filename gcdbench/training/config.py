"""Settings of the training engine, shared by every trained method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from gcdbench.core.config import Bounds, Count, NotNegative, Positive, Share


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """SGD with a cosine schedule, as SimGCD's scripts set it."""

    epochs: Count = 200
    batch_size: Annotated[int, Bounds(least=2)] = 128
    lr: Positive = 0.1
    min_lr_ratio: Share = 1e-3
    momentum: Annotated[float, Bounds(least=0, below=1)] = 0.9
    weight_decay: NotNegative = 5e-5
    clip_norm: NotNegative = 0.0

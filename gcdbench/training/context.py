"""What a run gives to its method besides the data: random streams, device, backbone, views, progress, checkpoints."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gcdbench.core.arrays import IntArray
from gcdbench.training.config import TrainingConfig

if TYPE_CHECKING:
    import torch

    from gcdbench.models.backbone import Backbone


def derive_seed(seed: int, stream: str) -> int:
    """A 63-bit seed for one named random stream of a run."""
    digest = hashlib.sha256(f"{seed}/{stream}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def _checkpoint_seconds() -> float:
    """Time between two checkpoints where the context does not say."""
    return float(os.environ.get("GCDBENCH_CHECKPOINT_SECONDS", "20"))


def _ignore(event: Mapping[str, Any]) -> None:
    """Default listener."""


EstimateK = Callable[[NDArray[np.float32], IntArray, NDArray[np.float32], int, np.random.Generator], int]
"""(labelled features, their labels, unlabelled features, K_old, generator) -> K."""


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """Services of one run. Everything random is drawn from a named stream; nothing is seeded globally.

    log: receives events (dicts with a ``"type"``); the runner writes them to ``events.jsonl`` and shows progress.
    checkpoint_dir: where a trained method keeps its checkpoint, or None when it must not.
    numerics: what decides the last bits here (processor, libraries, kernels); a checkpoint remembers its own.
    checkpoint_seconds: time between two checkpoints; shapes no result.
    cache_dir: where view banks and features live.
    store_key: identity of the image store, so that what is derived from it can be shared.
    views: where views come from: ``"online"``, ``"bank:V"``, … (:mod:`gcdbench.views.setting`).
    training_rows: rows of the image store that may be trained on, whatever the split; None means all of them.
    estimate_k: finds K where the protocol keeps it secret.
    """

    seed: int
    image_size: int
    device: str = "cpu"
    precision: str = "float32"
    training: TrainingConfig = field(default_factory=TrainingConfig)
    views: str = "bank:16"
    augmentation: str = "paper"
    training_rows: IntArray | None = field(default=None, compare=False, repr=False)
    store_key: str = ""
    cache_dir: Path | None = None
    checkpoint_dir: Path | None = None
    checkpoint_seconds: float = field(default_factory=_checkpoint_seconds)
    resume: bool = True
    numerics: Mapping[str, Any] = field(default_factory=dict)
    log: Callable[[Mapping[str, Any]], None] = _ignore
    load_backbone: Callable[[], Backbone] | None = None
    estimate_k: EstimateK | None = None

    def rng(self, stream: str) -> np.random.Generator:
        """A numpy generator for one named purpose."""
        return np.random.default_rng(derive_seed(self.seed, stream))

    def generator(self, stream: str) -> torch.Generator:
        """A torch generator (CPU) for one named purpose."""
        import torch

        return torch.Generator().manual_seed(derive_seed(self.seed, stream))

    @cached_property
    def backbone(self) -> Backbone:
        """The run's backbone with its pretrained weights, loaded at first use; each run has its own copy."""
        if self.load_backbone is None:
            raise RuntimeError("this run has no backbone: its method is registered with needs_backbone=False")
        return self.load_backbone()

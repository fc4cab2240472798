"""A task small enough to train on in a second: for tests of methods, ours and plugin authors'."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn

from gcdbench.core.arrays import IntArray
from gcdbench.images.image_set import ImageSet
from gcdbench.methods.algorithms.estimate_k import estimate_k
from gcdbench.models.backbone import Backbone
from gcdbench.splits.data import GCDData
from gcdbench.training.config import TrainingConfig
from gcdbench.training.context import RunContext
from gcdbench.training.method import TaskInfo
from gcdbench.training.parametric import ParametricMethod

T = TypeVar("T", bound=ParametricMethod)

IMAGE_SIZE = 14
STORE_SIZE = 16


def _conv(inputs: int, outputs: int, generator: torch.Generator) -> nn.Conv2d:
    layer = nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False)
    nn.init.kaiming_normal_(layer.weight, generator=generator)
    return layer


class TinyBackbone(Backbone):
    """Two convolutions, one frozen and one trained, with fixed random weights; ``norm`` puts a BatchNorm between."""

    name = "tiny"
    weights_sha256 = "none"
    stride = 4

    def __init__(self, channels: int = 12, *, norm: bool = True) -> None:
        super().__init__()
        self.channels = channels
        generator = torch.Generator().manual_seed(1)
        self.prefix = nn.Sequential(_conv(3, 8, generator), nn.ReLU()).eval()
        self.tail = nn.Sequential(
            _conv(8, channels, generator),
            nn.BatchNorm2d(channels) if norm else nn.Identity(),
            nn.ReLU(),
        )
        self.prefix.requires_grad_(False)


def shrink(method: type[T]) -> type[T]:
    """The same method with a narrow projector, which otherwise is most of the work on a tiny task."""
    return type(method.__name__, (method,), {"projector_hidden": 24, "projector_out": 8})


def built(method: type[T], config: Any) -> T:
    """A method whose network exists and has taken no step, for tests of ``feature`` and ``losses`` on one batch."""
    data, task, _ = tiny_task()
    made = shrink(method)(config, task, tiny_context())
    made._open(data.labelled.store)
    made._build(made.count_clusters(data))
    return made


def tiny_task(
    *, images: int = 48, classes: int = 4, k_old: int = 2, k_known: bool = True, seed: int = 0
) -> tuple[GCDData, TaskInfo, IntArray]:
    """Coloured noise, one colour per class: the data, the task, and the true class of each image id.

    Half of the old classes' images are labelled.
    """
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(images) % classes).astype(np.int64)
    colours = rng.integers(40, 216, size=(classes, 3))
    noise = rng.normal(0.0, 20.0, size=(images, STORE_SIZE, STORE_SIZE, 3))
    store = np.clip(colours[truth][:, None, None, :] + noise, 0, 255).astype(np.uint8)
    ids = np.arange(images, dtype=np.int64)
    labelled = (truth < k_old) & (np.cumsum(truth < k_old) % 2 == 1)
    data = GCDData(
        labelled=ImageSet(ids=ids[labelled], store=store),
        labels=truth[labelled],
        unlabelled=ImageSet(ids=ids[~labelled], store=store),
    )
    return data, TaskInfo(k_old=k_old, k=classes if k_known else None, image_size=IMAGE_SIZE), truth


def tiny_context(
    *,
    seed: int = 0,
    epochs: int = 2,
    batch_size: int = 16,
    lr: float = 0.1,
    norm: bool = True,
    views: str = "online",
    augmentation: str = "paper",
    checkpoint_dir: Path | None = None,
    checkpoint_seconds: float = 20.0,
    log: Callable[[Mapping[str, Any]], None] | None = None,
) -> RunContext:
    """A context with the tiny backbone; views are made on the fly, or kept in memory (``"bank:2"``)."""
    return RunContext(
        seed=seed,
        image_size=IMAGE_SIZE,
        training=TrainingConfig(epochs=epochs, batch_size=batch_size, lr=lr),
        views=views,
        augmentation=augmentation,
        checkpoint_dir=checkpoint_dir,
        checkpoint_seconds=checkpoint_seconds,
        log=log or (lambda event: None),
        load_backbone=lambda: TinyBackbone(norm=norm),
        estimate_k=estimate_k,
    )

"""The interface of a method. A method is a plain class; training steps are not hooks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gcdbench.core.arrays import IntArray
from gcdbench.images.image_set import ImageSet
from gcdbench.splits.data import GCDData

if TYPE_CHECKING:
    from gcdbench.training.context import RunContext


@dataclass(frozen=True, kw_only=True)
class TaskInfo:
    """What a method knows about the task before it sees data. ``k`` is None unless the protocol says K is known."""

    k_old: int
    k: int | None
    image_size: int


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What a method says about images.

    ids: (N,) the ids it was asked about; cluster: (N,) cluster of each, 0 .. k_hat - 1.
    anchored: the first K_old clusters are tied to the old classes, in order.
    """

    ids: IntArray
    cluster: IntArray
    k_hat: int
    anchored: bool
    confidence: NDArray[np.float32] | None = None
    embedding: NDArray[np.float32] | None = None


@runtime_checkable
class Deployable(Protocol):
    """A method that leaves a model behind which predicts without it."""

    def save_model(self, directory: Path) -> None:
        """Write the files of the trained model into a directory."""


class Method(Protocol):
    """A method of generalized category discovery."""

    def __init__(self, config: Any, task: TaskInfo, ctx: RunContext) -> None:
        """Cheap: no data, no training."""

    def fit(self, data: GCDData) -> None:
        """Learn from labelled and unlabelled images."""

    def predict(self, images: ImageSet) -> Prediction:
        """Assign each image to a cluster."""

    def state_dict(self) -> dict[str, Any]:
        """Everything ``predict`` needs, as tensors by name."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of :meth:`state_dict`."""

"""The interface of a method, and the abilities it may have in addition. A method is a plain class; training steps are
not hooks."""

from __future__ import annotations

import warnings
from dataclasses import InitVar, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gcdbench.core.arrays import IntArray
from gcdbench.images.image_set import ImageSet
from gcdbench.splits.data import GCDData

if TYPE_CHECKING:
    from torch import Tensor

    from gcdbench.models.backbone import TailOutput
    from gcdbench.training.context import RunContext


@dataclass(frozen=True, kw_only=True)
class TaskInfo:
    """What a method knows about the task before it sees data. ``k`` is None unless the protocol says K is known.

    The size of images is ``ctx.image_size``; here it is only remembered for plugins of the version before.
    """

    k_old: int
    k: int | None
    image_size: InitVar[int] = 0

    def __post_init__(self, image_size: int) -> None:
        object.__setattr__(self, "_image_size", image_size)


def _old_image_size(task: TaskInfo) -> int:
    warnings.warn(
        "TaskInfo.image_size will be removed in the next release: read ctx.image_size.",
        DeprecationWarning,
        stacklevel=2,
    )
    size: int = task._image_size  # type: ignore[attr-defined]
    return size


TaskInfo.image_size = property(_old_image_size)  # type: ignore[attr-defined]


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


# Further abilities of a method. Whoever needs one asks for it with isinstance. ------------------------------------


@runtime_checkable
class SavesModel(Protocol):
    """Leaves a model behind that predicts without the method's code."""

    def save_model(self, directory: Path) -> None:
        """Write ``model.json`` and ``model.safetensors`` (:mod:`gcdbench.models.model_file`) after ``fit``."""


@runtime_checkable
class ShowsAttention(Protocol):
    """Knows where in an image it looks."""

    def attention(self, tail: TailOutput) -> Tensor | None:
        """(B, H, W) weights of the map's cells; None where the settings have none."""


@runtime_checkable
class OffersAlternatives(Protocol):
    """Has other maps of the same features, to compare its attention with."""

    def attention_alternatives(self, tail: TailOutput) -> dict[str, Tensor]:
        """Maps (B, H, W) by name."""


@runtime_checkable
class HasAuxiliaryState(Protocol):
    """Has modules that only training and explaining need."""

    def auxiliary_state(self) -> dict[str, Tensor]:
        """Their tensors by name."""

    def load_auxiliary_state(self, state: dict[str, Tensor]) -> None:
        """Restore what :meth:`auxiliary_state` gave, after ``load_state_dict``."""

"""The deployable model: two files that predict without the method's code, and a third for what training needed.

``model.safetensors`` holds the tail and the prototypes, ``model.json`` says which backbone they belong to;
``auxiliary.safetensors`` holds the projector and the method's extra modules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from gcdbench.core.errors import StoreError, WeightsError
from gcdbench.core.files import read_json, write_bytes, write_json
from gcdbench.models.heads import HEADS
from gcdbench.training.context import RunContext
from gcdbench.training.method import TaskInfo
from gcdbench.training.parametric import ParametricMethod

if TYPE_CHECKING:
    from gcdbench.models.backbone import Backbone

MODEL = "model.safetensors"
CARD = "model.json"
AUXILIARY = "auxiliary.safetensors"


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """The content of ``model.json``."""

    predictor: str
    backbone: str
    weights_sha256: str
    image_size: int
    k: int
    k_old: int
    temperature: float
    method: str


def save_model(method: ParametricMethod, directory: Path) -> None:
    """Write the three files of a trained method into a directory."""
    card = ModelCard(
        predictor=method.predictor,
        backbone=method.backbone.name,
        weights_sha256=method.backbone.weights_sha256,
        image_size=method.ctx.image_size,
        k=method.k,
        k_old=method.task.k_old,
        temperature=method.temperature,
        method=type(method).__name__,
    )
    _save_tensors(directory / AUXILIARY, method.auxiliary_state())
    _save_tensors(directory / MODEL, method.state_dict())
    write_json(directory / CARD, asdict(card))


def read_card(directory: Path) -> ModelCard:
    """The card of a saved model."""
    path = directory / CARD
    if not path.exists():
        raise StoreError(f"There is no saved model in {directory}.", hint="finish a run of a trained method first")
    try:
        card = ModelCard(**read_json(path))
    except TypeError as error:
        raise StoreError(f"{path} is not the card of a saved model: {error}.") from error
    if card.predictor not in HEADS:
        raise StoreError(f"{path} asks for the predictor '{card.predictor}'; this version knows {', '.join(HEADS)}.")
    return card


class Predictor(ParametricMethod):
    """A saved model: everything of a parametric method but the training."""

    card: ModelCard

    def fit(self, data: Any) -> None:
        """Refuse: a saved model is finished."""
        raise StoreError("A saved model cannot be trained further.", hint="run its method instead")


def load_model(
    directory: Path,
    *,
    load_backbone: Callable[[], Backbone] | None = None,
    ctx: RunContext | None = None,
) -> Predictor:
    """A predictor from a directory written by :func:`save_model`.

    ``load_backbone`` replaces the look-up by name; ``ctx`` gives device, cache and views, by default CPU and online.
    """
    card = read_card(directory)
    if ctx is None:
        ctx = RunContext(
            seed=0,
            image_size=card.image_size,
            views="online",
            load_backbone=load_backbone or (lambda: _find_backbone(card.backbone)),
        )
    backbone = ctx.backbone
    if (backbone.name, backbone.weights_sha256) != (card.backbone, card.weights_sha256):
        raise WeightsError(
            f"This model was trained on '{card.backbone}' with weights {card.weights_sha256[:12]}, "
            f"but '{backbone.name}' with {backbone.weights_sha256[:12]} is at hand.",
            hint="give the weights file the model was trained on",
        )
    predictor = Predictor(None, TaskInfo(k_old=card.k_old, k=card.k, image_size=card.image_size), ctx)
    predictor.card = card
    predictor.temperature = card.temperature
    predictor.predictor = card.predictor
    predictor.load_state_dict(_load_tensors(directory / MODEL))
    return predictor


def load_auxiliary(directory: Path) -> dict[str, Tensor]:
    """Training-only tensors by name (``projector.*`` and the extra modules')."""
    return _load_tensors(directory / AUXILIARY)


def _find_backbone(name: str) -> Backbone:
    from gcdbench.plugins.manager import get_manager

    backbone: Backbone = get_manager().get("backbones", name).load()(None)
    return backbone


def _save_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    # safetensors wants dense rows and no shared memory.
    dense = {name: value.detach().cpu().clone(memory_format=torch.contiguous_format) for name, value in tensors.items()}
    write_bytes(path, save(dense))


def _load_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise StoreError(f"{path} cannot be read: {error}.") from error

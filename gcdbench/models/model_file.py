"""A trained model on disk: two files that predict without the method's code, and a third for what training needed.

``model.safetensors`` holds the tail, the head and what tells unlike images, ``model.json`` (:mod:`.model_card`) says
which backbone they belong to and what clusters are called; ``auxiliary.safetensors`` holds what only training needs.
None of them holds a path, a file name or an image.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from gcdbench.core.errors import StoreError
from gcdbench.core.files import write_bytes
from gcdbench.models.card_file import read_card, write_card
from gcdbench.models.model_card import ModelCard

MODEL = "model.safetensors"
AUXILIARY = "auxiliary.safetensors"

Tensors = dict[str, Tensor]


def write_model(
    directory: Path, card: ModelCard, tensors: Mapping[str, Tensor], auxiliary: Mapping[str, Tensor] | None = None
) -> None:
    """Write a model; the card is last, so that an interrupted write leaves no model."""
    if auxiliary is not None:
        write_bytes(directory / AUXILIARY, _pack(auxiliary))
    content = _pack(tensors)
    write_bytes(directory / MODEL, content)
    write_card(directory, replace(card, tensors_sha256=hashlib.sha256(content).hexdigest()))


def read_model(directory: Path) -> tuple[ModelCard, Tensors]:
    """Card and tensors of a saved model; a damaged file is refused."""
    card = read_card(directory)
    return card, _unpack(directory / MODEL, card.tensors_sha256)


def read_auxiliary(directory: Path) -> Tensors:
    """Training-only tensors by name (``projector.*`` and the extra modules')."""
    return _unpack(directory / AUXILIARY)


def part(tensors: Mapping[str, Tensor], name: str) -> Tensors:
    """The tensors whose names begin with ``name.``, without that beginning."""
    start = f"{name}."
    return {key[len(start) :]: value for key, value in tensors.items() if key.startswith(start)}


def _pack(tensors: Mapping[str, Tensor]) -> bytes:
    # safetensors wants dense rows and no shared memory.
    dense = {name: value.detach().cpu().clone(memory_format=torch.contiguous_format) for name, value in tensors.items()}
    return save(dense)


def _unpack(path: Path, sha256: str = "") -> Tensors:
    if not path.exists():
        raise StoreError(
            f"The weights '{path.name}' of the model in '{path.parent}' are missing.",
            hint="A run that was imported has them only if they were exported with it.",
        )
    try:
        content = path.read_bytes()
        if sha256 and hashlib.sha256(content).hexdigest() != sha256:
            raise StoreError(f"'{path}' is damaged: its content is not what was saved.", hint="Run the method again.")
        return load(content)
    except (OSError, SafetensorError) as error:
        raise StoreError(f"'{path}' cannot be read: {error}.") from error

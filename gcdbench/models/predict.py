"""A saved model that predicts: from image files to clusters, names and confidences, without the method's code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from gcdbench.core.arrays import Pixels
from gcdbench.core.errors import DataError, StoreError, WeightsError
from gcdbench.core.work import Progress
from gcdbench.models.backbone import Backbone, TailOutput
from gcdbench.models.heads import KNOWN_HEADS, Head, Prototypes, build_head
from gcdbench.models.image_inputs import DecodedImage, ImageInput, Images, decode_ahead, find_inputs
from gcdbench.models.model_card import ModelCard
from gcdbench.models.model_file import Tensors, part, read_model
from gcdbench.models.network import Network
from gcdbench.models.predictions import Predictions, join
from gcdbench.models.reference import Reference
from gcdbench.views.augmentation import crop_centre, to_float
from gcdbench.views.chunks import chunk_size

LoadBackbone = Callable[[], Backbone]
Unreadable = Literal["stop", "skip"]


class Model:
    """A saved model.

    ``card`` says what it is; ``network`` is the whole way of an image through it. Images are prepared exactly as those
    of the run were: the same decoding, the same square, the same centre, and where the run read the prefix's output
    from a view bank it is rounded as the bank rounds it. So an image of the run gets the cluster and the confidence it
    got there, up to rounding (a run of CMS groups its own training images together and then again: of those a few may
    get another cluster here).
    """

    def __init__(self, card: ModelCard, network: Network, device: str = "cpu") -> None:
        self.card = card
        self.network = network.to(device)
        self.device = torch.device(device)

    @property
    def backbone(self) -> Backbone:
        """Prefix and tail, as the model has them."""
        return self.network.backbone

    @property
    def head(self) -> Head:
        """From a feature to one number per cluster."""
        return self.network.head

    def predict(
        self,
        images: Images,
        *,
        unreadable: Unreadable = "stop",
        embeddings: bool = False,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> Predictions:
        """Predict images: a folder, a file, a pattern, an array (N, H, W, 3) of bytes, or a series of such things.

        unreadable: whether an image that cannot be read stops everything or is left out and reported.
        embeddings: keep each image's feature, which takes memory. progress: called with (stage, done, total).
        """
        found, total = find_inputs(images)
        parts: list[Predictions] = []
        done = 0
        for predictions in self._stream(found, unreadable=unreadable, embeddings=embeddings, workers=workers):
            parts.append(predictions)
            done += len(predictions) + len(predictions.unreadable)
            if progress:
                progress("predicting images", done, total or done)
        return join(parts, self.card.names)

    def stream(
        self,
        images: Images,
        *,
        unreadable: Unreadable = "stop",
        embeddings: bool = False,
        workers: int | None = None,
    ) -> tuple[Iterator[Predictions], int | None]:
        """As :meth:`predict`, some images at a time, with flat memory; also how many there are, where that is known."""
        found, total = find_inputs(images)
        return self._stream(found, unreadable=unreadable, embeddings=embeddings, workers=workers), total

    def predict_squares(self, pixels: Pixels, *, names: tuple[str, ...] = (), embeddings: bool = False) -> Predictions:
        """Predict images (N, side, side, 3) that are decoded already, as an image store holds them."""
        called = names or tuple(f"image {number}" for number in range(len(pixels)))
        step = chunk_size(self.card.image_size)
        parts = [
            self._answer(called[start : start + step], np.asarray(pixels[start : start + step]), embeddings)
            for start in range(0, len(pixels), step)
        ]
        return join(parts, self.card.names)

    def run_tail(self, pixels: Pixels) -> TailOutput:
        """Feature map and feature of decoded images (N, side, side, 3); for looking inside."""
        with torch.no_grad():
            return self.network.run_tail(self._views(pixels))[1]

    def _stream(
        self, found: Iterator[ImageInput], *, unreadable: Unreadable, embeddings: bool, workers: int | None
    ) -> Iterator[Predictions]:
        decoded = decode_ahead(found, self.card.preprocessing.stored_side, workers)
        while chunk := list(islice(decoded, chunk_size(self.card.image_size))):
            failed = tuple((item.name, item.reason) for item in chunk if item.square is None)
            if failed and unreadable == "stop":
                raise DataError(
                    f"The image '{failed[0][0]}' cannot be read: {failed[0][1]}.",
                    hint="Leave it out, or let unreadable images be skipped.",
                )
            yield self._answer_decoded(chunk, failed, embeddings)

    def _answer_decoded(
        self, chunk: list[DecodedImage], failed: tuple[tuple[str, str], ...], embeddings: bool
    ) -> Predictions:
        side = self.card.preprocessing.stored_side
        squares = [item.square for item in chunk if item.square is not None]
        pixels = np.stack(squares) if squares else np.empty((0, side, side, 3), dtype=np.uint8)
        names = tuple(item.name for item in chunk if item.square is not None)
        return self._answer(names, pixels, embeddings, failed)

    def _answer(
        self, names: tuple[str, ...], pixels: Pixels, embeddings: bool, failed: tuple[tuple[str, str], ...] = ()
    ) -> Predictions:
        if not len(pixels):
            return join([], self.card.names, failed)
        with torch.no_grad():
            answer = self.network(self._views(pixels))
        likeness = answer.likeness.cpu().numpy()
        nearest = likeness.argmax(axis=1) if likeness.shape[1] else np.full(len(names), -1)
        best = likeness.max(axis=1) if likeness.shape[1] else np.full(len(names), np.nan, dtype=np.float32)
        score = answer.unlike_score.cpu().numpy()
        return Predictions(
            path=names,
            cluster=answer.cluster.cpu().numpy().astype(np.int64),
            confidence=answer.confidence.cpu().numpy(),
            nearest=nearest.astype(np.int64),
            likeness=best,
            unlike_score=score,
            unlike=score > 1.0,
            names=self.card.names,
            embedding=answer.feature.cpu().numpy() if embeddings else None,
            unreadable=failed,
        )

    def _views(self, pixels: Pixels) -> Tensor:
        return to_float(crop_centre(pixels, self.card.image_size)).to(self.device)


def load_model(
    directory: Path,
    *,
    load_backbone: LoadBackbone | None = None,
    weights: str | None = None,
    device: str = "cpu",
) -> Model:
    """The model in a directory, a run's or any other.

    ``load_backbone`` replaces the look-up by name; ``weights`` is the backbone's weight file, where the model was not
    trained from the published one.
    """
    card, tensors = read_model(directory)
    if card.predictor not in KNOWN_HEADS:
        raise StoreError(
            f"The model in '{directory}' predicts with '{card.predictor}'; this version knows {', '.join(KNOWN_HEADS)}."
        )
    backbone = load_backbone() if load_backbone is not None else _find_backbone(card.backbone, weights)
    if (backbone.name, backbone.weights_sha256) != (card.backbone, card.weights_sha256):
        raise WeightsError(
            f"This model was trained on '{card.backbone}' with weights {card.weights_sha256[:12]}, "
            f"but '{backbone.name}' with {backbone.weights_sha256[:12]} is available.",
            hint="Give the weights file the model was trained on (--weights).",
        )
    try:
        return Model(card, _assemble(card, backbone, tensors), device)
    except (KeyError, IndexError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise StoreError(f"The tensors in '{directory}' do not fit their card: {reason}.") from error


def _assemble(card: ModelCard, backbone: Backbone, tensors: Tensors) -> Network:
    if card.tail == "trained":
        backbone.tail.load_state_dict(part(tensors, "tail"))
    head = build_head(card.predictor, part(tensors, "prototypes"))
    if head.k != card.k:
        raise ValueError(f"{head.k} clusters instead of {card.k}")
    how = card.preprocessing
    return Network(
        backbone,
        head,
        _reference(card, head, part(tensors, "reference")),
        temperature=card.temperature,
        half=card.hidden == "float16",
        mean=how.mean or backbone.mean,
        std=how.std or backbone.std,
    )


def _reference(card: ModelCard, head: Head, tensors: Tensors) -> Reference:
    if not tensors and isinstance(head, Prototypes):  # of version 1: knows its classes by their prototypes only
        rows = nn.functional.normalize(head.weight[: card.k_old].detach(), dim=1)
        return Reference(rows, torch.empty(0), torch.empty(0, 0), None)
    if len(tensors["class_means"]) != card.k_old:
        raise ValueError(f"{len(tensors['class_means'])} known classes instead of {card.k_old}")
    return Reference(tensors["class_means"], tensors["centre"], tensors["whiten"], card.unlikeness)


def _find_backbone(name: str, weights: str | None) -> Backbone:
    from gcdbench.plugins.manager import get_manager

    backbone: Backbone = get_manager().get("backbones", name).load()(weights)
    return backbone

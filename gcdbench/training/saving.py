"""From a fitted method to the files of a model: card, tensors, and what the training images looked like."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn

from gcdbench.core.arrays import IntArray
from gcdbench.images.decoding import stored_side
from gcdbench.images.image_set import ImageSet
from gcdbench.models.backbone import Backbone
from gcdbench.models.heads import Centres, Distances, Head, make_head, nearest_prototype
from gcdbench.models.model_card import NEW, ModelCard, Names, Preprocessing, anchored
from gcdbench.models.model_file import write_model
from gcdbench.models.reference import Seen, look_at
from gcdbench.splits.data import GCDData
from gcdbench.training.method import TaskInfo
from gcdbench.training.naming import merge_states

if TYPE_CHECKING:
    from gcdbench.training.context import RunContext
    from gcdbench.training.parametric import ParametricMethod

Floats = NDArray[np.float32]


def save_model(method: ParametricMethod, directory: Path) -> None:
    """Write a trained method's model: its tail, its head, and how its training images looked to it."""
    name, head = method.deployed_head()
    feature, seen = _look(method)
    _write(
        directory,
        method=method,
        backbone=method.backbone,
        predictor=name,
        head=head,
        feature=feature,
        labels=method.train_labels[method.train_labels >= 0],
        seen=seen,
        tail="trained",
        # Stored test views, which all predictions come from, are in 16 bits, however views for training are stored.
        hidden="float32" if method.ctx.views == "online" else "float16",
        auxiliary=method.auxiliary_state(),
    )


class ClustersFeatures(Protocol):
    """A method that clusters what a pretrained network makes of images."""

    config: Any
    task: TaskInfo
    ctx: RunContext
    anchored: bool
    temperature: float


def save_centres(method: ClustersFeatures, centres: Floats, data: GCDData, directory: Path) -> None:
    """Write a model of cluster centres on the pretrained network, which is not written: it is found by its name."""
    from gcdbench.views.bank import frozen_features

    images, labels = data.train()
    normalised = bool(method.config.normalise)
    head = make_head(Centres if normalised else Distances, centres)
    feature = frozen_features(method.ctx, images)
    _write(
        directory,
        method=method,
        backbone=method.ctx.backbone,
        predictor="centre/1" if normalised else "distance/1",
        head=head,
        feature=feature,
        labels=labels,
        seen=feature,
        tail="pretrained",
        hidden="float32",
    )


def match_classes(labels: IntArray, cluster: IntArray, *, k: int, k_old: int) -> tuple[int, ...]:
    """(K,) the known class of each cluster, −1 for none, by the best one-to-one map of the labelled images.

    labels: (N,), −1 where unlabelled; cluster: (N,). For methods whose clusters are tied to no class.
    """
    given = labels >= 0
    counts = np.zeros((k_old, k), dtype=np.int64)
    np.add.at(counts, (labels[given], cluster[given]), 1)
    known = np.full(k, NEW, dtype=np.int64)
    for row, column in zip(*linear_sum_assignment(counts, maximize=True), strict=True):
        if counts[row, column]:
            known[column] = row
    return tuple(known.tolist())


def _look(method: ParametricMethod) -> tuple[Floats, Floats]:
    """(L, C) features of the labelled images' test views, and (N, c) channel means of all training images' prefix."""
    images, labelled = method.train_images, method.train_labels >= 0
    if not len(images):
        return np.empty((0, method.backbone.channels), dtype=np.float32), np.empty((0, 0), dtype=np.float32)
    method.embed(ImageSet(ids=images.ids[:0], store=images.store))  # opens the store
    feature: list[Floats] = []
    seen: list[Floats] = []
    done = 0
    for hidden, tail in method.test_passes(images.ids):
        here = labelled[done : done + len(hidden)]
        feature.append(tail.pooled.float().cpu().numpy()[here])
        seen.append(hidden.mean(dim=(2, 3)).cpu().numpy())
        done += len(hidden)
    return np.concatenate(feature), np.concatenate(seen)


def _write(
    directory: Path,
    *,
    method: ParametricMethod | ClustersFeatures,
    backbone: Backbone,
    predictor: str,
    head: Head,
    feature: Floats,
    labels: IntArray,
    seen: Floats,
    tail: Literal["trained", "pretrained"],
    hidden: Literal["float32", "float16"],
    auxiliary: Mapping[str, Tensor] | None = None,
) -> None:
    cluster, _ = nearest_prototype(feature, head, method.temperature)
    k, k_old, size = head.k, method.task.k_old, method.ctx.image_size
    known = anchored(k, k_old) if method.anchored else match_classes(labels, cluster, k=k, k_old=k_old)
    kind: Seen = "prefix" if tail == "trained" else "feature"
    reference, unlikeness = look_at(feature, labels, seen=seen, kind=kind, k_old=k_old)
    card = ModelCard(
        method=type(method).__name__,
        backbone=backbone.name,
        weights_sha256=backbone.weights_sha256,
        predictor=predictor,
        temperature=method.temperature,
        k=k,
        k_old=k_old,
        preprocessing=Preprocessing(
            image_size=size, stored_side=stored_side(size), mean=backbone.mean, std=backbone.std
        ),
        names=Names(known=known),
        tail=tail,
        hidden=hidden,
        unlikeness=unlikeness,
    )
    modules: dict[str, nn.Module] = {"prototypes": head, "reference": reference}
    if tail == "trained":
        modules["tail"] = backbone.tail
    write_model(directory, card, merge_states(modules), auxiliary)

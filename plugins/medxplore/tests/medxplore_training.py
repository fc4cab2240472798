"""Settings and short trainings of MedXplore that several test files share."""

from __future__ import annotations

import torch
from gcdbench_medxplore.config import MedXploreConfig
from gcdbench_medxplore.variants import VARIANTS

from gcdbench.api import Batch, TailOutput
from gcdbench.core.config import apply_overrides
from gcdbench.testing.tiny import shrink, tiny_context, tiny_task

SIMGCD_TERMS = {"cls_u", "memax", "cls_s", "rep_u", "rep_s"}


def configured(**overrides):
    """The default settings with changes, ``faac__k`` for ``faac.k``."""
    return apply_overrides(MedXploreConfig(), {key.replace("__", "."): value for key, value in overrides.items()})


def variant_config(name):
    """The settings of a named variant."""
    return apply_overrides(MedXploreConfig(), {key: v for key, v in VARIANTS[name].items() if key != "image_size"})


def train(method_class, config, *, seed=0, epochs=2, **context):
    """A trained method, its data and the events it logged."""
    events = []
    data, task, _ = tiny_task()
    method = shrink(method_class)(config, task, tiny_context(seed=seed, epochs=epochs, log=events.append, **context))
    method.fit(data)
    return method, data, events


def make_batch(method, *, size=6, labelled=4, classes=4, labels=None, same=False, progress=0.5):
    """A batch with the method's own modules, as the engine would make it, from random maps."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(2 * size, 12, 4, 4, generator=generator)
    if same:
        x = torch.full_like(x, 0.5)
    x.requires_grad_()
    tail = TailOutput(map=x, pooled=x.mean((2, 3)))
    feature = method.feature(tail)
    if labels is None:
        labels = torch.arange(size) % 2
    labels = labels.masked_fill(torch.arange(size) >= labelled, -1)
    return Batch(
        ids=torch.arange(size),
        labels=labels,
        tail=tail,
        feature=feature,
        projection=method.projector(feature),
        logits=method.prototypes(feature),
        progress=progress,
        epoch=0,
        step=0,
        k_old=2,
    )

"""Settings and short trainings of MedXplore that several test files share."""

from __future__ import annotations

from gcdbench_medxplore.config import MedXploreConfig
from gcdbench_medxplore.variants import VARIANTS

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

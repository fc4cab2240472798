"""What a plugin hands to the harness: small frozen descriptions, cheap to list, loaded only when used."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from gcdbench.core.errors import PluginError
from gcdbench.metrics.score import Score

API_VERSION = 2
"""Version of the plugin interface; a spec made for another one is refused with a sentence."""

DEPRECATED_API = 1
"""The version before: what was made for it works for one more release, with a note that says what to write."""

LOCAL_MODULE = "gcdbench_plugin_"
"""What the module name of a local plugin file begins with."""


def load_attribute(path: str) -> Any:
    """Import ``"package.module:attr"`` and return the attribute."""
    module_name, separator, attribute = path.partition(":")
    if not separator or not module_name or not attribute:
        raise PluginError(f"'{path}' is not of the form 'package.module:attribute'.")
    value: Any = importlib.import_module(module_name)
    for part in attribute.split("."):
        if not hasattr(value, part):
            raise PluginError(
                f"'{path}' names '{attribute}', which is not in {getattr(value, '__file__', module_name)}."
            )
        value = getattr(value, part)
    return value


@dataclass(frozen=True, kw_only=True)
class Spec:
    """Common part of every description.

    ``factory`` is a lazy ``"package.module:attr"`` path; nothing of it is imported to list the spec.
    ``api`` is the version of the plugin interface that the author wrote the plugin for, as a number: ``api=2``.
    It has no default that follows the installed gcdbench, for then it could not tell that the two do not fit.
    """

    kind: ClassVar[str] = "plugin"

    name: str
    factory: str
    summary: str = ""
    citation: str = ""
    tags: tuple[str, ...] = ()
    api: int | None = None

    def load(self) -> Any:
        """Import and return what ``factory`` points at."""
        return load_attribute(self.factory)


@dataclass(frozen=True, kw_only=True)
class MethodSpec(Spec):
    """A method: ``factory`` points at a class with the interface of :class:`gcdbench.training.method.Method`.

    ``config`` points at a frozen dataclass with a default for every field.
    ``version`` is part of a run's identity: raise it when predictions change.
    ``variants`` are named settings of ``config`` fields (dotted keys), chosen by ``--variant``.
    """

    kind: ClassVar[str] = "method"

    config: str | None = None
    version: str = "1"
    trained: bool = False
    needs_backbone: bool = True
    reconstruction: bool = False
    deviations: tuple[str, ...] = ()
    variants: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class DatasetSpec(Spec):
    """A dataset: ``factory`` is called with a :class:`gcdbench.datasets.source.DatasetRequest`
    and returns a :class:`gcdbench.datasets.source.DatasetSource`.

    ``card`` is the path of its ``card.toml`` (None for ``folder:`` and ``csv:``, which make theirs).
    ``takes_argument`` is true for datasets written ``name:<argument>``.
    """

    kind: ClassVar[str] = "dataset"

    card: str | None = None
    takes_argument: bool = False


@dataclass(frozen=True, kw_only=True)
class MetricSpec(Spec):
    """A metric: ``factory`` points at a function ``(y_true, cluster, is_old, anchored) -> dict[str, float]``.

    ``y_true`` (N,) class ids, ``cluster`` (N,) cluster ids, ``is_old`` (C,) one flag for each class,
    ``anchored`` whether the first clusters are tied to the old classes, in order.
    ``scores`` describes what it returns, or names the descriptions as a ``"package.module:attr"`` path; a key that
    is not described is shown under its own name, and its best row is never bold.
    ``version``: raise it when values change.
    """

    kind: ClassVar[str] = "metric"

    scores: Sequence[Score] | str = ()
    version: str = "1"

    def describe(self) -> tuple[Score, ...]:
        """The descriptions of its scores."""
        found = load_attribute(self.scores) if isinstance(self.scores, str) else self.scores
        return checked_scores(found, self.name)


def checked_scores(found: object, metric: str) -> tuple[Score, ...]:
    """The descriptions that a metric gave, or an error that says what they must be."""
    if not isinstance(found, Sequence) or not all(isinstance(score, Score) for score in found):
        raise PluginError(f"the scores of metric '{metric}' must be a tuple of Score(key=…), not {found!r}")
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class BackboneSpec(Spec):
    """A backbone: ``factory`` is called with ``(weights: str | None)`` and returns a
    :class:`gcdbench.models.backbone.Backbone`; ``weights`` is a file path, ``"none"`` or None for the default.

    ``identify`` may name a function ``(weights) -> sha256`` that needs no torch, so that a finished run is
    recognised at once; without it the backbone is loaded to learn which weights it has."""

    kind: ClassVar[str] = "backbone"

    extra: str | None = None
    identify: str | None = None

    def weights_sha256(self, weights: str | None) -> str:
        """Digest of the weights that ``factory(weights)`` would load."""
        if self.identify is not None:
            return str(load_attribute(self.identify)(weights))
        return str(self.load()(weights).weights_sha256)


@dataclass(frozen=True, kw_only=True)
class ExecutorSpec(Spec):
    """An executor: ``factory`` points at a class like :class:`gcdbench.runs.executors.base.Executor`.

    ``config`` points at a frozen dataclass with a default for every field: ``--executor-set`` and the rows of a suite
    set it, and ``factory`` is called with it; without one, ``factory`` is called with nothing.
    ``remote``: runs may happen on another machine, so that device and threads are decided where a run arrives, and
    a sweep must name its preset.
    """

    kind: ClassVar[str] = "executor"

    config: str | None = None
    remote: bool = False

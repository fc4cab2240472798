"""What a plugin hands to the harness: small frozen descriptions, cheap to list, loaded only when used."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self

from gcdbench.core.errors import ConfigError, PluginError, WeightsError
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
    try:
        value: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the module is there, and lacks something
        raise PluginError(f"'{path}' names a module that is not installed: there is no '{error.name}'.") from error
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
    name_pattern: ClassVar[str] = r"\w[\w.+-]*"
    """What a name may look like; names become folders of the store."""

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
    ``options`` are names of options that presets may set (:class:`PresetSpec`); the factory knows what they mean.
    ``count`` may name a function ``(options) -> int`` that says how many images there are with these options, for
    datasets whose card cannot know it.
    """

    kind: ClassVar[str] = "dataset"

    card: str | None = None
    takes_argument: bool = False
    options: tuple[str, ...] = ()
    count: str | None = None

    def size(self, options: Mapping[str, str]) -> int | None:
        """Number of images with these options; None where the plugin leaves that to the card."""
        return None if self.count is None else int(load_attribute(self.count)(options))


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
class ArgumentSpec(Spec):
    """What may be written ``name:<argument>``: one entry of a registry for a family of things.

    ``takes_argument`` says that it must be; ``argument`` is set on look-up, and ``load`` then gives the factory with
    ``argument=`` filled in.
    """

    takes_argument: bool = False
    argument: str | None = None

    def bound(self, argument: str | None) -> Self:
        """The spec for one argument; one that is missing, or was not asked for, is refused."""
        if self.takes_argument and not argument:
            raise ConfigError(f"The {self.kind} '{self.name}' needs an argument: {self.name}:<{self.kind}>.")
        if argument and not self.takes_argument:
            raise ConfigError(f"The {self.kind} '{self.name}' takes no argument, but '{argument}' was given.")
        return replace(self, argument=argument) if argument else self

    def load(self) -> Any:
        """Import what ``factory`` points at; the argument, where there is one, is filled in."""
        return self._filled(super().load())

    def _filled(self, function: Any) -> Any:
        return function if self.argument is None else partial(function, argument=self.argument)


@dataclass(frozen=True, kw_only=True)
class BackboneSpec(ArgumentSpec):
    """A backbone: ``factory`` is called with ``(weights: str | None)`` and returns a
    :class:`gcdbench.models.backbone.Backbone`; ``weights`` is a file path, ``"none"`` or None for the default.

    ``identify`` may name a function ``(weights) -> sha256`` that needs no torch and no download, so that a finished
    run is recognised at once; without it, or where it finds no file, the backbone is loaded to learn which weights
    it has. Of a backbone that takes an argument both functions get it as ``argument=``."""

    kind: ClassVar[str] = "backbone"

    extra: str | None = None
    identify: str | None = None

    def weights_sha256(self, weights: str | None, *, load: bool = True) -> str:
        """Digest of the weights that ``factory(weights)`` would load.

        Without ``load`` nothing is loaded or downloaded: weights that cannot be identified are a WeightsError.
        """
        # Whether there is such an argument at all is seen only on loading, and before a run begins it must be.
        if self.identify is not None and not (load and self.takes_argument):
            try:
                return str(self._filled(load_attribute(self.identify))(weights))
            except WeightsError:
                if not load:
                    raise
        elif not load:
            raise WeightsError(f"The weights of '{self.name}' are known only when it is loaded.")
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


@dataclass(frozen=True, kw_only=True)
class PresetSpec(Spec):
    """A preset: settings of a run under one name, chosen by ``--preset``. It is data, so it needs no ``factory``.

    ``settings`` are what ``--set`` would say (``backbone``, ``image_size``, ``views``, ``epochs``, ``batch_size`` …);
    whatever is left out has its usual value.
    ``dataset_options`` are for datasets that declare them (:attr:`DatasetSpec.options`); others never see them.
    """

    kind: ClassVar[str] = "preset"

    factory: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)
    dataset_options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class SuiteSpec(Spec):
    """A suite: one table or figure of a study. ``name`` is ``study/suite``; people may leave ``study/`` out where no
    other study has a suite of that name. ``file`` is the path of its TOML file; the reported numbers that the file
    names are next to it. It is data, so it needs no ``factory``.
    """

    kind: ClassVar[str] = "suite"
    name_pattern: ClassVar[str] = r"\w[\w.+-]*/\w[\w.+-]*"

    factory: str = ""
    file: str


@dataclass(frozen=True, kw_only=True)
class ObserverSpec(ArgumentSpec):
    """An observer: ``factory`` is called with the directory of a run, and ``argument=`` where the user gave one, and
    returns a :class:`gcdbench.runs.observers.base.Observer`.

    ``requires`` names modules that must be installed; ``extra`` the extra of gcdbench that brings them.
    """

    kind: ClassVar[str] = "observer"

    requires: tuple[str, ...] = ()
    extra: str | None = None

    def bound(self, argument: str | None) -> Self:
        """The spec for one argument; an observer decides itself what it does without."""
        return replace(self, argument=argument) if argument else self

"""Finds plugins, survives broken ones, and answers look-ups by name.

A plugin can break at five stages: import, registration (a hook with an unknown argument), validation
(a misspelt hook), call (a hook that raises) and naming (two plugins with one name). Whatever happens to one,
the others keep working, and asking for what the broken one offered shows the stored error.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import pluggy

from gcdbench.core.errors import PluginError, UnknownName
from gcdbench.plugins import hookspecs
from gcdbench.plugins.checks import hook_names, misspelt_hooks, spec_problem, unmarked_hooks
from gcdbench.plugins.directory import package_offering
from gcdbench.plugins.origin import package_folders, said
from gcdbench.plugins.specs import (
    API_VERSION,
    DEPRECATED_API,
    LOCAL_MODULE,
    ArgumentSpec,
    BackboneSpec,
    DatasetSpec,
    ExecutorSpec,
    MethodSpec,
    MetricSpec,
    ObserverSpec,
    PresetSpec,
    Spec,
    SuiteSpec,
)

ENTRY_POINT_GROUP = "gcdbench"
OWN_DISTRIBUTION = "gcdbench"
PLUGIN_FILES_VARIABLE = "GCDBENCH_PLUGINS"
HOOK_OF_KIND: dict[str, tuple[str, type[Spec]]] = {
    "methods": ("gcdbench_methods", MethodSpec),
    "datasets": ("gcdbench_datasets", DatasetSpec),
    "metrics": ("gcdbench_metrics", MetricSpec),
    "backbones": ("gcdbench_backbones", BackboneSpec),
    "executors": ("gcdbench_executors", ExecutorSpec),
    "observers": ("gcdbench_observers", ObserverSpec),
    "presets": ("gcdbench_presets", PresetSpec),
    "suites": ("gcdbench_suites", SuiteSpec),
}
BUILTIN_MODULES = (
    "gcdbench.datasets.builtin",
    "gcdbench.methods.builtin",
    "gcdbench.metrics.builtin",
    "gcdbench.models.builtin",
    "gcdbench.runs.builtin",
    "gcdbench.runs.executors.builtin",
    "gcdbench.runs.observers.builtin",
)


@dataclass(frozen=True, kw_only=True)
class PluginRecord:
    """What is known of one plugin; ``stage`` and ``error`` are set when something of it broke.

    notes: what works and will not work for ever, with what to write instead.
    """

    name: str
    distribution: str
    version: str
    stage: str = ""
    error: str = ""
    provides: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True when nothing of it broke."""
        return not self.error


@dataclass(frozen=True)
class _Registered:
    spec: Spec
    distribution: str
    version: str


class PluginManager:
    """Loads plugins and holds the registries, one for each kind."""

    def __init__(self, *, points: Sequence[EntryPoint] | None = None, files: Iterable[Path] = ()) -> None:
        self._pluggy = pluggy.PluginManager(hookspecs.PROJECT)
        self._pluggy.add_hookspecs(hookspecs)
        self._problems: list[PluginRecord] = []
        self._origin: dict[str, tuple[str, str]] = {}
        self._files: dict[str, Path] = {}
        self._roots: dict[str, tuple[Path, ...]] = {}
        self._dated: dict[str, list[str]] = {}
        self._registries: dict[str, dict[str, _Registered]] = {kind: {} for kind in HOOK_OF_KIND}
        self._contested: dict[tuple[str, str], str] = {}
        for module in BUILTIN_MODULES:
            self._register(importlib.import_module(module), module, OWN_DISTRIBUTION, _own_version())
        for point in entry_points(group=ENTRY_POINT_GROUP) if points is None else points:
            self._load_entry_point(point)
        for path in dict.fromkeys(Path(file).absolute() for file in files):  # a file named twice is loaded once
            self._load_file(path)
        self._collect()

    # ---- loading

    def _load_entry_point(self, point: EntryPoint) -> None:
        distribution = point.dist.name if point.dist else "unknown distribution"
        version = point.dist.version if point.dist else "?"
        name = f"{distribution}:{point.name}"
        self._roots[name] = package_folders(point.module)
        try:
            module = point.load()
        except (Exception, SystemExit) as error:  # a plugin may raise anything while it is imported
            self._note(name, distribution, version, "import", error)
            return
        if inspect.isroutine(module):
            advice = f"the entry point names the function '{point.value}': name its module, '{point.module}'"
            self._note(name, distribution, version, "import", advice)
            return
        self._register(module, name, distribution, version)

    def _load_file(self, path: Path) -> None:
        """A file given by the user: an error in it is fatal, and the message names the line."""
        if not path.is_file():
            raise PluginError(
                f"The plugin file '{path}' does not exist.", hint="Check the path given to --plugin-file."
            )
        module_name = f"{LOCAL_MODULE}{path.stem.replace('-', '_')}"
        namesake = next((other for other in self._files.values() if other.stem == path.stem), None)
        if namesake is not None:
            raise PluginError(
                f"The plugin files '{namesake}' and '{path}' have the same name.",
                hint="Rename one of them: they would become one module.",
            )
        self._files[str(path)] = path
        self._roots[str(path)] = (path,)
        spec = importlib.util.spec_from_file_location(module_name, path)
        if spec is None or spec.loader is None:
            raise PluginError(f"The plugin file '{path}' is not a Python file.")
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:
            raise PluginError(f"The plugin file '{path}' does not load: {said(error, (path,))}.") from error
        self._register(module, str(path), path.name, "local file")

    def _register(self, module: ModuleType, name: str, distribution: str, version: str) -> None:
        try:
            self._pluggy.register(module, name=name)
        except Exception as error:  # pluggy raises on a hook with an unknown argument but keeps the plugin
            if self._pluggy.has_plugin(name):
                self._pluggy.unregister(name=name)
            self._note(name, distribution, version, "registration", error)
            return
        self._origin[name] = (distribution, version)
        unmarked = unmarked_hooks(module)
        if unmarked:
            advice = f"{', '.join(unmarked)} is not marked as a hook: write @hookimpl above it"
            self._note(name, distribution, version, "validation", advice)
        misspelt = misspelt_hooks(module)
        if misspelt:
            known = ", ".join(sorted(hook_names()))
            self._note(
                name, distribution, version, "validation", f"no such hook: {', '.join(misspelt)} (known: {known})"
            )

    def _collect(self) -> None:
        for kind, (hook_name, spec_class) in HOOK_OF_KIND.items():
            caller = getattr(self._pluggy.hook, hook_name)
            for implementation in caller.get_hookimpls():
                name = implementation.plugin_name
                distribution, version = self._origin.get(name, ("unknown distribution", "?"))
                try:
                    specs = list(implementation.function())
                except (Exception, SystemExit) as error:  # the hook, or its generator, may raise anything
                    self._note(name, distribution, version, f"call of {hook_name}", error)
                    continue
                for spec in specs:
                    problem = spec_problem(spec, spec_class)
                    if problem:
                        self._note(name, distribution, version, f"call of {hook_name}", problem)
                        continue
                    # What comes with gcdbench is always made for its interface.
                    if distribution != OWN_DISTRIBUTION and spec.api != API_VERSION:
                        self._dated.setdefault(name, []).append(spec.name)
                    self._add(kind, spec, name, distribution, version)
        for name in self._dated:
            warnings.warn(f"plugin '{name}': {self._advice(name)}", DeprecationWarning, stacklevel=2)

    def _advice(self, plugin: str) -> str:
        """What the author of a plugin has to write, where it was made for the interface before this one."""
        names = ", ".join(f"'{name}'" for name in dict.fromkeys(self._dated[plugin]))
        return (
            f"the spec of {names} does not say api={API_VERSION}; plugins for interface {DEPRECATED_API} work for one "
            f"more release: read what changed in docs/versioning.md, and write api={API_VERSION} into each spec"
        )

    def _add(self, kind: str, spec: Spec, plugin: str, distribution: str, version: str) -> None:
        registry = self._registries[kind]
        if (kind, spec.name) in self._contested:
            self._note(plugin, distribution, version, "naming", self._contested[kind, spec.name])
            return
        other = registry.get(spec.name)
        if other is None:
            registry[spec.name] = _Registered(spec, distribution, version)
            return
        message = f"two plugins offer a {spec.kind} named '{spec.name}': {other.distribution} and {distribution}"
        self._note(plugin, distribution, version, "naming", message)
        if other.distribution != OWN_DISTRIBUTION:  # a third party may not take a built-in away
            del registry[spec.name]
            self._contested[kind, spec.name] = message

    def _note(self, name: str, distribution: str, version: str, stage: str, error: BaseException | str) -> None:
        text = error if isinstance(error, str) else said(error, self._roots.get(name, ()))
        if name in self._files:  # what the user named must work
            raise PluginError(f"The plugin file '{name}' is broken ({stage}): {text}")
        self._problems.append(
            PluginRecord(name=name, distribution=distribution, version=version, stage=stage, error=text)
        )

    # ---- look-up

    def names(self, kind: str) -> list[str]:
        """Names in one registry, sorted."""
        return sorted(self._registries[kind])

    def specs(self, kind: str) -> list[Spec]:
        """Specs of one registry, sorted by name."""
        return [self._registries[kind][name].spec for name in self.names(kind)]

    def get(self, kind: str, name: str) -> Any:
        """The spec called ``name``; unknown names get the nearest match, broken plugins their stored error.

        ``family:argument`` is looked up as ``family`` and bound to the argument, where its spec knows arguments.
        """
        registry = self._registries[kind]
        key, _, argument = name.partition(":")
        family = registry[key].spec if key in registry else None
        if isinstance(family, ArgumentSpec):
            return family.bound(argument or None)
        if name in registry:
            return registry[name].spec
        singular = kind.removesuffix("s")
        if (kind, name) in self._contested:
            raise PluginError(f"The {singular} '{name}' is not usable: {self._contested[kind, name]}.")
        broken = [p for p in self._problems if p.stage != "naming"]
        related = [p for p in broken if name in p.name or name.replace("-", "_") in p.name or name in p.distribution]
        package = package_offering(kind, name)
        absent = package is not None and package not in {distribution for distribution, _ in self._origin.values()}
        hint = f"A third party's {singular} is known once its package is installed, or with --plugin-file FILE."
        if absent and not related:
            hint = f"The package '{package}' offers it and is not installed here."
        elif related or broken:
            hint = "A plugin that did not load may have offered it: " + "; ".join(
                f"{p.distribution} ({p.stage}): {p.error}" for p in (related or broken)[:3]
            )
        raise UnknownName(singular, name, registry, hint=hint)

    def provider(self, kind: str, name: str) -> tuple[str, str]:
        """Distribution and version that offer ``name``."""
        found = self._registries[kind][name]
        return found.distribution, found.version

    def records(self) -> list[PluginRecord]:
        """One record for each plugin that works and one for each problem."""
        by_distribution: dict[str, dict[str, list[str]]] = {}
        versions: dict[str, str] = {}
        for kind, registry in self._registries.items():
            for name, found in registry.items():
                by_distribution.setdefault(found.distribution, {}).setdefault(kind, []).append(name)
                versions[found.distribution] = found.version
        for distribution, version in self._origin.values():
            by_distribution.setdefault(distribution, {})
            versions.setdefault(distribution, version)
        broken = {p.distribution for p in self._problems}
        notes: dict[str, list[str]] = {}
        for plugin in self._dated:
            notes.setdefault(self._origin[plugin][0], []).append(self._advice(plugin))
        working = [
            PluginRecord(
                name=distribution,
                distribution=distribution,
                version=versions[distribution],
                provides={kind: tuple(sorted(names)) for kind, names in provides.items()},
                notes=tuple(notes.get(distribution, ())),
            )
            for distribution, provides in sorted(by_distribution.items())
            if provides or distribution not in broken
        ]
        return working + self._problems

    def explain(self, error: BaseException) -> str:
        """One line on an error that came out of whatever a plugin offers: kind, message, and its file and line."""
        return said(error, [root for roots in self._roots.values() for root in roots])

    def notify(self, hook_name: str, **arguments: Any) -> list[str]:
        """Call an observer hook of every plugin; an observer that raises is reported, never fatal."""
        failures = []
        caller = getattr(self._pluggy.hook, hook_name)
        for implementation in caller.get_hookimpls():
            wanted = {name: arguments[name] for name in implementation.argnames}
            try:
                implementation.function(**wanted)
            except Exception as error:  # an observer may not stop a run
                who = Path(implementation.plugin_name).name  # of a plugin file: not in which folder it is
                failures.append(f"{who}: {hook_name} raised {self.explain(error)}")
        return failures


def _own_version() -> str:
    from gcdbench import __version__

    return __version__


def plugin_files_from_environment() -> list[Path]:
    """Files named by ``GCDBENCH_PLUGINS``, separated as in PATH."""
    return [Path(part) for part in os.environ.get(PLUGIN_FILES_VARIABLE, "").split(os.pathsep) if part]


@lru_cache(maxsize=1)
def get_manager() -> PluginManager:
    """The process-wide manager; ``GCDBENCH_PLUGINS`` must be set before the first call."""
    return PluginManager(files=plugin_files_from_environment())

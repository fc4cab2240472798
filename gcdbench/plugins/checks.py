"""What is looked at before something of a plugin is used: its hooks' names and marks, and the specs they return."""

from __future__ import annotations

import inspect
import re
from types import ModuleType

from gcdbench.core.errors import PluginError
from gcdbench.plugins import hookspecs
from gcdbench.plugins.specs import API_VERSION, DEPRECATED_API, MetricSpec, Spec, SuiteSpec, checked_scores


def hook_names() -> set[str]:
    """Names of all hooks."""
    return {name for name, _ in inspect.getmembers(hookspecs, inspect.isfunction) if name.startswith("gcdbench_")}


def misspelt_hooks(module: ModuleType) -> list[str]:
    """Functions that were marked as hooks, or are named like one, but match none."""
    marked = [
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value) and (hasattr(value, "gcdbench_impl") or name.startswith("gcdbench_"))
    ]
    return sorted(name for name in marked if name not in hook_names())


def unmarked_hooks(module: ModuleType) -> list[str]:
    """Functions of the module that have the name of a hook but lack the mark that makes them one."""
    return sorted(
        name
        for name, value in vars(module).items()
        if name in hook_names()
        and inspect.isfunction(value)
        and value.__module__ == module.__name__
        and not hasattr(value, "gcdbench_impl")
    )


def spec_problem(spec: object, expected: type[Spec]) -> str | None:
    """Why what a hook returned cannot be used, if so."""
    if not isinstance(spec, expected):
        return f"returned {type(spec).__name__}, expected {expected.__name__}"
    if not (isinstance(spec.name, str) and re.fullmatch(spec.name_pattern, spec.name)):
        # Names become folders of the store.
        form = "study/suite, each with letters" if isinstance(spec, SuiteSpec) else "letters"
        return f"'{spec.name}' cannot be a name: {form}, digits and . + - _ only, a letter or digit first"
    if isinstance(spec, MetricSpec) and not isinstance(spec.scores, str):
        try:
            checked_scores(spec.scores, spec.name)
        except PluginError as error:
            return error.message
    return _interface_problem(spec)


def _interface_problem(spec: Spec) -> str | None:
    """Why a spec cannot be used with this plugin interface, if so; one that does not say what it was made for can."""
    if spec.api is None or (type(spec.api) is int and spec.api in (DEPRECATED_API, API_VERSION)):
        return None
    if type(spec.api) is not int:
        return f"'{spec.name}' says api={spec.api!r}, which is not a plugin interface: write api={API_VERSION}"
    cure = "update gcdbench" if spec.api > API_VERSION else "install a newer version of the plugin"
    return f"'{spec.name}' was made for plugin interface {spec.api}, this gcdbench has interface {API_VERSION}: {cure}"

"""Registers the suites and the setting of the literature with gcdbench. The datasets are part of gcdbench."""

from __future__ import annotations

from collections.abc import Iterable

from gcdbench.plugins import PresetSpec, SuiteSpec, hookimpl
from gcdbench_natural import study


@hookimpl
def gcdbench_presets() -> Iterable[PresetSpec]:
    """The setting in which the published numbers were made."""
    return [study.LITERATURE]


@hookimpl
def gcdbench_suites() -> Iterable[SuiteSpec]:
    """The tables of the literature."""
    return study.suites()

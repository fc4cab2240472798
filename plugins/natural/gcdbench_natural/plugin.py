"""Registers the suites of natural images with gcdbench. The datasets themselves are part of gcdbench."""

from __future__ import annotations

from collections.abc import Iterable

from gcdbench.plugins import SuiteSpec, hookimpl
from gcdbench_natural import study


@hookimpl
def gcdbench_suites() -> Iterable[SuiteSpec]:
    """The tables of the literature."""
    return study.suites()

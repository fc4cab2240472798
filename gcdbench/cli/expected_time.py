"""How long a run will take, in a phrase. Where that is not known on this machine yet it is measured first."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from gcdbench.plugins.manager import PluginManager
    from gcdbench.runs.duration import ImageCount
    from gcdbench.runs.placement import Placement
    from gcdbench.runs.plan import Plan


def say_seconds(seconds: float | None) -> str:
    """Seconds, minutes or hours, for people."""
    if seconds is None:
        return "?"
    if seconds < 90:
        return f"{max(1, seconds):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def say_expected(
    plan: Plan, count: Callable[[], ImageCount | None], placement: Placement, manager: PluginManager
) -> str:
    """What the first line of a run says about time; ``count`` looks at its images, where that is needed."""
    stored = not placement.force and _is_stored(plan, placement, manager)
    if stored and plan.dataset.card is not None:
        return "done before"
    told = _estimate(plan, count(), placement, manager, measure=not stored)
    # One's own images may have changed since; that is seen when they are read.
    return f"{told}, unless done before on these images" if stored else told


def _estimate(
    plan: Plan, count: ImageCount | None, placement: Placement, manager: PluginManager, *, measure: bool
) -> str:
    from gcdbench.core.places import cache_dir
    from gcdbench.runs.duration import Expectations, is_short
    from gcdbench.runs.machine_speed import is_measured, measure_speed

    if count is None:
        return "duration unknown"
    cache, device = placement.cache or cache_dir(), placement.device
    worth_it = measure and plan.method.trained and not is_short(plan, count)
    if worth_it and not is_measured(cache, plan, device=device):
        measure_speed(cache, plan, manager, device=device)
    expected = Expectations(placement).expect(plan, count)
    if expected is None:
        return "less than a minute" if plan.method.trained and is_short(plan, count) else "duration unknown"
    about = f"about {say_seconds(expected.seconds)}"
    return about if plan.method.trained else f"{about}, then clustering"


def _is_stored(plan: Plan, placement: Placement, manager: PluginManager) -> bool:
    """Whether a finished run has these settings; its images are compared later, by their hashes."""
    from gcdbench.reporting.records import cell_records
    from gcdbench.reporting.suites.finding import RunFinder
    from gcdbench.runs.index import load_runs
    from gcdbench.runs.record import DONE

    finder = RunFinder(cell_records(load_runs(placement.runs)), manager)
    return any(record.status == DONE for record in finder.find_plan(plan))

"""``views = "auto"`` becomes what it means, before anything is named by it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

from gcdbench.core.disk_space import parse_size
from gcdbench.core.places import disk_budget

if TYPE_CHECKING:
    from gcdbench.core.arrays import IntArray
    from gcdbench.plugins.manager import PluginManager
    from gcdbench.runs.plan import Placement, RunPlan


def decide_auto_views(
    plan: RunPlan,
    placement: Placement,
    manager: PluginManager,
    *,
    images: int,
    rows: IntArray | None,
    say: Callable[[str], None],
) -> RunPlan:
    """The plan with ``views`` decided from the disk budget, the images and the network; other plans as they are.

    The result depends on nothing else, neither on the free disk nor on what is stored already: what was decided names
    the run.
    """
    if plan.settings.views != "auto" or not plan.method.needs_backbone:
        return plan
    from gcdbench.views.bank import measure_views
    from gcdbench.views.budget import decide_views, explain_views

    budget = disk_budget() if placement.disk_budget is None else parse_size(placement.disk_budget)
    backbone = manager.get("backbones", plan.settings.backbone).load()(plan.settings.weights)
    size = measure_views(backbone, plan.settings.image_size, placement.device, images=images, rows=rows)
    setting = decide_views(size, budget)
    say(explain_views(size, budget, setting))
    return dataclasses.replace(plan, settings=dataclasses.replace(plan.settings, views=str(setting)))

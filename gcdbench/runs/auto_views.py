"""``views = "auto"`` becomes what it means, before anything is named by it."""

from __future__ import annotations

from dataclasses import replace

from gcdbench.core.disk_space import parse_size
from gcdbench.core.places import disk_budget
from gcdbench.runs.events import Note
from gcdbench.runs.execution import Execution, Prepared


def decide_auto_views(execution: Execution, prepared: Prepared) -> Execution:
    """The execution with ``views`` decided from the disk budget, the images and the network; others as they are.

    The result depends on nothing else, neither on the free disk nor on what is stored already: what was decided names
    the run.
    """
    plan, placement = execution.plan, execution.placement
    if plan.settings.views != "auto" or not plan.method.needs_backbone:
        return execution
    from gcdbench.views.bank import measure_views
    from gcdbench.views.budget import decide_views, explain_views

    budget = disk_budget() if placement.disk_budget is None else parse_size(placement.disk_budget)
    backbone = execution.manager.get("backbones", plan.settings.backbone).load()(plan.settings.weights)
    size = measure_views(
        backbone,
        plan.settings.image_size,
        placement.device,
        images=len(prepared.store),
        rows=prepared.training_rows,
    )
    setting = decide_views(size, budget)
    execution.listener(Note(message=explain_views(size, budget, setting)))
    return replace(execution, plan=replace(plan, settings=replace(plan.settings, views=str(setting))))

"""The grid of runs a suite asks for: what exists, what is missing, what cannot be run here, and what it may cost."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gcdbench.core.errors import GCDBenchError
from gcdbench.datasets.catalogue import open_dataset
from gcdbench.plugins.manager import PluginManager
from gcdbench.reporting.records import CellRecord
from gcdbench.reporting.suites.finding import RunFinder, plan_fingerprint
from gcdbench.reporting.suites.model import (
    StandIn,
    Suite,
    SuiteColumn,
    request_for,
    require_protocol,
    stand_in_column,
)
from gcdbench.runs.duration import Expectations, Expected, ImageCount, count_images
from gcdbench.runs.placement import Placement
from gcdbench.runs.plan import Plan, make_plan, split_dataset_name
from gcdbench.runs.record import DONE, RUNNING
from gcdbench.runs.request import Request


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """One run of a suite. ``state``: ``done``, ``running``, ``missing`` or ``impossible``.

    problem, hint: why it is impossible, and what to do.
    """

    row: str
    title: str
    column: str
    request: Request
    state: str
    problem: str = ""
    hint: str = ""
    seconds: float | None = None
    """What it took, or, by the clock, what it will take if it comes next."""
    expected: Expected | None = None
    run_id: str = ""
    mistaken: bool = False
    """The suite asks for something that cannot exist, for example a setting that the method does not have."""


@dataclass(frozen=True, kw_only=True)
class SuitePlan:
    """All runs of a suite under one preset; ``stand_ins``: title of a dataset -> what replaces it."""

    suite: Suite
    preset: str
    runs: tuple[PlannedRun, ...]
    stand_ins: dict[str, str] = field(default_factory=dict)

    def in_state(self, state: str) -> list[PlannedRun]:
        """The runs in one state."""
        return [run for run in self.runs if run.state == state]


def dataset_problem(name: str, manager: PluginManager, data_root: Path | None) -> GCDBenchError | None:
    """Why a dataset cannot be used here, or None when it is there. Lists files, decodes nothing."""
    try:
        open_dataset(name, manager, data_root=data_root, image_size=32)
    except GCDBenchError as error:
        return error
    return None


def plan_suite(
    suite: Suite,
    preset_name: str,
    manager: PluginManager,
    records: Sequence[CellRecord],
    *,
    data_root: Path | None = None,
    seeds: Sequence[int] | None = None,
    protocol: str | None = None,
    rows: Sequence[str] = (),
    datasets: Sequence[str] = (),
    stand_in: StandIn | None = None,
    placement: Placement | None = None,
) -> SuitePlan:
    """Plan the grid; runs that several cells share (one stand-in for four datasets) are planned once.

    placement: of each run, for the time it is expected to take.
    """
    require_protocol(suite, protocol, manager)
    preset = suite.preset(preset_name)
    stand_in = stand_in or preset.stand_in
    finder = RunFinder(records, manager)
    estimate = _Estimate(records, manager, placement)
    planned: dict[str, PlannedRun] = {}
    stand_ins: dict[str, str] = {}
    chosen_rows = suite.rows_named(rows)
    for column in suite.columns_named(datasets):
        problem = dataset_problem(column.dataset, manager, data_root)
        replaced = stand_in == "always" or (stand_in == "missing" and bool(problem))
        used = stand_in_column(suite, column, manager) if replaced else column
        if replaced:
            stand_ins[column.title] = suite.stand_in_dataset
            problem = None
        chosen = None if replaced else protocol
        # Seed by seed: what an interrupted sweep leaves behind can be compared, row with row.
        for seed in seeds or preset.seeds:
            for row in chosen_rows:
                request = request_for(suite, row, used, preset, seed, protocol=chosen)
                key, run = _plan_one(row.key, row.title, used, request, problem, manager, finder, estimate)
                planned.setdefault(key, run)
    return SuitePlan(suite=suite, preset=preset_name, runs=tuple(planned.values()), stand_ins=stand_ins)


def _plan_one(
    row: str,
    title: str,
    column: SuiteColumn,
    request: Request,
    problem: GCDBenchError | None,
    manager: PluginManager,
    finder: RunFinder,
    estimate: _Estimate,
) -> tuple[str, PlannedRun]:
    def planned(state: str, **more: object) -> PlannedRun:
        return PlannedRun(row=row, title=title, column=column.dataset, request=request, state=state, **more)  # type: ignore[arg-type]

    try:
        plan = make_plan(request, manager)
    except GCDBenchError as error:
        installed = request.method in manager.names("methods") and (
            split_dataset_name(request.dataset)[0] in manager.names("datasets")
        )
        planned_run = planned("impossible", problem=error.message, hint=error.hint or "", mistaken=installed)
        return f"{row}/{column.dataset}/{request.seed}", planned_run
    key = f"{plan.dataset_text} {plan_fingerprint(plan)} {plan.seed}"
    found = finder.find_plan(plan)
    done = [record for record in found if record.status == DONE]
    if done:
        return key, planned("done", run_id=done[0].run_id, seconds=done[0].seconds)
    if any(record.status == RUNNING for record in found):
        return key, planned("running")
    if problem:
        return key, planned("impossible", problem=problem.message, hint=problem.hint or "")
    expected = estimate.expect(plan)
    return key, planned("missing", seconds=expected.seconds if expected else None, expected=expected)


class _Estimate:
    """Expected durations: what this machine's speed tells, or else the median of like runs in the store.

    Stored runs may be another machine's, so they count only while this one was not measured. Of methods that are not
    trained they come first, because they know how long clustering takes.
    """

    def __init__(self, records: Sequence[CellRecord], manager: PluginManager, placement: Placement | None) -> None:
        self._known: dict[tuple[object, ...], list[float]] = {}
        self._counts: dict[tuple[str, ...], ImageCount | None] = {}
        self._manager = manager
        self._placement = placement or Placement()
        self._expectations = Expectations(self._placement)
        for record in records:
            if record.status == DONE and record.seconds is not None:
                named = record.identity
                epochs = named.get("training", {}).get("epochs")
                work = (record.method, named.get("backbone"), record.image_size, epochs)
                for name in {record.dataset, record.called}:  # one's own images have a path, which is what plans say
                    self._known.setdefault((name, *work), []).append(record.seconds)

    def expect(self, plan: Plan) -> Expected | None:
        """The next missing run; None where nothing is known."""
        stored = self._median(plan)
        if stored is not None and not plan.method.trained:
            return stored
        count = self._count(plan)
        told = None if count is None else self._expectations.expect(plan, count)
        return told or stored

    def _median(self, plan: Plan) -> Expected | None:
        backbone = plan.settings.backbone if plan.method.needs_backbone else None
        epochs = plan.training.epochs if plan.method.trained else None
        work = (plan.method.name, backbone, plan.settings.image_size, epochs)
        like = self._known.get((plan.dataset_text, *work))
        return Expected(once=0.0, own=statistics.median(like)) if like else None

    def _count(self, plan: Plan) -> ImageCount | None:
        """Images of the plan's dataset, looked for once."""
        size = plan.settings.image_size
        key = (plan.dataset_text, str(size), *map(str, sorted(plan.dataset_options.items())))
        if key not in self._counts:
            self._counts[key] = count_images(plan, self._manager, self._placement)
        return self._counts[key]

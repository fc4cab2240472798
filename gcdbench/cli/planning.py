"""Options of verbs that need a planned run but store none: ``estimate-k`` and ``tune-lr``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gcdbench.cli.options import data_root_option, given_settings, preset_option, protocol_option, setting_options

if TYPE_CHECKING:
    from gcdbench.runs.execution import Execution

_OPTIONS: tuple[Callable[..., Any], ...] = (
    click.option("--dataset", "-d", required=True, help="Dataset, or folder:<path>, or csv:<file>."),
    preset_option,
    protocol_option,
    setting_options,
    click.option("--seed", type=int, default=0, show_default=True, help="Drives everything random."),
    click.option("--dataset-set", multiple=True, metavar="KEY=VALUE", help="Option of the dataset."),
    click.option("--device", default="cpu", show_default=True, help="cpu or cuda."),
    click.option("--threads", type=click.IntRange(min=1), help="Threads for computing."),
    click.option("--accept-data-issues", is_flag=True, help="Continue with a dataset that has known problems."),
    data_root_option,
)


def planning_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """All options that :func:`plan_run` takes."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def plan_run(
    method: str,
    *,
    dataset: str,
    preset: str | None,
    protocol: str | None,
    backbone: str | None,
    seed: int,
    assignments: tuple[str, ...],
    dataset_set: tuple[str, ...],
    device: str,
    threads: int | None,
    accept_data_issues: bool,
    data_root: Path | None,
    k_policy: Any = "known",
) -> Execution:
    """The run these options describe, and where it would be executed."""
    from gcdbench.core.config import parse_assignment
    from gcdbench.plugins.manager import get_manager
    from gcdbench.runs.environment import require_device
    from gcdbench.runs.execution import Execution
    from gcdbench.runs.placement import Placement
    from gcdbench.runs.plan import make_plan
    from gcdbench.runs.request import Request

    require_device(device)
    request = Request(
        method=method,
        dataset=dataset,
        preset=preset,
        protocol=protocol,
        k_policy=k_policy,
        seed=seed,
        overrides=given_settings(assignments, backbone),
        dataset_options=dict(parse_assignment(text) for text in dataset_set),
    )
    placement = Placement(data_root=data_root, device=device, threads=threads, accept_data_issues=accept_data_issues)
    return Execution(plan=make_plan(request, get_manager()), placement=placement, manager=get_manager())

"""``gcdbench run``: one run from images to scores."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gcdbench.cli.echo import say
from gcdbench.cli.options import (
    data_root_option,
    echo_json,
    given_settings,
    json_option,
    old_option,
    old_settings,
    preset_option,
    protocol_option,
    setting_options,
    warn_of_plugins,
)
from gcdbench.cli.placing import placement_options

if TYPE_CHECKING:
    from gcdbench.plugins.manager import PluginManager
    from gcdbench.runs.execution import Execution
    from gcdbench.runs.placement import Placement
    from gcdbench.runs.plan import Plan
    from gcdbench.runs.request import Request
    from gcdbench.runs.runner import RunResult


@click.command("run")
@click.option("--method", "-m", help="Method to run ('gcdbench list methods').")
@click.option("--dataset", "-d", help="Dataset, or folder:<path>, or csv:<file>.")
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="TOML file with these options.")
@click.option("--variant", help="Named settings of the method, for example an ablation.")
@preset_option
@protocol_option
@old_option
@click.option("--split", type=click.Path(), help="A split manifest ('gcdbench data split export') to run on.")
@click.option("--k", "k_policy", type=click.Choice(["known", "estimated"]), help="Is the number of classes known?")
@setting_options
@click.option("--seed", type=int, help="Drives initialisation, order and choice of views (default 0).")
@click.option("--dataset-set", multiple=True, metavar="KEY=VALUE", help="Option of the dataset. May be repeated.")
@data_root_option
@placement_options
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
@json_option
def command(
    method: str | None,
    dataset: str | None,
    config_file: Path | None,
    variant: str | None,
    preset: str | None,
    protocol: str | None,
    old: str | None,
    split: str | None,
    k_policy: str | None,
    backbone: str | None,
    seed: int | None,
    assignments: tuple[str, ...],
    dataset_set: tuple[str, ...],
    placement: Placement,
    quiet: bool,
    as_json: bool,
) -> None:
    """Train a method on a dataset, predict D_u (and the test part), score."""
    from gcdbench.core.config import parse_assignment
    from gcdbench.plugins.manager import get_manager
    from gcdbench.runs.execution import Execution
    from gcdbench.runs.observers.watch import require_observers
    from gcdbench.runs.plan import make_plan
    from gcdbench.runs.request_file import merge_request

    settings = given_settings(assignments, backbone)
    request = merge_request(
        config_file,
        method=method,
        dataset=dataset,
        variant=variant,
        preset=preset,
        protocol=protocol,
        split=split,
        k_policy=k_policy,
        seed=seed,
        overrides={**settings, **old_settings(old)},
        dataset_options=dict(parse_assignment(text) for text in dataset_set),
    )
    manager = get_manager()
    warn_of_plugins(manager)
    require_observers(placement.observe, manager)
    plan = make_plan(request, manager)
    for key in plan.without_effect(settings):
        say(f"Note: '{key}' changes nothing in a run of '{plan.method.name}'.", err=True)
    main_rank = os.environ.get("RANK", "0") == "0"
    if not quiet and not as_json and main_rank:
        say(headline(plan, request, placement, manager))
    result = _execute(
        Execution(plan=plan, placement=placement, manager=manager), quiet=quiet or not main_rank, notes=main_rank
    )
    if not main_rank:
        return
    if as_json:
        echo_json({"path": str(result.directory.path), "reused": result.reused, **result.scores.to_table()})
    else:
        _print_result(result)


def headline(plan: Plan, request: Request, placement: Placement, manager: PluginManager) -> str:
    """The first line of output: preset, backbone, size, epochs, protocol, and how long it will take."""
    from gcdbench.cli.expected_time import say_expected
    from gcdbench.runs.duration import count_images

    settings = plan.settings
    said = f"preset {plan.preset}" + ("" if request.preset else " (by default)")
    parts = [f"{plan.method.name} on {request.dataset}: {said}", f"protocol {plan.protocol.name}", f"seed {plan.seed}"]
    if plan.method.needs_backbone:
        parts.append(f"backbone {settings.backbone}")
    parts.append(f"{settings.image_size} px")
    if plan.method.trained:
        parts += [f"{plan.training.epochs} epochs", f"views {settings.views}"]
    if plan.method.needs_backbone:
        parts.append(say_expected(plan, lambda: count_images(plan, manager, placement), placement, manager))
    return ", ".join(parts)


def _execute(execution: Execution, *, quiet: bool, notes: bool) -> RunResult:
    from dataclasses import replace

    from gcdbench.cli.progress import ProgressDisplay
    from gcdbench.runs.runner import execute

    with ProgressDisplay(quiet=quiet, notes=notes) as display:
        return execute(replace(execution, listener=display))


def next_step(method: str) -> str:
    """What to do with a number that stands alone: the last line of a run."""
    other = "simgcd" if method != "simgcd" else "kmeans"
    return (
        f"Next: compare (the same command with --method {other}, then 'gcdbench table'), or look ('gcdbench report')."
    )


def _print_result(result: RunResult) -> None:
    from gcdbench.cli.present import score_lines

    if result.reused:
        say(f"Reused the finished run {result.directory.path}: nothing was trained.")
    split = result.record.split
    say(f"Old classes: {', '.join(split.old_classes)}")
    say(f"New classes: {', '.join(split.new_classes) or 'none'}")
    for line in score_lines(result.record, result.scores):
        say(line)
    if not result.reused:
        say(f"Stored in {result.directory.path}")
    say(next_step(result.record.method))

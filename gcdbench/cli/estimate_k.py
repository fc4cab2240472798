"""``gcdbench estimate-k``: how many classes does a dataset seem to have, seen through its labelled images?"""

from __future__ import annotations

from typing import Any

import click

from gcdbench.cli.echo import say
from gcdbench.cli.options import echo_json, json_option
from gcdbench.cli.planning import plan_run, planning_options


@click.command("estimate-k")
@planning_options
@click.option(
    "--estimator", default="all", show_default=True, help="gcd (GCD's search), granularity (what runs use), or all."
)
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
@json_option
def command(estimator: str, quiet: bool, as_json: bool, **options: Any) -> None:
    """Estimate the number of classes from frozen features and the labels of labelled images.

    The true number is used only to print the error. A run with '--k estimated' takes what 'granularity' gives here,
    whatever its method.
    """
    from dataclasses import replace

    from gcdbench.cli.progress import ProgressDisplay
    from gcdbench.core.errors import UnknownName
    from gcdbench.methods.algorithms.estimate_k import ESTIMATORS, prepare_sample
    from gcdbench.runs.execution import make_context, prepare_data
    from gcdbench.views.bank import frozen_features

    if estimator != "all" and estimator not in ESTIMATORS:
        raise UnknownName("estimator", estimator, [*ESTIMATORS, "all"])
    execution = plan_run("ss-kmeans", **options)
    plan = execution.plan
    with ProgressDisplay(quiet=quiet or as_json, notes=not as_json) as display:
        execution = replace(execution, listener=display)
        prepared = prepare_data(execution)
        ctx = make_context(execution, prepared)
        data = prepared.split.data(prepared.store.pixels)
        sample = prepare_sample(
            frozen_features(ctx, data.labelled),
            data.labels,
            frozen_features(ctx, data.unlabelled),
            prepared.split.k_old,
        )
    truth = len(prepared.split.classes)
    chosen = ESTIMATORS if estimator == "all" else {estimator: ESTIMATORS[estimator]}
    rows = []
    for name, estimate in chosen.items():
        made = estimate(sample, ctx.rng("estimate-k"))
        rows.append({"estimator": name, "k": made.k, "true_k": truth, "error": made.k - truth, "trials": made.trials})
    if as_json:
        echo_json(
            {
                "dataset": prepared.split.dataset,
                "protocol": plan.protocol.name,
                "backbone": plan.settings.backbone,
                "image_size": plan.settings.image_size,
                "seed": plan.seed,
                "k_old": prepared.split.k_old,
                "labelled": len(sample.labelled),
                "unlabelled": len(sample.unlabelled),
                "estimates": rows,
            }
        )
        return
    say(
        f"{prepared.split.dataset}: {prepared.split.k_old} old classes, {len(sample.labelled)} labelled and "
        f"{len(sample.unlabelled)} unlabelled images, {plan.settings.backbone} at {plan.settings.image_size} px"
    )
    for row in rows:
        say(f"  {row['estimator']:<12} K = {row['k']:<4} (true {truth}, error {row['error']:+d})")

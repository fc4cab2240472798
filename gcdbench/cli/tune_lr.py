"""``gcdbench tune-lr``: a learning rate for one method on one dataset, chosen on old-class images only."""

from __future__ import annotations

from typing import Any

import click

from gcdbench.cli.echo import say
from gcdbench.cli.options import echo_json, json_option
from gcdbench.cli.planning import plan_run, planning_options


@click.command("tune-lr")
@click.option("--method", "-m", required=True, help="Method to tune ('gcdbench list methods').")
@planning_options
@click.option("--k", "k_policy", type=click.Choice(["known", "estimated"]), default="known", show_default=True)
@click.option("--rates", default="0.003,0.01,0.03,0.1", show_default=True, help="Rates to try, with commas.")
@click.option(
    "--share", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.2, show_default=True,
    help="Share of the labelled images that give up their labels.",
)  # fmt: skip
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
@json_option
def command(method: str, k_policy: str, rates: str, share: float, quiet: bool, as_json: bool, **options: Any) -> None:
    """Try learning rates and print the best, by accuracy on labelled images whose labels were held back.

    The chosen rate enters a run by '--set lr=...' and so becomes part of its identity.
    """
    from dataclasses import replace

    from gcdbench.cli.progress import ProgressDisplay
    from gcdbench.core.config import convert
    from gcdbench.core.errors import ConfigError
    from gcdbench.runs.tuning import best_rate, tune_rate

    tried = convert("rates", rates, tuple[float, ...])
    if not tried or min(tried) <= 0:
        raise ConfigError("Rates must be numbers above 0, with commas between them.", hint="--rates 0.01,0.03,0.1")
    execution = plan_run(method, k_policy=k_policy, **options)
    if not execution.plan.method.trained:
        raise ConfigError(f"The method '{method}' trains nothing, so it has no learning rate.")
    with ProgressDisplay(quiet=quiet or as_json, notes=not as_json) as display:
        trials = tune_rate(replace(execution, listener=display), tried, share=share)
    best = best_rate(trials)
    if as_json:
        rows = [{"lr": trial.lr, "accuracy": trial.accuracy, "note": trial.note} for trial in trials]
        echo_json({"method": method, "dataset": execution.plan.dataset_name, "trials": rows, "best": best})
        return
    for trial in trials:
        told = f"{100 * trial.accuracy:5.1f} %" if trial.accuracy is not None else f"failed: {trial.note}"
        say(f"  lr {trial.lr:<8g} {told}{'   best' if trial.lr == best else ''}")
    say(f"Use it with: --set lr={best:g}")

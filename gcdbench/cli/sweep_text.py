"""What a sweep says: its plan, what was submitted, and what came out, for people and as JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcdbench.cli.echo import say
from gcdbench.cli.expected_time import say_seconds

if TYPE_CHECKING:
    from gcdbench.reporting.suites.planning import SuitePlan
    from gcdbench.runs.executors.base import Outcome
    from gcdbench.runs.executors.queue import QueuedJob


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What a sweep took: runs done, wall time, and the share of the places' time that was training steps."""

    runs: int = 0
    seconds: float = 0.0
    step_share: float = 0.0


def run_name(request: Any) -> str:
    """A run in a phrase: method, variant, dataset, seed, settings."""
    settings = " ".join(f"{key}={value}" for key, value in request.overrides.items())
    variant = f":{request.variant}" if request.variant else ""
    return " ".join(filter(None, [f"{request.method}{variant} on {request.dataset}, seed {request.seed}", settings]))


def show_plan(plan: SuitePlan, side_by_side: int, *, every: bool) -> None:
    """Print what exists, what is missing and how long it may take; ``every``: run by run."""
    from gcdbench.runs.duration import add_up

    for title, used in plan.stand_ins.items():
        say(f"{title} is replaced by {used}.")
    for run in plan.runs if every else ():
        if run.state != "impossible":
            cost = f"about {say_seconds(run.seconds)}" if run.state == "missing" else run.run_id
            say(f"{run.state:<9}{run_name(run.request)}  {cost}".rstrip())
    told: set[str] = {""}
    for (problem, hint), count in Counter((run.problem, run.hint) for run in plan.in_state("impossible")).items():
        say(f"{count} run{'' if count == 1 else 's'} cannot be done here: {problem}")
        if hint not in told:
            say(f"  Hint: {hint}")
            told.add(hint)
    missing = plan.in_state("missing")
    known = [run.expected for run in missing if run.expected is not None]
    places = f"with {side_by_side} at a time" if side_by_side else "one after another"
    total = f", about {say_seconds(add_up(known, side_by_side or 1))} {places}" if known else ""
    unknown = f" ({len(missing) - len(known)} of unknown length)" if len(known) < len(missing) else ""
    counts = ", ".join(
        f"{len(found)} {state}"
        for state in ("done", "running", "missing", "impossible")
        if (found := plan.in_state(state)) or state in ("done", "missing")
    )
    say(f"{plan.suite.name}, preset {plan.preset}: {counts}{total}{unknown}.")


def queued_where(job: QueuedJob) -> dict[str, str]:
    """The engine of a queued job, and the name it has there."""
    return {"engine": job.engine, "engine_job": job.engine_job}


def show_submitted(taken: list[bool], executor: str, suite_name: str, runs: Path) -> None:
    """Print how many jobs an engine has taken."""
    left = taken.count(False)
    rest = f", {left} found no room; the same command tries them again" if left else ""
    say(
        f"{taken.count(True)} runs are with {executor}{rest}. 'gcdbench status --runs {runs}' shows them; "
        f"'gcdbench sweep {suite_name} …' without --submit waits for them and sends lost ones again."
    )


def show_outcome(plan: SuitePlan, outcomes: list[Outcome], failed: list[Outcome], suite_name: str, runs: Path) -> None:
    """Print what failed and how many runs are done."""
    for outcome in failed:
        say(f"failed: {run_name(outcome.job.request)}: {outcome.error}", err=True)
    done = len(plan.in_state("done")) + len(outcomes) - len(failed)
    text = f"{done} of {len(plan.runs)} runs are done"
    if failed:
        text += f", {len(failed)} failed; the same command tries those again"
    where = "" if runs == Path("runs") else f" --runs {runs}"
    say(f"{text}. See 'gcdbench table {suite_name}{where}'.")


def show_spent(spent: Spent) -> None:
    """Print how long the sweep took."""
    if spent.runs:
        text = f"{spent.runs} run{'' if spent.runs == 1 else 's'} in {say_seconds(spent.seconds)}"
        say(text + (f", {100 * spent.step_share:.0f} % of it training steps." if spent.step_share else "."))


def plain_plan(plan: SuitePlan) -> dict[str, Any]:
    """A plan as plain values, for JSON."""
    return {
        "suite": plan.suite.name,
        "preset": plan.preset,
        "stand_ins": plan.stand_ins,
        "runs": [
            {
                "row": run.row,
                "dataset": run.column,
                "seed": run.request.seed,
                "protocol": run.request.protocol,
                "state": run.state,
                "problem": run.problem,
                "hint": run.hint,
                "seconds": run.seconds,
                "run_id": run.run_id,
            }
            for run in plan.runs
        ],
    }

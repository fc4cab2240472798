"""Published-style loop against ours: the same images, network, batch and losses, measured in turns.

What a whole run takes is put together from measured parts: seconds per step, seconds per evaluated image, seconds for
preparing the store and the bank. The parts of both loops are measured round by round, one after the other, so that
a slow minute of the machine hits both.
"""

from __future__ import annotations

import dataclasses
import tempfile
from statistics import median
from typing import Any

from benchmarks.speed.settings import Settings, finish, measure, start


def measure_round(settings: Settings, *, ours_first: bool) -> dict[str, Any]:
    """One round: published style and ours, each with all threads and as one run per core; ours also online.

    With them the matrix products of our steps alone: what a run would take if everything else were free.
    """
    if ours_first:
        return {**measure_ours(settings), **measure_published(settings)}
    return {**measure_published(settings), **measure_ours(settings)}


def measure_ours(settings: Settings) -> dict[str, Any]:
    """From a bank that is built here, from the same bank with one run per core, and online."""
    alone = dataclasses.replace(settings, threads=1, workers=1)
    with tempfile.TemporaryDirectory() as cache:
        return {
            "bank": measure("ours", dataclasses.replace(settings, cache=cache)),
            "side_by_side": measure_together("ours", dataclasses.replace(alone, cache=cache), settings.threads),
            "online": measure("ours", dataclasses.replace(settings, cache=cache, views="online")),
            "products": measure("step", few(settings, cache)),
            "products_side_by_side": measure_together("step", few(alone, cache), settings.threads),
        }


def few(settings: Settings, cache: str) -> Settings:
    """A step's matrix products do not depend on how many images and views there are: few are made faster."""
    return dataclasses.replace(settings, cache=f"{cache}/few", images=min(settings.images, 256), views="bank:2")


def measure_published(settings: Settings) -> dict[str, Any]:
    """With all threads on one run, and with one run per core."""
    alone = dataclasses.replace(settings, threads=1, workers=1)
    return {
        "published": measure("published", settings),
        "published_side_by_side": measure_together("published", alone, settings.threads),
    }


def measure_together(module: str, settings: Settings, count: int) -> list[dict[str, Any]]:
    """The same measurement in ``count`` processes at once."""
    return [finish(process) for process in [start(module, settings) for _ in range(count)]]


RATIOS = ("ratio_one_run", "ratio_many_runs", "ratio_online", "bound_one_run", "bound_many_runs")


def summarise(
    settings: Settings, rounds: list[dict[str, Any]], *, total: int, epochs: int, runs: int
) -> dict[str, Any]:
    """The figures of :func:`put_together` over all rounds, and the ratios of each round by itself."""
    figures = put_together(settings, rounds, total=total, epochs=epochs, runs=runs)
    each = [put_together(settings, [entry], total=total, epochs=epochs, runs=runs) for entry in rounds]
    figures["ratios_by_round"] = {name: [one[name] for one in each] for name in RATIOS}
    return {**figures, "rounds": rounds}


def put_together(
    settings: Settings, rounds: list[dict[str, Any]], *, total: int, epochs: int, runs: int
) -> dict[str, Any]:
    """Views per second and ratios for runs of ``epochs`` on ``total`` images; a run's views are those it trains on."""
    views = 2 * settings.batch
    steps = epochs * (total // settings.batch)
    unlabelled = 0.75 * total

    def seconds(kind: str, key: str) -> float:
        return float(median(entry[kind][key] for entry in rounds))

    def together(kind: str, evaluations: int) -> float:
        """Seconds per run where as many runs as cores run at once."""
        rates = (
            sum(1 / (steps * one["step"] + evaluations * unlabelled * one["evaluation"]) for one in entry[kind])
            for entry in rounds
        )
        return float(median(1 / rate for rate in rates))

    share = total / rounds[0]["bank"]["images"]
    decoding, building = share * seconds("bank", "prepare"), share * seconds("bank", "bank")
    wall = {
        "published": steps * seconds("published", "step") + epochs * unlabelled * seconds("published", "evaluation"),
        "published, many runs": together("published_side_by_side", epochs),
        "online": decoding + steps * seconds("online", "step") + unlabelled * seconds("online", "evaluation"),
        "bank": decoding + building + steps * seconds("bank", "step") + unlabelled * seconds("bank", "evaluation"),
        "bank, many runs": (decoding + building) / runs + together("side_by_side", 1),
    }
    rates = {name: steps * views / value for name, value in wall.items()}
    best = min(wall["published"], wall["published, many runs"])
    alone = [sum(1 / one["products_alone"] for one in entry["products_side_by_side"]) for entry in rounds]
    return {
        "backbone": settings.backbone,
        "image_size": settings.image_size,
        "batch": settings.batch,
        "views": settings.views,
        "images": total,
        "epochs": epochs,
        "runs": runs,
        "step_views_per_second": {
            "published": views / seconds("published", "step"),
            "online": views / seconds("online", "step"),
            "bank": views / seconds("bank", "step"),
            "side by side": views * median(sum(1 / one["step"] for one in entry["side_by_side"]) for entry in rounds),
        },
        "bank_views_per_second": rounds[0]["bank"]["images"]
        * (int(settings.views.partition(":")[2]) + 1)
        / seconds("bank", "bank"),
        "run_seconds": wall,
        "run_views_per_second": rates,
        "ratio_one_run": rates["bank"] / rates["published"],
        "ratio_many_runs": best / wall["bank, many runs"],
        "bound_one_run": wall["published"] / (steps * seconds("products", "products_alone")),
        "bound_many_runs": best / (steps / median(alone)),
        "ratio_online": rates["online"] / rates["published"],
    }

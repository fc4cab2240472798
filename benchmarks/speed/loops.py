"""Published-style loop against ours: the same images, network, batch and losses, measured in turns.

What a whole run takes is put together from measured parts: seconds a step, seconds an evaluated image, seconds for
preparing the store and the bank. The parts of both loops are measured round by round, one after the other, so that
a slow minute of the machine hits both.
"""

from __future__ import annotations

import dataclasses
import tempfile
from statistics import median
from typing import Any

from benchmarks.speed.settings import Settings, finish, measure, start


def measure_round(settings: Settings) -> dict[str, Any]:
    """One round: published style, ours from a bank and online with all threads, two of ours with one thread each."""
    alone = dataclasses.replace(settings, threads=1)
    with tempfile.TemporaryDirectory() as cache:
        bank = measure("ours", dataclasses.replace(settings, cache=cache))
        pair = [start("ours", dataclasses.replace(alone, cache=cache)) for _ in range(settings.threads)]
        side_by_side = [finish(process) for process in pair]
        online = measure("ours", dataclasses.replace(settings, cache=cache, views="online"))
    return {"published": measure("published", settings), "bank": bank, "online": online, "side_by_side": side_by_side}


def summarise(
    settings: Settings, rounds: list[dict[str, Any]], *, total: int, epochs: int, runs: int
) -> dict[str, Any]:
    """Views a second and ratios for runs of ``epochs`` on ``total`` images; a run's views are those it trains on."""
    views = 2 * settings.batch
    steps = epochs * (total // settings.batch)
    unlabelled = 0.75 * total

    def seconds(kind: str, key: str) -> float:
        return median(entry[kind][key] for entry in rounds)

    share = total / rounds[0]["bank"]["images"]
    preparation = share * (seconds("bank", "prepare") + seconds("bank", "bank"))
    side = median(sum(1 / one["step"] for one in entry["side_by_side"]) for entry in rounds)
    wall = {
        "published": steps * seconds("published", "step") + epochs * unlabelled * seconds("published", "evaluation"),
        "online": share * seconds("online", "prepare")
        + steps * seconds("online", "step")
        + unlabelled * seconds("online", "evaluation"),
        "bank": preparation + steps * seconds("bank", "step") + unlabelled * seconds("bank", "evaluation"),
    }
    wall["bank, many runs"] = (preparation + runs * steps / side) / runs
    wall["published, many runs"] = wall["published"]
    rates = {name: steps * views / value for name, value in wall.items()}
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
            "side by side": views * side,
        },
        "bank_views_per_second": rounds[0]["bank"]["images"]
        * (int(settings.views.partition(":")[2]) + 1)
        / seconds("bank", "bank"),
        "run_seconds": wall,
        "run_views_per_second": rates,
        "ratio_one_run": rates["bank"] / rates["published"],
        "ratio_many_runs": rates["bank, many runs"] / rates["published"],
        "ratio_online": rates["online"] / rates["published"],
        "rounds": rounds,
    }

"""What a run cost, beside what it scored: its time, and how many images it was shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SPENT = ("seconds", "images_seen")
"""Scores that say what a run cost; a table gives each of them a single column."""


def spent(record: Mapping[str, Any]) -> dict[str, float]:
    """What a run cost by score, as far as a run's record tells them.

    seconds: fit and predict; not known of a resumed run. images_seen: epochs × whole batches × images a batch, each
    image in two views; 0 without training. What a method looks at beside its batches counts as time only.
    """
    found: dict[str, float] = {}
    times: Mapping[str, float] = record.get("seconds") or {}
    if times:
        found["seconds"] = sum(times.values())
    counts: Mapping[str, int] = (record.get("split") or {}).get("counts") or {}
    images = counts.get("labelled", 0) + counts.get("unlabelled", 0)
    if images and "identity" in record:
        training: Mapping[str, Any] = record["identity"].get("training") or {}
        batch = min(training.get("batch_size", 1), images)
        found["images_seen"] = float(training.get("epochs", 0) * (images // batch) * batch)
    return found

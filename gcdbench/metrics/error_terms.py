"""The four groups of wrong images, described once: by the map, and by the head of a method with anchored clusters."""

from __future__ import annotations

from dataclasses import replace

from gcdbench.metrics.score import percent

BY_MAP = (
    percent(
        "true_old_confusion",
        "true-old confusion",
        meaning="old taken for another old",
        direction="lower",
        decimals=2,
    ),
    percent("false_new", "false-new", meaning="old taken for new", direction="lower", decimals=2),
    percent("false_old", "false-old", meaning="new taken for old", direction="lower", decimals=2),
    percent(
        "true_new_confusion",
        "true-new confusion",
        meaning="new taken for another new",
        direction="lower",
        decimals=2,
    ),
)
"""Under the one-to-one map of the headline accuracy."""

BY_HEAD = tuple(replace(score, key=f"head_{score.key}", title=f"{score.title} by the head") for score in BY_MAP)
"""Where the first clusters are held to be the old classes that the method tied them to."""

TERMS = tuple(score.key for score in BY_MAP)
HEAD_TERMS = tuple(score.key for score in BY_HEAD)
"""The same four in the same order."""

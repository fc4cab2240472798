"""What the terminal says of a run's scores."""

from __future__ import annotations

from typing import Any

import pytest

from gcdbench.cli.present import score_lines
from gcdbench.metrics.accuracy import accuracy
from gcdbench.metrics.decomposition import error_decomposition
from gcdbench.metrics.decomposition_head import error_decomposition_head
from gcdbench.metrics.ties import ties

RECORD: dict[str, Any] = {"protocol": "half", "identity": {"protocol": {"k_policy": "known"}}}


def said(y_true: list[int], cluster: list[int], is_old: list[bool], *, anchored: bool) -> str:
    metrics = (accuracy, error_decomposition, error_decomposition_head, ties)
    values = {key: value for metric in metrics for key, value in metric(y_true, cluster, is_old, anchored).items()}
    entry = {"n": len(y_true), "old_share": 0.5, "scores": values}
    return "\n".join(score_lines(RECORD, {"sets": {"transductive": entry}}))


HIDDEN_BIAS = ([0, 0, 1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0, 0, 0], [True, False])
"""The new class sits in the cluster that the old class was tied to; the map calls all of it right."""


def test_errors_by_the_map_and_by_the_head_stand_side_by_side() -> None:
    [line] = [line for line in said(*HIDDEN_BIAS, anchored=True).splitlines() if "false-old" in line]
    assert line.split()[:3] == ["0.0", "75.0", "false-old"]


def test_without_anchored_clusters_only_the_map_counts() -> None:
    text = said(*HIDDEN_BIAS, anchored=False)
    [line] = [line for line in text.splitlines() if "false-old" in line]
    assert line.split()[:2] == ["0.0", "false-old"]
    assert "head" not in text


def test_scores_that_were_stored_before_there_were_these_metrics_are_shown() -> None:
    values = {"all": 90.0, "old": 90.0, "new": 90.0, "false_old": 10.0}
    entry = {"n": 10, "old_share": 0.5, "scores": values}
    lines = score_lines(RECORD, {"sets": {"transductive": entry}})
    assert any(line.split()[:2] == ["10.0", "false-old"] for line in lines)


@pytest.mark.parametrize(
    ("y_true", "cluster", "is_old", "expected"),
    [
        ([0] * 4 + [1] * 4, [0, 0, 0, 1] * 2, [True, False], "Old 25.0 to 75.0, New 25.0 to 75.0"),
        ([0] * 4 + [1] * 4, [0, 0, 0, 1] * 2, [True, True], "Old and New are the same under all of them"),
        ([0] * 4 + [1] * 4, [0] * 4 + [1] * 4, [True, False], ""),
    ],
)
def test_ties_are_said_with_their_range(
    y_true: list[int], cluster: list[int], is_old: list[bool], expected: str
) -> None:
    text = said(y_true, cluster, is_old, anchored=False)
    assert ("Several maps are equally good" in text) == bool(expected)
    assert expected in text

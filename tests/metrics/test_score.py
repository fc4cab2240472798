"""Descriptions of scores: what they refuse, and what is known of a score that nobody described."""

from __future__ import annotations

import pytest

from gcdbench.metrics.score import Score, ScoreCatalogue, percent


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"key": ""}, "needs the key"),
        ({"key": "x", "direction": "up"}, "'higher', 'lower', 'none'"),
        ({"key": "x", "decimals": -1}, "number of digits"),
        ({"key": "x", "bounds": (1, 0)}, "lowest and highest"),
    ],
)
def test_a_description_that_means_nothing_is_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Score(**wrong)  # type: ignore[arg-type]


def test_bounds_and_decimals() -> None:
    share, count = percent("false_old", "false-old", decimals=2), Score(key="k", bounds=(1, None))
    assert [share.clipped(value) for value in (-3.0, 50.0, 101.0)] == [0.0, 50.0, 100.0]
    assert [count.clipped(value) for value in (0.0, 1e9)] == [1.0, 1e9]
    assert (share.written(3.14159), share.written(3.14159, signed=True)) == ("3.14", "+3.14")


def test_a_score_that_nobody_described_is_shown_and_never_won() -> None:
    catalogue = ScoreCatalogue.of([Score(key="loss", direction="lower"), Score(key="loss", direction="higher")])
    assert catalogue["loss"].direction == "lower"
    assert "my_own_score" not in catalogue
    assert catalogue["my_own_score"].title == "my own score"
    assert catalogue["my_own_score"].direction == "none"

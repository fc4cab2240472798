"""``views = "auto"``: what it decides fits, and nothing better would."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcdbench.core.errors import ConfigError
from gcdbench.core.places import disk_budget
from gcdbench.views.budget import ENOUGH, FEW, ViewSize, decide_views, explain_views, rank_decision
from gcdbench.views.setting import ViewSetting, parse_views

NCT = ViewSize(images=107_180, training=100_000, height=8, width=8, channels=112)


@given(
    images=st.integers(1, 10**6),
    share=st.floats(0.01, 1),
    side=st.integers(1, 30),
    channels=st.integers(1, 1024),
    budget=st.integers(0, 10**11),
)
def test_the_decision_fits_and_is_the_best_that_does(
    images: int, share: float, side: int, channels: int, budget: int
) -> None:
    size = ViewSize(images=images, training=max(int(share * images), 1), height=side, width=side, channels=channels)
    setting = decide_views(size, budget)
    assert parse_views(str(setting)) == setting
    assert size.bank_bytes(setting) <= budget
    whole = ViewSetting(kind="bank", count=ENOUGH)
    if size.bank_bytes(whole) <= budget:
        assert setting == whole
    elif setting.kind == "bank8":
        assert FEW <= setting.count <= ENOUGH
    if setting.kind in ("bank8", "rolling") and setting.count < ENOUGH:
        assert size.bank_bytes(ViewSetting(kind="bank8", count=setting.count + 1)) > budget
    if setting.kind == "online":
        assert size.bank_bytes(ViewSetting(kind="bank8", count=2)) > budget
    assert str(setting) in explain_views(size, budget, setting)
    rank = rank_decision(setting)
    assert rank is not None
    more = rank_decision(decide_views(size, 2 * budget))
    assert more is not None
    assert more <= rank


@pytest.mark.parametrize("views", ["bank:4", "bank:17", "bank8:5", "bank8:17", "rolling:6", "rolling:4/2", "auto"])
def test_what_is_never_decided_has_no_rank(views: str) -> None:
    assert rank_decision(parse_views(views)) is None


@pytest.mark.parametrize(
    ("budget", "expected"),
    [(30e9, "bank:16"), (14e9, "bank8:16"), (8e9, "bank8:8"), (6e9, "rolling:5"), (3e9, "online")],
)
def test_a_hundred_thousand_images(budget: float, expected: str) -> None:
    """Worked by hand: a test view of 14,336 bytes for 107,180 images, 7,616 bytes for each of 100,000 and each view."""
    assert str(decide_views(NCT, int(budget))) == expected


def test_the_budget_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GCDBENCH_DISK_BUDGET", "6GB")
    assert disk_budget() == 6 * 10**9
    monkeypatch.setenv("GCDBENCH_DISK_BUDGET", "plenty")
    with pytest.raises(ConfigError, match="'plenty' is not a size"):
        disk_budget()
    monkeypatch.delenv("GCDBENCH_DISK_BUDGET")
    assert disk_budget() == 8 * 10**9

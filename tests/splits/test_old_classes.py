"""Old classes by name or number."""

from __future__ import annotations

import pytest

from gcdbench.core.errors import ConfigError, UnknownName
from gcdbench.splits.protocol import Protocol

CLASSES = ("cecum", "polyps", "0", "ulcer")


def old(*names: str) -> tuple[int, ...]:
    return Protocol(name="p", old_rule="named", old_names=names).old_classes([5] * len(CLASSES), CLASSES)


def test_names_and_numbers_need_not_be_consecutive() -> None:
    assert old("ulcer", "cecum") == (0, 3)
    assert old("3", "1") == (1, 3)
    assert old("0") == (2,)  # a class of that name comes before the number


def test_unknown_and_all_classes_are_refused() -> None:
    for name in ("polyp", "4", "-1", "²"):
        with pytest.raises(UnknownName):
            old(name)
    with pytest.raises(ConfigError):
        old(*CLASSES)


def test_what_is_younger_than_stored_runs_is_silent_by_default() -> None:
    assert not {"k", "old_names"} & set(Protocol(name="p").card())
    assert Protocol(name="p", k=8).card()["k"] == 8

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


def test_the_split_seed_draws_the_old_classes() -> None:
    def drawn(seed: int, classes: int = 8, **more: int) -> tuple[int, ...]:
        return Protocol(name="p", old_rule="drawn", split_seed=seed, **more).old_classes([9] * classes)

    draws = [drawn(seed) for seed in range(200)]
    assert draws == [drawn(seed) for seed in range(200)]
    assert all(len(set(old)) == 4 and old == tuple(sorted(old)) for old in draws)
    assert len(set(draws)) > 50  # of the 70 that there are
    share = [sum(number in old for old in draws) / len(draws) for number in range(8)]
    assert all(0.35 < part < 0.65 for part in share), share
    assert len(drawn(3, old_count=2)) == 2
    assert set(drawn(3, old_count=2)) < set(drawn(3, old_count=5)), "one order of the classes for each seed"


def test_a_draw_does_not_depend_on_class_sizes() -> None:
    protocol = Protocol(name="p", old_rule="drawn", split_seed=5)
    assert protocol.old_classes([1, 2, 3, 4, 5]) == protocol.old_classes([5, 4, 3, 2, 1])

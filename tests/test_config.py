"""Settings: every value is checked against its field."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcdbench.core.config import (
    ADDED_LATER,
    Bounds,
    Count,
    NotNegative,
    Positive,
    Share,
    apply_overrides,
    field_types,
    parse_assignment,
    to_plain,
    to_settable,
)
from gcdbench.core.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Inner:
    mode: Literal["slow", "fast"] = "slow"
    share: float | None = None


@dataclass(frozen=True, kw_only=True)
class Outer:
    count: int = 3
    rate: float = 0.5
    name: str = "a"
    flag: bool = False
    parts: tuple[int, ...] = (1, 2)
    inner: Inner = field(default_factory=Inner)


def test_keys_of_nested_configs_are_dotted() -> None:
    assert set(field_types(Outer)) == {"count", "rate", "name", "flag", "parts", "inner.mode", "inner.share"}


def test_text_becomes_the_field_type() -> None:
    texts = {
        "count": "7",
        "rate": "1e-3",
        "flag": "true",
        "parts": "4,5,6",
        "inner.mode": "fast",
        "inner.share": "0.25",
    }
    changed = apply_overrides(Outer(), texts)
    assert changed == Outer(count=7, rate=1e-3, flag=True, parts=(4, 5, 6), inner=Inner(mode="fast", share=0.25))
    assert apply_overrides(changed, {"inner.share": "none"}).inner.share is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("count", "2.5"),
        ("count", True),
        ("count", 2.0),
        ("rate", "much"),
        ("flag", "yes"),
        ("flag", 1),
        ("inner.mode", "medium"),
        ("inner.share", "half"),
        ("parts", "1,x"),
        ("name", 5),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_by_name(key: str, value: object) -> None:
    with pytest.raises(ConfigError, match=key):
        apply_overrides(Outer(), {key: value})


def test_an_unknown_key_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"no setting 'inner.mod'; did you mean 'inner.mode'"):
        apply_overrides(Outer(), {"inner.mod": "fast"})


@pytest.mark.parametrize("text", ["count", "=3", ""])
def test_malformed_assignments_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="key=value"):
        parse_assignment(text)


@given(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_survive_the_way_through_text(count: int, rate: float) -> None:
    assert apply_overrides(Outer(), {"count": str(count), "rate": repr(rate)}) == Outer(count=count, rate=rate)


@dataclass(frozen=True, kw_only=True)
class Odd:
    file: str | None = None
    level: Literal[1, 2] = 1
    size: tuple[int, float] = (1, 2.0)
    words: tuple[str, ...] = ()


def test_none_is_a_text_where_any_text_is_allowed() -> None:
    """``--set weights=none`` asks for a random network; it must not become "not said", the pretrained one."""
    assert apply_overrides(Odd(), {"file": "none"}).file == "none"
    assert apply_overrides(Odd(file="x"), {"file": None}).file is None


def test_choices_among_numbers_and_tuples_of_fixed_length() -> None:
    assert apply_overrides(Odd(), {"level": "2", "size": "3,4.5"}) == Odd(level=2, size=(3, 4.5))
    assert apply_overrides(Odd(), {"words": "a,b"}).words == ("a", "b")
    with pytest.raises(ConfigError, match="'size' must have 2 values, not 3"):
        apply_overrides(Odd(), {"size": "1,2,3"})
    with pytest.raises(ConfigError, match="'level' must be one of 1, 2"):
        apply_overrides(Odd(), {"level": "3"})


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", float("nan")])
def test_numbers_must_be_finite(value: object) -> None:
    with pytest.raises(ConfigError, match="'rate' must be a finite number"):
        apply_overrides(Outer(), {"rate": value})


@dataclass(frozen=True, kw_only=True)
class Bounded:
    share: Share = 0.5
    rate: Positive = 0.1
    weight: NotNegative = 1.0
    count: Count = 1
    momentum: Annotated[float, Bounds(least=0, below=1)] = 0.9
    inner: Inner = field(default_factory=Inner)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("share", "35", "'share' must be at least 0 and at most 1, not 35."),
        ("share", -0.1, "'share' must be at least 0 and at most 1, not -0.1."),
        ("rate", "0", "'rate' must be above 0, not 0."),
        ("weight", "-1", "'weight' must be at least 0, not -1."),
        ("count", 0, "'count' must be at least 1, not 0."),
        ("count", "1.5", "'count' must be of type int, not '1.5'."),
        ("momentum", "1", "'momentum' must be at least 0 and below 1, not 1."),
    ],
)
def test_a_number_out_of_bounds_is_refused_with_its_bounds(key: str, value: object, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        apply_overrides(Bounded(), {key: value})
    assert refused.value.message == said


def test_numbers_at_their_bounds_are_taken() -> None:
    edges = {"share": "1", "rate": "1e-9", "weight": "0", "count": "1", "momentum": "0"}
    assert apply_overrides(Bounded(), edges) == Bounded(share=1.0, rate=1e-9, weight=0.0, count=1, momentum=0.0)


@dataclass(frozen=True, kw_only=True)
class Grown:
    """``Inner`` some versions later."""

    mode: Literal["slow", "fast"] = "slow"
    share: float | None = None
    limit: int | None = field(default=None, metadata=ADDED_LATER)
    turns: Count = field(default=3, metadata=ADDED_LATER)


@dataclass(frozen=True, kw_only=True)
class OuterOfGrown:
    count: int = 3
    rate: float = 0.5
    name: str = "a"
    flag: bool = False
    parts: tuple[int, ...] = (1, 2)
    inner: Grown = field(default_factory=Grown)


@given(
    st.sampled_from(["slow", "fast"]),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
    st.none() | st.integers(),
    st.integers(1, 5),
)
def test_a_field_added_later_names_nothing_while_it_has_its_default(mode, share, limit, turns) -> None:  # type: ignore[no-untyped-def]
    before = to_plain(Outer(inner=Inner(mode=mode, share=share)))
    now = to_plain(OuterOfGrown(inner=Grown(mode=mode, share=share, limit=limit, turns=turns)))
    added = {name: value for name, value, rest in (("limit", limit, None), ("turns", turns, 3)) if value != rest}
    assert now == {**before, "inner": {**before["inner"], **added}}


def test_a_field_added_later_is_written_down_and_read_back_like_any_other() -> None:
    changed = apply_overrides(OuterOfGrown(), {"inner.turns": "4"})
    for config in (OuterOfGrown(), changed):
        table = to_settable(config)
        assert set(table["inner"]) == {"mode", "share", "limit", "turns"}
        inner = {f"inner.{key}": value for key, value in table.pop("inner").items()}
        assert apply_overrides(OuterOfGrown(), {**table, **inner}) == config


def test_plain_values_are_those_of_json() -> None:
    assert to_plain(Outer(parts=(1, 2))) == {
        "count": 3, "rate": 0.5, "name": "a", "flag": False, "parts": [1, 2], "inner": {"mode": "slow", "share": None},
    }  # fmt: skip

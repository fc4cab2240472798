"""How a score is read: its title, unit, direction, decimals and bounds. Imports no numpy: listing stays cheap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

Direction = Literal["higher", "lower", "none"]
"""Which values are better; ``"none"`` for a score that cannot be won, such as a number of clusters."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """One number that a metric returns under ``key``, as tables, figures and reports have to know it.

    title: its name in a header, made from the key where it is left out; meaning: half a sentence for whoever asks.
    direction: which values are better; only then may the best row of a table be bold.
    bounds: lowest and highest possible value, None where there is none; no interval is drawn beyond them.

    >>> Score(key="fragments", unit="clusters", direction="lower", bounds=(1, None)).title
    'fragments'
    """

    key: str
    title: str = ""
    meaning: str = ""
    unit: str = ""
    direction: Direction = "none"
    decimals: int = 1
    bounds: tuple[float | None, float | None] = (None, None)

    def __post_init__(self) -> None:
        if not isinstance(self.key, str) or not self.key:
            raise ValueError(f"a score needs the key under which its metric returns it, not {self.key!r}")
        if self.direction not in get_args(Direction):
            known = ", ".join(map(repr, get_args(Direction)))
            raise ValueError(f"the direction of score '{self.key}' is one of {known}, not {self.direction!r}")
        if not isinstance(self.decimals, int) or self.decimals < 0:
            raise ValueError(f"the decimals of score '{self.key}' are a number of digits, not {self.decimals!r}")
        low, high = self.bounds
        if low is not None and high is not None and low > high:
            raise ValueError(f"the bounds of score '{self.key}' are its lowest and highest value, not {low}, {high}")
        if not self.title:
            object.__setattr__(self, "title", self.key.replace("_", " "))

    def clipped(self, value: float) -> float:
        """The value, or the bound that it lies beyond."""
        low, high = self.bounds
        value = value if low is None else max(value, low)
        return value if high is None else min(value, high)

    def written(self, value: float, *, signed: bool = False) -> str:
        """The value with its decimals; a difference always has its sign."""
        return f"{value:{'+' if signed else ''}.{self.decimals}f}"


def percent(
    key: str, title: str, *, meaning: str = "", direction: Direction = "higher", decimals: int = 1, least: float = 0.0
) -> Score:
    """A score in percent, from ``least`` to 100."""
    return Score(
        key=key,
        title=title,
        meaning=meaning,
        unit="%",
        direction=direction,
        decimals=decimals,
        bounds=(least, 100.0),
    )


def all_old_new(prefix: str, said: str, *, direction: Direction = "higher") -> tuple[Score, ...]:
    """All, Old and New of one way to count, for example ``v1_all``, titled ``All, v1``."""
    return tuple(
        percent(f"{prefix}{part.lower()}", f"{part}{said}", direction=direction) for part in ("All", "Old", "New")
    )


@dataclass(frozen=True, kw_only=True)
class ScoreCatalogue:
    """What is known of scores by their keys. A key that nobody described gives a score without a direction."""

    described: Mapping[str, Score] = field(default_factory=dict)

    @classmethod
    def of(cls, scores: Iterable[Score]) -> ScoreCatalogue:
        """The first description of a key counts: a later one cannot change the direction of another's score."""
        found: dict[str, Score] = {}
        for score in scores:
            found.setdefault(score.key, score)
        return cls(described=found)

    def __getitem__(self, key: str) -> Score:
        return self.described.get(key) or Score(key=key)

    def __contains__(self, key: object) -> bool:
        return key in self.described

    def __iter__(self) -> Iterator[str]:
        return iter(self.described)

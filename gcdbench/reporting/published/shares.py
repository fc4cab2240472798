"""The old classes' share w that rounded numbers allow, from All = w·Old + (1 − w)·New."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gcdbench.reporting.published.reported import Rounded

SLACK = 1e-9


@dataclass(frozen=True, kw_only=True)
class Share:
    """An interval of w, the old classes' share."""

    low: float
    high: float

    def __contains__(self, w: float) -> bool:
        return self.low - SLACK <= w <= self.high + SLACK

    def overlaps(self, other: Share) -> bool:
        """Whether some w lies in both."""
        return self.low <= other.high + SLACK and other.low <= self.high + SLACK

    def __str__(self) -> str:
        return f"{self.low:.3f} to {self.high:.3f}"


def allowed_share(all_: Rounded, old: Rounded, new: Rounded) -> Share | None:
    """The w in [0, 1] for which some unrounded All, Old, New satisfy the identity; None when there is none.

    For fixed w the right side ranges over [w·old.low + (1−w)·new.low, w·old.high + (1−w)·new.high], so that
    two inequalities, linear in w, say all.
    """
    share = _below(Share(low=0.0, high=1.0), old.low - new.low, all_.high - new.low)
    return _below(share, new.high - old.high, new.high - all_.low) if share else None


def _below(share: Share, slope: float, bound: float) -> Share | None:
    """The part of ``share`` where slope·w <= bound."""
    low, high = share.low, share.high
    if abs(slope) < SLACK:
        return share if bound >= -SLACK else None
    if slope > 0:
        high = min(high, bound / slope)
    else:
        low = max(low, bound / slope)
    if low > high + SLACK:
        return None
    return Share(low=min(low, high), high=high)


def miss(all_: Rounded, old: Rounded, new: Rounded, w: float) -> float:
    """Points between All and the nearest value that Old and New allow at this w; 0 when they fit."""
    low, high = w * old.low + (1 - w) * new.low, w * old.high + (1 - w) * new.high
    return max(0.0, low - all_.high, all_.low - high)


def consensus(shares: Sequence[Share]) -> tuple[Share | None, int]:
    """The interval of w that most of the intervals contain (the first, if several), and how many do."""
    best: Share | None = None
    most = 0
    for low in sorted({share.low for share in shares}):
        covering = [share for share in shares if low in share]
        if len(covering) > most:
            best, most = Share(low=low, high=min(share.high for share in covering)), len(covering)
    return best, most


def share_of_side(terms: Sequence[Rounded], accuracy: Rounded) -> Share:
    """Share of a side from its errors: their sum is (the side's share) · (100 − its accuracy)."""
    low, high = sum(term.low for term in terms), sum(term.high for term in terms)
    most, least = 100 - accuracy.low, max(100 - accuracy.high, SLACK)
    return Share(low=max(0.0, low / most), high=min(1.0, high / least))

"""Can printed percentages be counts? Shares of a D_u of known size are multiples of one over that size.

An accuracy or an error term of one run is a whole number of images out of D_u; a mean over r runs is a whole number out
of r times as many. Printed digits leave an interval for each of them. Whether whole numbers exist that give all printed
scores of a row at once is decided exactly: in fractions, and without trying numbers one by one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

from gcdbench.metrics.error_terms import TERMS
from gcdbench.reporting.published.reported import ACCURACIES, ReportedRow, Rounded

MOST_RUNS = 20
"""Largest number of runs whose mean is looked for."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How many images of old and of new classes D_u has."""

    old: int
    new: int

    def __str__(self) -> str:
        return f"{self.old} old + {self.new} new"


@dataclass(frozen=True, kw_only=True)
class CountVerdict:
    """One row against the D_u of one protocol.

    runs: the numbers of runs, of 1 to ``MOST_RUNS``, whose mean may be printed like this; 1 is a single run.
    real: whether fractions of an image would do. Where not, another w is the reason and not the size of D_u.
    """

    row: ReportedRow
    protocol: str
    sizes: Sizes
    runs: tuple[int, ...]
    real: bool

    @property
    def single(self) -> bool:
        """Whether a single run may have been printed like this."""
        return 1 in self.runs


def possible_counts(scores: Mapping[str, Rounded], sizes: Sizes, runs: int = 1) -> bool:
    """Whether whole numbers of wrong images, summed over ``runs`` runs, exist that are printed as ``scores``.

    scores: any of the accuracies and of the error terms, in percent. A tie may have been rounded either way.
    """
    return _fits(scores, sizes, runs, whole=True)


def possible_shares(scores: Mapping[str, Rounded], sizes: Sizes) -> bool:
    """The same with fractions of images: what a mean over more and more runs approaches."""
    return _fits(scores, sizes, 1, whole=False)


def possible_runs(scores: Mapping[str, Rounded], sizes: Sizes, most: int = MOST_RUNS) -> tuple[int, ...]:
    """The numbers of runs, 1 to ``most``, whose mean may be printed as ``scores``."""
    return tuple(runs for runs in range(1, most + 1) if possible_counts(scores, sizes, runs))


def judge_counts(rows: Sequence[ReportedRow], sizes: Mapping[str, Mapping[str, Sequence[Sizes]]]) -> list[CountVerdict]:
    """Every row against every D_u that is known for its dataset.

    sizes: dataset -> protocol -> the sizes it allows (several where it is open how half an image is rounded); of these
    the one counts that fits most.
    """
    verdicts = []
    for row in rows:
        if not row.has(ACCURACIES) and not row.has(TERMS):
            continue
        for protocol, allowed in sizes.get(row.dataset, {}).items():
            tried = [
                CountVerdict(
                    row=row,
                    protocol=protocol,
                    sizes=each,
                    runs=possible_runs(row.scores, each),
                    real=possible_shares(row.scores, each),
                )
                for each in allowed
            ]
            verdicts.append(max(tried, key=lambda verdict: (verdict.single, verdict.real, len(verdict.runs))))
    return verdicts


def count_findings(verdicts: Sequence[CountVerdict], claimed: str | None = None) -> list[str]:
    """A sentence about each row that cannot be a single run on any D_u whose w would do; verdicts of a row stand
    together.

    claimed: the protocol that the table says it follows; only its D_u is asked then.
    """
    findings = []
    for _, of_row in groupby(verdicts, key=lambda verdict: id(verdict.row)):
        fitting = [v for v in of_row if v.real and claimed in (None, v.protocol)]
        if not fitting or any(verdict.single for verdict in fitting):
            continue
        row = fitting[0].row
        named = "; ".join(
            f"{', '.join(v.protocol for v in fitting if v.sizes == sizes)} ({sizes}), {told_runs(runs)}"
            for sizes, runs in dict.fromkeys((v.sizes, v.runs) for v in fitting)
        )
        what = "All, Old and New" if row.has(ACCURACIES) else "error terms"
        findings.append(
            f"{row.name} on {row.dataset}: no single run gives the printed {what} as counts of images: {named}"
        )
    return findings


def told_runs(runs: Sequence[int]) -> str:
    """Which means could have been printed: ``2, 4, 5, 6`` as "a mean of 2, 4 to 6 runs could"."""
    if not runs:
        return f"no mean of up to {MOST_RUNS} runs either"
    if runs[0] == 1:
        return "one run could"
    spans: list[list[int]] = []
    for number in runs:
        if spans and number == spans[-1][-1] + 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    texts = [str(span[0]) if len(span) == 1 else f"{span[0]} to {span[-1]}" for span in spans]
    return f"a mean of {', '.join(texts)} runs could"


def _fits(scores: Mapping[str, Rounded], sizes: Sizes, runs: int, *, whole: bool) -> bool:
    """Intervals of wrong images on each side. Sums of whole numbers from intervals take every value in between, so the
    two sides and their sum say all."""
    old_size, new_size = runs * sizes.old, runs * sizes.new
    everything = old_size + new_size
    if not everything:
        return not scores
    terms = {key: _count(scores.get(key), everything, everything, whole) for key in TERMS}
    old = _both(
        _sum(terms["true_old_confusion"], terms["false_new"]), _wrong(scores.get("old"), old_size, old_size, whole)
    )
    new = _both(
        _sum(terms["false_old"], terms["true_new_confusion"]), _wrong(scores.get("new"), new_size, new_size, whole)
    )
    total = _both(_sum(old, new), _wrong(scores.get("all"), everything, everything, whole))
    return all(low <= high for low, high in (*terms.values(), old, new, total))


Interval = tuple[Fraction, Fraction]


def _count(printed: Rounded | None, size: int, most: int, whole: bool) -> Interval:
    """Numbers in 0 .. most whose share of ``size`` is printed like this."""
    low, high = Fraction(0), Fraction(most)
    if printed is not None:
        value, half = _exact(printed)
        low, high = max(low, (value - half) * size / 100), min(high, (value + half) * size / 100)
    return (Fraction(math.ceil(low)), Fraction(math.floor(high))) if whole else (low, high)


def _wrong(accuracy: Rounded | None, size: int, most: int, whole: bool) -> Interval:
    """Numbers of wrong images for which this accuracy is printed."""
    low, high = _count(accuracy, size, most, whole)
    return size - high, size - low


def _sum(first: Interval, second: Interval) -> Interval:
    return first[0] + second[0], first[1] + second[1]


def _both(first: Interval, second: Interval) -> Interval:
    return max(first[0], second[0]), min(first[1], second[1])


def _exact(printed: Rounded) -> tuple[Fraction, Fraction]:
    """The printed number and half a unit of its last digit, without the error of a float."""
    text = str(printed)
    decimals = len(text.partition(".")[2])
    return Fraction(text), Fraction(1, 2 * 10**decimals)

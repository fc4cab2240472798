"""Statistics of benchmark scores: spread, intervals, paired tests, ranks, and when to claim nothing.

Pure functions on numbers. Everything random draws from a fixed seed, so that a table can be rebuilt.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, betaincinv, stdtrit  # scipy.stats would take longer to import than a table to build

FloatArray = NDArray[np.float64]
Key = TypeVar("Key", bound=Hashable)

EXACT_PAIRS = 32
"""Up to this many pairs all 2^n sign patterns count; beyond, the sum of coin flips is normal for all purposes."""


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A confidence interval and where it comes from.

    kind: ``"t"`` over runs, ``"bootstrap"`` over samples of one run, ``"order"`` between order statistics of runs, or
    ``"exact"`` for a share of runs.
    """

    low: float
    high: float
    level: float
    kind: str


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a table cell says about the runs behind it; ``sd`` (ddof = 1) and ``interval`` need two runs."""

    n: int
    mean: float
    sd: float | None
    interval: Interval | None


def summarise(values: Sequence[float], level: float = 0.95) -> Summary:
    """Mean, sample standard deviation and t interval of one score over independent runs."""
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        raise ValueError("there is nothing to summarise")
    sd = float(array.std(ddof=1)) if array.size > 1 else None
    return Summary(n=array.size, mean=float(array.mean()), sd=sd, interval=t_interval(values, level))


def t_interval(values: Sequence[float], level: float = 0.95) -> Interval | None:
    """Student's interval for the mean over runs; None for fewer than two runs, which say nothing about spread."""
    array = np.asarray(values, dtype=np.float64)
    if array.size < 2:
        return None
    reach = float(stdtrit(array.size - 1, (1 + level) / 2)) * array.std(ddof=1) / math.sqrt(array.size)
    return Interval(low=float(array.mean() - reach), high=float(array.mean() + reach), level=level, kind="t")


def bootstrap_interval(
    correct: ArrayLike, groups: ArrayLike | None = None, *, level: float = 0.95, draws: int = 2000, seed: int = 0
) -> Interval:
    """Percentile bootstrap of an accuracy in percent over the samples of one run.

    correct: (N,) whether each sample is right under the Hungarian map of the whole run: the map is held fixed,
        because fitting it again to every resample would mix its optimism into the interval.
    groups: (N,) patient or lesion of each sample; whole groups are drawn, since images of one are not independent.
    """
    right = np.asarray(correct, dtype=np.float64)
    if right.size == 0:
        raise ValueError("there is nothing to resample")
    rng = np.random.default_rng(seed)
    if groups is None:  # a resample of N independent right/wrong marks is a binomial draw
        means = rng.binomial(right.size, right.mean(), draws) / right.size
    else:
        _, member = np.unique(np.asarray(groups), return_inverse=True)
        size = np.bincount(member).astype(np.float64)
        hits = np.bincount(member, weights=right)
        means = np.empty(draws)
        even = np.full(size.size, 1 / size.size)
        for start in range(0, draws, 200):  # in pieces: draws x groups would not fit for large data
            piece = rng.multinomial(size.size, even, min(200, draws - start))
            means[start : start + len(piece)] = (piece @ hits) / (piece @ size)
    low, high = np.quantile(100 * means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(low=float(low), high=float(high), level=level, kind="bootstrap")


def sign_flip_test(differences: Sequence[float]) -> float:
    """Two-sided paired randomisation test: p of a mean at least as far from 0 when every sign is a coin flip.

    differences: one for each (dataset, seed) that both methods ran. Exact up to EXACT_PAIRS pairs.
    """
    array = np.asarray(differences, dtype=np.float64)
    observed = abs(array.sum()) * (1 - 1e-12) - 1e-12  # sums in another order may differ in the last bit
    if observed <= 0:
        return 1.0
    if array.size > EXACT_PAIRS:
        return math.erfc(observed / math.sqrt(2 * float(array @ array)))
    # Every sum of all pairs is one of the first half's plus one of the second's: two short lists instead of 2^n sums.
    first, second = _signed_sums(array[: array.size // 2]), np.sort(_signed_sums(array[array.size // 2 :]))
    above = second.size - np.searchsorted(second, observed - first, side="left")
    below = np.searchsorted(second, -observed - first, side="right")
    return float((above.sum() + below.sum()) / 2.0**array.size)


def _signed_sums(values: FloatArray) -> FloatArray:
    """(2^n,) the sums of n values under every pattern of signs."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums - value, sums + value])
    return sums


def sign_test(differences: Sequence[float]) -> float:
    """Two-sided exact sign test of a median of 0: how often differences are above, whatever their size.

    Unlike :func:`sign_flip_test` it does not assume that differences are distributed symmetrically. Zeros are left out.
    """
    above = sum(difference > 0 for difference in differences)
    below = sum(difference < 0 for difference in differences)
    return 1.0 if above == below else min(1.0, 2.0 * float(bdtr(min(above, below), above + below, 0.5)))


def median_interval(values: Sequence[float], level: float = 0.95) -> Interval | None:
    """Interval of the median between two order statistics, whatever the distribution; None for too few values.

    The narrowest pair (k-th smallest, k-th largest) that covers the median with at least this probability: from six
    values on for 95 %.
    """
    ordered = sorted(values)
    n = len(ordered)
    covers = [k for k in range(1, n // 2 + 1) if 1 - 2 * float(bdtr(k - 1, n, 0.5)) >= level]
    if not covers:
        return None
    return Interval(low=ordered[covers[-1] - 1], high=ordered[n - covers[-1]], level=level, kind="order")


def share_interval(hits: int, n: int, level: float = 0.95) -> Interval:
    """Clopper and Pearson's exact interval of a share, as a share."""
    tail = (1 - level) / 2
    low = 0.0 if hits == 0 else float(betaincinv(hits, n - hits + 1, tail))
    high = 1.0 if hits == n else float(betaincinv(hits + 1, n - hits, 1 - tail))
    return Interval(low=low, high=high, level=level, kind="exact")


def smallest_p(pairs: int) -> float:
    """The smallest p that the sign-flip test can reach with so many pairs."""
    return min(1.0, 2.0 / 2.0**pairs)


def pairs_needed(comparisons: int = 1, alpha: float = 0.05) -> int:
    """Pairs below which no difference, however large, can be significant after Holm's correction."""
    return math.ceil(math.log2(2 * max(1, comparisons) / alpha))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p values, in the order given."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, running = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = running
    return adjusted


@dataclass(frozen=True, kw_only=True)
class PairedDifference:
    """One method minus another over the runs they share: in how many of them it is above, and the test's p."""

    summary: Summary
    above: int
    p: float


def paired_difference(scores: Mapping[Key, float], reference: Mapping[Key, float]) -> PairedDifference | None:
    """Difference over the keys (a seed, or dataset and seed) that both have; None when they share none."""
    differences = shared_differences(scores, reference)
    if not differences:
        return None
    return PairedDifference(
        summary=summarise(differences),
        above=sum(difference > 0 for difference in differences),
        p=sign_flip_test(differences),
    )


def shared_differences(scores: Mapping[Key, float], reference: Mapping[Key, float]) -> list[float]:
    """Score minus reference for each key of the reference that both have, in the reference's order."""
    return [scores[key] - value for key, value in reference.items() if key in scores]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The best method of a column against every other one.

    p: adjusted p value of each other method; pairs: how many runs each shares with the best.
    decided: the best beats every other method; reason: one sentence, always.
    """

    best: str
    p: Mapping[str, float]
    pairs: Mapping[str, int]
    decided: bool
    reason: str


def compare_with_best(
    scores: Mapping[str, Mapping[Hashable, float]], *, alpha: float = 0.05, higher_is_better: bool = True
) -> Comparison | None:
    """Test the method with the best mean against all others, paired over the keys (dataset, seed) they share.

    The mean is over all runs of a method. Where another one is ahead in the runs both have, p is 1: a test of the
    difference would not say which of them is better. None when fewer than two methods have scores.
    """
    scores = {name: runs for name, runs in scores.items() if runs}
    if len(scores) < 2:
        return None
    sign = 1.0 if higher_is_better else -1.0
    best = max(scores, key=lambda name: sign * float(np.mean(list(scores[name].values()))))
    others = [name for name in scores if name != best]
    raw, pairs, ahead = [], {}, []
    for name in others:
        differences = shared_differences(scores[best], scores[name])
        pairs[name] = len(differences)
        if sign * math.fsum(differences) < 0:
            ahead.append(name)
        raw.append(1.0 if name in ahead else sign_flip_test(differences))
    adjusted = dict(zip(others, holm(raw), strict=True))
    losing = [name for name in others if adjusted[name] > alpha]
    # What a win in every shared run would give: where even that is not enough, there are too few of them.
    at_best = dict(zip(others, holm([min(1.0, 2.0 ** (1 - pairs[name])) for name in others]), strict=True))
    short = [pairs[name] for name in losing if at_best[name] > alpha]
    if not losing:
        reason = f"{best} is better than each of {len(others)} others (paired sign-flip test, Holm, p <= {alpha:g})"
    elif short:
        against = "1 comparison" if len(others) == 1 else f"{len(others)} comparisons"
        needed = pairs_needed(len(others), alpha)
        reason = f"too few shared runs for any claim: {min(short)}; at least {needed} are needed for {against}"
    elif ahead:
        reason = f"{best} has the best mean, but is behind in the runs it shares with {', '.join(ahead)}"
    else:
        reason = f"{best} has the best mean but is not distinguishable from {', '.join(losing)}"
    return Comparison(best=best, p=adjusted, pairs=pairs, decided=not losing, reason=reason)


def mean_rank(scores: Mapping[str, Mapping[Hashable, float]], *, higher_is_better: bool = True) -> dict[str, float]:
    """Mean rank (1 = best, ties share the mean) of each method over the keys that all of them have."""
    if not scores:
        return {}
    shared = set.intersection(*(set(runs) for runs in scores.values()))
    if not shared:
        return {}
    keys = sorted(shared, key=repr)
    table = np.array([[runs[key] for key in keys] for runs in scores.values()])
    ordered = -table if higher_is_better else table
    below = (ordered[None] < ordered[:, None]).sum(axis=1)
    equal = (ordered[None] == ordered[:, None]).sum(axis=1)
    ranks = below + (equal + 1) / 2  # tied methods share the mean of their places
    return dict(zip(scores, (float(r) for r in ranks.mean(axis=1)), strict=True))

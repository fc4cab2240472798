"""Statistics against scipy, enumeration in plain Python, and properties."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from gcdbench.reporting.statistics import (
    bootstrap_interval,
    compare_with_best,
    holm,
    mean_rank,
    median_interval,
    pairs_needed,
    share_interval,
    sign_flip_test,
    sign_test,
    smallest_p,
    summarise,
    t_interval,
)

numbers = st.floats(-100, 100, allow_nan=False)


@given(st.lists(numbers, min_size=2, max_size=12))
@settings(deadline=None)
def test_summary_agrees_with_scipy(values):
    summary = summarise(values)
    assert summary.n == len(values)
    assert summary.mean == pytest.approx(sum(values) / len(values), abs=1e-9)
    variance = sum((v - summary.mean) ** 2 for v in values) / (len(values) - 1)
    assert summary.sd == pytest.approx(math.sqrt(variance), abs=1e-6)
    if variance > 1e-12:
        low, high = scipy_stats.t.interval(0.95, len(values) - 1, np.mean(values), scipy_stats.sem(values))
        assert summary.interval.low == pytest.approx(low, rel=1e-9)
        assert summary.interval.high == pytest.approx(high, rel=1e-9)


def test_one_run_has_no_spread():
    summary = summarise([80.0])
    assert (summary.n, summary.mean, summary.sd, summary.interval) == (1, 80.0, None, None)
    assert t_interval([]) is None
    with pytest.raises(ValueError, match="nothing to summarise"):
        summarise([])


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=9))
@settings(deadline=None)
def test_sign_flip_by_enumeration(differences):
    observed = abs(sum(differences))
    flips = list(itertools.product((-1, 1), repeat=len(differences)))
    expected = sum(abs(sum(s * d for s, d in zip(f, differences, strict=True))) >= observed for f in flips) / len(flips)
    assert sign_flip_test(differences) == pytest.approx(expected)


@given(st.lists(st.integers(-50, 50), min_size=10, max_size=32))
@settings(deadline=None)
def test_sign_flip_of_many_pairs_by_counting_sums(differences):
    """Whole numbers have few different sums: count the ways to each of them, pair by pair."""
    ways = Counter({0: 1})
    for difference in differences:
        after = Counter()
        for total, count in ways.items():
            after[total + difference] += count
            after[total - difference] += count
        ways = after
    extreme = sum(count for total, count in ways.items() if abs(total) >= abs(sum(differences)))
    assert sign_flip_test(differences) == pytest.approx(extreme / 2 ** len(differences))


def test_sign_flip_agrees_with_scipy_permutation_test():
    differences = np.array([0.5, 1.2, -0.3, 2.0, 0.7, 1.1, 0.2, 0.9])
    found = scipy_stats.permutation_test(
        (differences, np.zeros_like(differences)),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    )
    assert sign_flip_test(differences) == pytest.approx(found.pvalue)


@pytest.mark.parametrize("n", [30, 200])
def test_many_pairs_are_approximated_and_stay_close_to_the_t_test(n):
    differences = np.random.default_rng(0).normal(2.2 / math.sqrt(n), 1.0, n)
    assert sign_flip_test(differences) == pytest.approx(scipy_stats.ttest_1samp(differences, 0).pvalue, rel=0.25)
    assert sign_flip_test(differences) == sign_flip_test(differences)
    assert sign_flip_test([0.0] * n) == 1.0
    assert sign_flip_test([5.0] * n) < 1e-4


def test_smallest_p_and_pairs_needed():
    for n in (*range(1, 9), 20, 31, 32):
        assert sign_flip_test([1.0] * n) == pytest.approx(smallest_p(n))
    assert pairs_needed() == 6
    for m in range(1, 12):
        n = pairs_needed(m)
        assert m * smallest_p(n) <= 0.05 < m * smallest_p(n - 1)


def test_holm_by_hand():
    # Textbook steps: 4 * .005, 3 * .01, 2 * .03, 1 * .04 made monotone.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_lies_between_no_correction_and_bonferroni(p):
    adjusted = holm(p)
    for before, after in zip(p, adjusted, strict=True):
        assert before <= after <= 1
    smallest = min(range(len(p)), key=lambda i: p[i])
    assert adjusted[smallest] == pytest.approx(min(1, len(p) * p[smallest]))
    assert sorted(adjusted) == [adjusted[i] for i in np.argsort(p, kind="stable")]


def test_bootstrap_covers_like_the_normal_approximation():
    correct = np.arange(2000) < 1500
    interval = bootstrap_interval(correct)
    reach = 1.96 * math.sqrt(0.75 * 0.25 / 2000) * 100
    assert interval.low == pytest.approx(75 - reach, abs=0.25)
    assert interval.high == pytest.approx(75 + reach, abs=0.25)


def test_groups_widen_the_interval_as_their_size_says():
    # 200 groups of 10 images that are right or wrong together: as uncertain as 200 images.
    correct = np.repeat(np.arange(200) < 150, 10)
    groups = np.repeat(np.arange(200), 10)
    grouped, alone = bootstrap_interval(correct, groups), bootstrap_interval(correct)
    ratio = (grouped.high - grouped.low) / (alone.high - alone.low)
    assert ratio == pytest.approx(math.sqrt(10), rel=0.1)
    singles = bootstrap_interval(correct, np.arange(2000))
    assert singles.high - singles.low == pytest.approx(alone.high - alone.low, rel=0.1)


def test_bootstrap_has_its_nominal_coverage():
    rng = np.random.default_rng(5)
    covered = 0
    for trial in range(200):
        interval = bootstrap_interval(rng.random(400) < 0.7, draws=400, seed=trial)
        covered += interval.low <= 70 <= interval.high
    assert 0.89 <= covered / 200 <= 0.99


def test_comparison_says_when_seeds_are_too_few():
    scores = {"a": {s: 90.0 + s for s in range(3)}, "b": {s: 50.0 + s for s in range(3)}}
    result = compare_with_best(scores)
    assert result.best == "a"
    assert not result.decided
    assert "too few shared runs" in result.reason
    assert "at least 6" in result.reason


def test_comparison_decides_with_enough_pairs_and_only_shared_ones_count():
    a = {("kvasir", s): 90.0 + s for s in range(8)}
    b = {("kvasir", s): 80.0 + s for s in range(2, 8)} | {("other", 0): 0.0}
    result = compare_with_best({"a": a, "b": b, "empty": {}})
    assert result.decided
    assert result.pairs == {"b": 6}
    assert result.p["b"] == pytest.approx(2 / 64)
    lower = compare_with_best({"a": a, "b": b}, higher_is_better=False)
    assert lower.best == "b"
    noisy = {key: value + (12 if key[1] % 2 else -9) for key, value in a.items()}
    assert "not distinguishable" in compare_with_best({"a": a, "noisy": noisy}).reason
    assert compare_with_best({"a": a}) is None


def test_too_few_runs_are_the_reason_only_where_more_wins_could_not_have_helped():
    """Six wins of six against one row are enough for Holm's last step; what is lacking is a win over the other."""
    best = {s: 50.0 + s for s in range(20)}
    beaten = {s: 40.0 + s for s in range(6)}
    close = {s: 50.0 + s + (1.0 if s % 2 else -1.1) for s in range(20)}
    result = compare_with_best({"best": best, "beaten": beaten, "close": close})
    assert (result.best, result.decided) == ("best", False)
    assert result.reason == "best has the best mean but is not distinguishable from beaten, close"
    weak = {s: 30.0 + s for s in range(20)}
    assert compare_with_best({"best": best, "beaten": beaten, "close": weak}).decided


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_best_mean_that_others_are_ahead_of_in_shared_runs_decides_nothing(sign):
    """Easy runs that only one method has can give it the best mean although it loses every run it shares."""
    easy = {("pbc", s): sign * (90.0 + s) for s in range(8)}
    both = {("pbc", s): sign * (95.0 + s) for s in range(8)} | {("ham", s): sign * 40.0 for s in range(8)}
    third = {("pbc", s): sign * (20.0 + s) for s in range(8)}
    result = compare_with_best({"easy": easy, "both": both, "third": third}, higher_is_better=sign > 0)
    assert result.best == "easy"
    assert not result.decided
    assert result.p["both"] == 1.0
    assert result.p["third"] == pytest.approx(2 * 2 / 2**8)
    assert result.reason == "easy has the best mean, but is behind in the runs it shares with both"


def test_mean_rank_with_ties_over_shared_keys():
    scores = {"a": {1: 3.0, 2: 1.0, 3: 9.0}, "b": {1: 2.0, 2: 1.0}, "c": {1: 1.0, 2: 5.0}}
    assert mean_rank(scores) == pytest.approx({"a": (1 + 2.5) / 2, "b": (2 + 2.5) / 2, "c": (3 + 1) / 2})
    assert mean_rank({}) == {}
    assert mean_rank({"a": {1: 1.0}, "b": {2: 1.0}}) == {}


@pytest.mark.parametrize("above", range(11))
@pytest.mark.parametrize("zeros", [0, 2])
def test_the_sign_test_is_the_exact_binomial_test(above: int, zeros: int) -> None:
    differences = [0.5 + i for i in range(above)] + [-0.1] * (10 - above) + [0.0] * zeros
    assert sign_test(differences) == pytest.approx(scipy_stats.binomtest(above, 10).pvalue)


def test_one_large_difference_moves_the_sign_flip_test_and_not_the_sign_test() -> None:
    assert sign_test([1.0] * 9 + [-100.0]) == sign_test([1.0] * 9 + [-1.0])
    assert sign_test([]) == 1.0


@pytest.mark.parametrize("n", range(1, 25))
def test_the_interval_of_a_median_is_scipys(n: int) -> None:
    values = np.random.default_rng(n).normal(size=n).tolist()
    found = median_interval(values)
    expected = scipy_stats.quantile_test(values, q=0, p=0.5).confidence_interval(0.95)
    if found is None:
        assert n < 6
        assert math.isnan(expected.low) or math.isnan(expected.high)
    else:
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_the_interval_of_a_share_is_scipys() -> None:
    for n in (1, 3, 10, 20):
        for hits in range(n + 1):
            found = share_interval(hits, n)
            expected = scipy_stats.binomtest(hits, n).proportion_ci(method="exact")
            assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)

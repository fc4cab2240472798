"""Printed percentages as counts of images: every combination of counts by brute force, and tables made to (not) fit."""

from __future__ import annotations

import json
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from gcdbench.cli.audit_numbers import command
from gcdbench.core.errors import GCDBenchError
from gcdbench.metrics.error_terms import TERMS
from gcdbench.reporting.published.counts import (
    Sizes,
    count_findings,
    judge_counts,
    possible_counts,
    possible_runs,
    possible_shares,
    told_runs,
)
from gcdbench.reporting.published.protocols import sizes_of_protocol
from gcdbench.reporting.published.reported import ACCURACIES, ReportedRow, Rounded, parse_printed
from gcdbench.splits.protocol import Protocol

PAPER_ERRORS = Path(__file__).parents[2] / "plugins/medxplore/gcdbench_medxplore/study/reported/medxplore_errors.csv"

HALF_UP, HALF_EVEN = ROUND_HALF_UP, ROUND_HALF_EVEN


def printed(share: Fraction, decimals: int, rounding: str = HALF_UP) -> Rounded:
    """A share in percent as a table would have it."""
    exact = Decimal(share.numerator * 100) / Decimal(share.denominator)
    rounded = parse_printed(str(exact.quantize(Decimal(1).scaleb(-decimals), rounding=rounding)))
    assert rounded is not None
    return rounded


def scores_of(wrong: tuple[int, ...], old: int, new: int) -> dict[str, Fraction]:
    """All seven scores of a run from its wrong images: old as old, old as new, new as old, new as new."""
    everything = old + new
    shares = {key: Fraction(count, everything) for key, count in zip(TERMS, wrong, strict=True)}
    shares["all"] = 1 - Fraction(sum(wrong), everything)
    shares["old"] = 1 - Fraction(sum(wrong[:2]), old)
    shares["new"] = 1 - Fraction(sum(wrong[2:]), new)
    return shares


def exists(scores: dict[str, Rounded], old: int, new: int) -> bool:
    """Whether any four counts give what is printed, by trying all of them."""
    for wrong in product(range(old + 1), range(old + 1), range(new + 1), range(new + 1)):
        if sum(wrong[:2]) <= old and sum(wrong[2:]) <= new:
            shares = scores_of(wrong, old, new)
            if all(abs(100 * shares[key] - Fraction(str(r))) <= Fraction(r.half) for key, r in scores.items()):
                return True
    return False


@st.composite
def small_rows(draw: st.DrawFn) -> tuple[dict[str, Rounded], int, int]:
    """Some of the seven scores near those of a real run on a D_u of a few images, with few digits."""
    old, new = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    first, third = draw(st.integers(0, old)), draw(st.integers(0, new))
    wrong = (first, draw(st.integers(0, old - first)), third, draw(st.integers(0, new - third)))
    keys = draw(st.sets(st.sampled_from([*ACCURACIES, *TERMS]), min_size=1))
    decimals = draw(st.integers(0, 1))
    moved = st.sampled_from([Fraction(0), Fraction(1, 100), Fraction(-3, 100), Fraction(1, 8)])
    shares = scores_of(wrong, old, new)
    return {key: printed(abs(shares[key] + draw(moved)), decimals) for key in sorted(keys)}, old, new


@given(small_rows())
@settings(max_examples=300, deadline=None)
def test_whole_numbers_are_found_exactly_where_trying_all_of_them_finds_some(
    row: tuple[dict[str, Rounded], int, int],
) -> None:
    scores, old, new = row
    assert possible_counts(scores, Sizes(old=old, new=new)) == exists(scores, old, new)


@given(small_rows().filter(lambda row: row[1] + row[2] <= 4))
@settings(max_examples=60, deadline=None)
def test_a_mean_of_two_runs_is_a_run_on_twice_as_many_images(row: tuple[dict[str, Rounded], int, int]) -> None:
    scores, old, new = row
    assert possible_counts(scores, Sizes(old=old, new=new), 2) == exists(scores, 2 * old, 2 * new)


@given(st.data(), st.integers(1, 5), st.integers(1, 2000), st.integers(1, 2000), st.integers(0, 3))
@settings(max_examples=150, deadline=None)
def test_what_was_counted_is_always_possible(data: st.DataObject, runs: int, old: int, new: int, decimals: int) -> None:
    """Whatever the runs were and however ties were rounded."""
    total = [0, 0, 0, 0]
    for _ in range(runs):
        first, third = data.draw(st.integers(0, old)), data.draw(st.integers(0, new))
        wrong = (first, data.draw(st.integers(0, old - first)), third, data.draw(st.integers(0, new - third)))
        total = [before + count for before, count in zip(total, wrong, strict=True)]
    rounding = data.draw(st.sampled_from([HALF_UP, HALF_EVEN]))
    shares = scores_of(tuple(total), runs * old, runs * new)
    scores = {key: printed(share, decimals, rounding) for key, share in shares.items()}
    sizes = Sizes(old=old, new=new)
    assert possible_counts(scores, sizes, runs)
    assert possible_counts(scores, sizes, 3 * runs)  # each run three times
    assert possible_shares(scores, sizes)


@given(small_rows(), st.integers(1, 4))
@settings(max_examples=100, deadline=None)
def test_fractions_of_an_image_do_wherever_whole_ones_do(row: tuple[dict[str, Rounded], int, int], runs: int) -> None:
    scores, old, new = row
    sizes = Sizes(old=old, new=new)
    assert possible_shares(scores, sizes) or not possible_counts(scores, sizes, runs)


def test_possible_and_impossible_by_hand() -> None:
    third = {"all": Rounded(value=33.3, half=0.05)}
    assert possible_counts(third, Sizes(old=1, new=2))
    assert not possible_counts(third, Sizes(old=1, new=3))
    assert possible_runs(third, Sizes(old=1, new=3), 6) == (3, 6)
    # Each by itself is a count of ten images, and together they are more than all old ones.
    both = {"true_old_confusion": Rounded(value=30.0, half=0.05), "false_new": Rounded(value=30.0, half=0.05)}
    assert possible_counts(both, Sizes(old=6, new=4))
    assert not possible_counts(both, Sizes(old=5, new=5))
    assert not possible_shares(both, Sizes(old=5, new=5))
    # A number that was cut off instead of rounded is out of reach of what is checked here.
    cut = printed(Fraction(2, 3), 1, ROUND_DOWN)
    assert not possible_counts({"all": cut}, Sizes(old=1, new=2))


@pytest.mark.parametrize(
    ("runs", "told"),
    [
        ((2, 4, 5, 6, 9), "a mean of 2, 4 to 6, 9 runs could"),
        ((), "no mean of up to 20 runs either"),
        ((1, 2), "one run could"),
    ],
)
def test_numbers_of_runs_in_words(runs: tuple[int, ...], told: str) -> None:
    assert told_runs(runs) == told


def test_sizes_of_a_protocol() -> None:
    stated = Protocol(name="p", old_count=4)
    assert sizes_of_protocol(stated, (500,) * 8) == (Sizes(old=1000, new=2000),)
    assert sizes_of_protocol(Protocol(name="p", old_count=4, label_fraction=0.2), (500,) * 8) == (
        Sizes(old=1600, new=2000),
    )
    # Two odd classes: rounded down or up, each.
    assert [s.old for s in sizes_of_protocol(Protocol(name="p", old_count=3), (3, 5, 4, 10))] == [5, 6, 7]


def row(**scores: str) -> ReportedRow:
    return ReportedRow(
        line=2, method="m", dataset="d", scores={key: parse_printed(text) for key, text in scores.items()}
    )  # type: ignore[misc]


def test_of_the_sizes_that_a_rounding_leaves_open_one_that_fits_is_enough() -> None:
    seventh = row(true_old_confusion="14.29", false_new="0.00", false_old="0.00", true_new_confusion="0.00")
    (verdict,) = judge_counts([seventh], {"d": {"p": [Sizes(old=3, new=3), Sizes(old=4, new=3), Sizes(old=5, new=3)]}})
    assert verdict.single
    assert verdict.sizes == Sizes(old=4, new=3)
    assert count_findings([verdict]) == []


def test_a_row_of_another_share_is_no_matter_of_counts() -> None:
    """Old 90 and New 10 give All 50 only where both are as many; that the share differs is found elsewhere."""
    other = row(all="50.0", old="90.0", new="10.0")
    verdicts = judge_counts([other], {"d": {"p": [Sizes(old=100, new=300)], "q": [Sizes(old=100, new=100)]}})
    assert [(v.protocol, v.real, v.single) for v in verdicts] == [("p", False, False), ("q", True, True)]
    assert count_findings(verdicts) == []
    assert count_findings(verdicts, "p") == []


def run(*arguments: object) -> dict[str, list[dict[str, object]]]:
    result = CliRunner().invoke(command, [*map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)  # type: ignore[no-any-return]


def test_the_papers_error_terms_are_no_counts_of_a_single_run() -> None:
    found = run(PAPER_ERRORS)
    kvasir = [c for c in found["counts"] if c["dataset"] == "kvasir"]
    assert {(c["old"], c["new"]) for c in kvasir} == {(1000, 2000), (1600, 2000)}
    assert not any(c["single_run"] for c in kvasir)
    assert all(c["means_of_runs"] for c in kvasir)
    said = [sentence for sentence in found["findings"] if "no single run" in sentence]
    assert len(said) == 2
    # 2.02 % of 3,000 is 60.6 images and of 3,600 72.72: no whole number is printed like that; 121 of 6,000 is.
    stated = next(c for c in kvasir if c["method"] == "simgcd" and c["old"] == 1000)
    assert 2 in stated["means_of_runs"]  # type: ignore[operator]
    assert 3 not in stated["means_of_runs"]  # type: ignore[operator]  # 634.5 of 9,000 for 7.05


def test_a_table_of_counts_and_one_that_is_none(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    head = "method,dataset,true_old_confusion,false_new,false_old,true_new_confusion\n"
    file.write_text(head + "real,mine,10.00,3.33,6.67,0.00\nmade-up,mine,10.00,3.35,6.67,0.00\n")  # of 30 images
    found = run(file, "--size", "mine=10+20")
    assert [(c["method"], c["single_run"]) for c in found["counts"]] == [("real", True), ("made-up", False)]
    (sentence,) = [s for s in found["findings"] if "no single run" in s]
    assert sentence.startswith("made-up on mine")
    shown = CliRunner().invoke(command, [str(file), "--size", "mine=10+20", "--strict"])
    assert shown.exit_code == 1
    assert "counts of 10 old + 20 new images (given): cannot be one run: made-up" in shown.output
    # Nobody said how large D_u is: nothing to check.
    assert run(file)["counts"] == []


def test_a_size_says_what_w_is_and_may_not_contradict(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("method,dataset,all,old,new\nA,mine,60.0,80.0,40.0\n")
    found = run(file, "--size", "mine=50+50")
    assert found["groups"][0]["protocols"][0]["w"] == 0.5  # type: ignore[index]
    assert found["counts"][0]["single_run"]
    for arguments, said in (
        (["--size", "mine=50"], "two numbers"),
        (["--size", "mine=0+0"], "two numbers"),
        (["--size", "yours=5+5"], "no dataset in these tables named 'yours'"),
        (["--size", "mine=50+50", "--expect", "mine=0.4"], "contradicts itself"),
        (["--size", "mine=50+50", "--protocol", "half"], "give one of them"),
    ):
        refused = CliRunner().invoke(command, [str(file), *arguments])
        assert isinstance(refused.exception, GCDBenchError), arguments
        assert said in refused.exception.message

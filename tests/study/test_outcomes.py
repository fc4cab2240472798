"""The rule that was committed before the runs: what it decides, and what it leaves open."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.medxplore import split_tables
from benchmarks.medxplore.outcomes import FAILURE, Spread, decide, exchange, failure_text, overall
from benchmarks.medxplore.verdict import Finding

SPLITS = range(11, 21)


def rows(all_: list[float], false_old: list[float]) -> dict[int, dict[str, float]]:
    found = zip(SPLITS, all_, false_old, strict=True)
    return {seed: {"all": a, "false_old": f} for seed, a, f in found}


REFERENCE = rows([89.0] * 10, [1.5] * 10)


@pytest.mark.parametrize(
    ("all_", "false_old", "said"),
    [
        ([1.0 + i / 10 for i in range(10)], [-0.5 - i / 10 for i in range(10)], "better"),
        ([-1.0 - i / 10 for i in range(10)], [0.5 + i / 10 for i in range(10)], "worse"),
        ([0.1, -0.1] * 5, [0.5 + i / 10 for i in range(10)], "worse in one primary outcome, undecided in the other"),
        ([0.1, -0.1] * 5, [-0.1, 0.1] * 5, "not distinguishable"),
        ([1.0 + i / 10 for i in range(10)], [0.5] * 10, "better in one primary outcome and worse in the other"),
        # Above in seven of ten is not enough for the sign test, however large the seven are.
        ([9.0] * 7 + [-0.1] * 3, [0.0] * 10, "not distinguishable"),
    ],
)
def test_both_tests_must_reject(all_: list[float], false_old: list[float], said: str) -> None:
    method = rows([89.0 + value for value in all_], [1.5 + value for value in false_old])
    finding = Finding(title="a", decisions=decide(method, REFERENCE), planned=10)
    assert finding.verdict == overall(finding.decisions, 10) == said
    assert finding.complete
    assert ("Yes" in finding.answer, "No" in finding.answer) == (said == "better", said.startswith("worse"))


def test_nothing_is_decided_before_every_split_is_there() -> None:
    some = {seed: values for seed, values in rows([99.0] * 10, [0.0] * 10).items() if seed < 20}
    assert "9 of 10" in overall(decide(some, REFERENCE), 10)
    assert "0 of 10" in overall(decide({}, REFERENCE), 10)
    assert not Finding(title="a", decisions=decide(some, REFERENCE), planned=10).complete


def test_both_p_values_are_corrected_for_two_outcomes() -> None:
    method = rows([90.0] * 10, [1.5, 1.6] * 5)
    found = decide(method, REFERENCE)
    assert found["all"].sign == pytest.approx(2 * 2 / 2**10)  # the smaller of two, so times two
    assert found["all"].flip == pytest.approx(2 * 2 / 2**10)


def test_exchange_counts_pairs_of_new_classes_only() -> None:
    confusion = np.array([[10, 90, 0, 0], [0, 50, 0, 0], [5, 0, 60, 35], [0, 0, 15, 85]], dtype=float)
    moved = max(
        (confusion[i, j] + confusion[j, i]) / (confusion[i].sum() + confusion[j].sum())
        for i in range(2, 4)
        for j in range(2, 4)
        if i != j
    )
    assert exchange(confusion, 2) == pytest.approx(100 * moved)
    assert exchange(confusion, 4) == 0.0  # no class is new
    unmapped = np.array([[0], [0], [0], [20]])  # images in a cluster that is no class's
    larger = exchange(np.hstack([confusion, unmapped]), 2)
    assert larger == pytest.approx(100 * (35 + 15) / (100 + 120))


def test_medians_and_failures_say_what_their_number_allows() -> None:
    assert Spread(values=(1.0, 5.0, 3.0)).text() == "3.0 (1.0 to 5.0)"
    assert Spread(values=(4.0,)).text() == "4.0"
    assert Spread(values=tuple(map(float, range(10)))).text() == "4.5 [1.0, 8.0]"
    assert failure_text([FAILURE, FAILURE - 0.01, 30.0]) == "2 of 3"
    assert failure_text([0.0] * 10).startswith("0 of 10 [0, ")


def test_a_score_that_a_method_does_not_have_is_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_tables, "worst_exchange", lambda run: 0.0)
    scores = dict.fromkeys(split_tables.SCORES, 7.0)
    with_head = [SimpleNamespace(scores=scores)] * 2
    without = [SimpleNamespace(scores={key: value for key, value in scores.items() if key != "head_false_old"})] * 2
    assert split_tables.summary(with_head)[-1].startswith("7.00")
    assert split_tables.summary(without) == [*split_tables.summary(with_head)[:-1], "–"]


def test_only_cells_with_every_split_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def runs(*values: float) -> list[SimpleNamespace]:
        return [SimpleNamespace(scores={"all": value}) for value in values]

    found = {
        "above": {"s": runs(80, 90, 91), "m": runs(89, 95, 91)},
        "below": {"s": runs(80, 90, 91), "m": runs(99, 89, 70)},
        "equal": {"s": runs(1, 2, 3), "m": runs(2, 2, 2)},
        "begun": {"s": runs(80, 90, 91), "m": runs(99, 99)},
    }
    monkeypatch.setattr(
        split_tables,
        "read_splits",
        lambda suite, *_: split_tables.SplitRows(titles={}, runs=found[suite], planned=3),
    )
    cells = [(suite, suite, "s", "m") for suite in found]
    assert split_tables.count_above(cells, [], "all") == split_tables.Above(complete=3, above=1)


def test_measured_cells_say_which_weights_cannot_be_redistributed(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = {
        "resnet50": "f97fed1c56ff2e38544baa27f62db3ca1d94ae2f7925ac02c2b19ca2a1469c15",
        "deit": "b2e17235172c1dcddacb55aa8914e2f8b4b95eb9bb7d7782f333bcbef77151b8",
        "lite0": "0" * 64,
    }
    runs = {
        suite: {"s": [SimpleNamespace(identity={"weights_sha256": digest})], "m": []}
        for suite, digest in digests.items()
    }
    runs["planned"] = {"s": [], "m": []}
    monkeypatch.setattr(
        split_tables, "read_splits", lambda suite, *_: split_tables.SplitRows(titles={}, runs=runs[suite], planned=3)
    )
    monkeypatch.setattr(split_tables, "summary", lambda found: [str(len(found))])
    cells = [(f"with {suite}", suite, "s", "m") for suite in runs]
    table, *notes = split_tables.cell_table(cells, [], "network").split("\n\n")
    assert len(table.splitlines()) == 2 + 2 * len(cells)
    assert [note.partition(":")[0] for note in notes] == ["with resnet50", "with deit"]
    assert all("cannot be redistributed" in note for note in notes)
    only_planned = split_tables.cell_table(cells[-1:], [], "network")
    assert "\n\n" not in only_planned

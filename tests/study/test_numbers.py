"""Numbers of the study's pages against a second way of counting them: predictions, scipy, brute force."""

from __future__ import annotations

import json
import math
import statistics
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from gcdbench.reporting.records import CellRecord, cell_records
from gcdbench.runs.index import load_runs
from gcdbench.runs.record import DONE

pytest.importorskip("gcdbench_medxplore")
border = pytest.importorskip("benchmarks.medxplore.border", reason="runs from the repository's root")
facts = pytest.importorskip("benchmarks.medxplore.facts")
groups = pytest.importorskip("benchmarks.medxplore.groups")
pages = pytest.importorskip("benchmarks.medxplore.pages")
places = pytest.importorskip("benchmarks.medxplore.places")
seed_tables = pytest.importorskip("benchmarks.medxplore.seed_tables")

PAIR = ("polyps", "ulcerative-colitis")


@pytest.fixture(scope="module")
def records() -> list[CellRecord]:
    return cell_records(load_runs(places.RUNS))


@pytest.fixture(scope="module")
def made(records: list[CellRecord]):
    return facts.Facts(records)


def assigned_classes(record: CellRecord) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True and assigned class of every image, and which classes are old; from the predictions, by scipy."""
    stored = np.load(record.path / "predictions" / "transductive.npz")
    truth, cluster = stored["y_true"], stored["cluster"]
    counts = np.zeros((8, 8), dtype=int)
    np.add.at(counts, (cluster, truth), 1)
    return truth, linear_sum_assignment(counts, maximize=True)[1][cluster], stored["is_old"]


def numbers_of(record: CellRecord, *names: str) -> list[int]:
    """Numbers that classes have in a run's predictions, by its own split."""
    split = json.loads((record.path / "run.json").read_text())["split"]
    classes = split["old_classes"] + split["new_classes"]
    return [classes.index(name) for name in names]


def test_exchanges_and_errors_across_the_border_are_counted_from_the_predictions(records: list[CellRecord]) -> None:
    wanted = ("kvasir", "medxplore", DONE)  # a run that is going on beside the tests has no predictions yet
    chosen = [r for r in records if (r.dataset, r.method, r.status) == wanted]
    assert {r.protocol for r in chosen} >= {"paper-stated", "alternate"}  # which order their classes differently
    for record in chosen:
        truth, assigned, is_old = assigned_classes(record)
        pair = numbers_of(record, *PAIR)
        swapped = (assigned != truth) & np.isin(truth, pair) & np.isin(assigned, pair)
        values = seed_tables.run_values(record, PAIR)
        assert values["exchanged"] == swapped.sum()
        assert values["apart"] == pytest.approx(100 * ((assigned != truth) & ~swapped).mean())
        crossed = is_old[truth] != is_old[assigned]
        assert values["across"] == pytest.approx(100 * crossed.mean())
        rates = [100 * crossed[is_old[truth] == side].mean() for side in (True, False)]
        assert [values["old_as_new"], values["new_as_old"]] == pytest.approx(rates)
        assert values["rates"] == pytest.approx(sum(rates) / 2)
        one, other = numbers_of(record, "normal-z-line", "esophagitis")
        assert (
            seed_tables.taken_for(record, "normal-z-line", "esophagitis")
            == ((truth == one) & (assigned == other)).sum()
        )


def test_a_table_of_one_seed_shows_that_seed_and_what_two_classes_exchange(records, made) -> None:
    for seed in (0, 1):
        table = made.means("errors", seeds=str(seed), exchange=True)
        line = next(line for line in table.splitlines() if line.startswith("| SimGCD | 1 |"))
        (run,) = (
            r
            for r in records
            if (r.dataset, r.method, r.seed, r.protocol) == ("kvasir", "simgcd", seed, "paper-stated")
            and not groups.changed_settings(r)
        )
        truth, assigned, _ = assigned_classes(run)
        wrong = assigned != truth
        pair = numbers_of(run, *PAIR)
        swapped = wrong & np.isin(truth, pair) & np.isin(assigned, pair)
        cells = [float(cell) for cell in line.strip("| ").split("|")[1:]]
        assert cells[1] == pytest.approx(100 * (1 - wrong.mean()), abs=0.051)
        assert cells[-2] == swapped.sum()
        assert cells[-1] == pytest.approx(100 * (wrong & ~swapped).mean(), abs=0.051)


def test_means_and_differences_are_those_of_the_scores(records, made) -> None:
    own = {
        method: {
            r.seed: r.scores["all"]
            for r in records
            if (r.dataset, r.method, r.protocol, r.variant) == ("kvasir", method, "paper-stated", "")
            and not groups.changed_settings(r)
        }
        for method in ("simgcd", "medxplore")
    }
    assert made.mean("errors", "simgcd", "all") == pytest.approx(statistics.mean(own["simgcd"].values()))
    expected = [own["medxplore"][seed] - own["simgcd"][seed] for seed in sorted(own["simgcd"])]
    assert made.differences("errors", "medxplore", "simgcd", "all") == pytest.approx(expected)
    found = made.versus("errors", "medxplore", "simgcd", "all")
    assert (found.n, found.above) == (len(expected), sum(value > 0 for value in expected))
    assert found.mean == pytest.approx(statistics.mean(expected))
    mixed = made.where("errors", "medxplore", "simgcd", "all", mixed=True)
    apart = made.where("errors", "medxplore", "simgcd", "all", mixed=False)
    assert sorted(mixed + apart) == pytest.approx(sorted(expected))
    assert mixed
    assert apart


def test_the_papers_numbers_are_quoted_as_printed(made) -> None:
    assert (made.paper("simgcd", "all"), made.paper("medxplore", "all")) == ("72.8", "91.7")
    assert made.paper("simgcd", "false_old") == "14.50"
    with pytest.raises(ValueError, match="prints no"):
        made.paper("simgcd", "seconds")


def test_the_spread_of_a_run_is_its_last_epochs(records: list[CellRecord]) -> None:
    run = next(r for r in records if (r.method, r.dataset, r.status) == ("simgcd", "kvasir", DONE))
    events = [json.loads(line) for line in (run.path / "events.jsonl").read_text().splitlines()]
    last = max((event for event in events if event["type"] == "epoch"), key=lambda event: event["epoch"])
    config = run.identity["config"]
    assert border.spread(run) * (1 - config["lambda_"]) * config["memax_weight"] == pytest.approx(
        last["losses"]["memax"]
    )


def test_the_spread_without_an_error_is_the_mean_over_all_batches() -> None:
    """Every batch of four images of three classes, one of them old, with its chance; w = 1/5."""
    chances = (0.6, 0.2, 0.2)
    expected = 0.0
    for batch in product(range(3), repeat=4):
        shares = [batch.count(c) / 4 for c in range(3)]
        entropy = -sum(share * math.log(share) for share in shares if share)
        expected += math.prod(chances[c] for c in batch) * (math.log(3) - entropy)
    assert border.errorless_spread(1, 2, 0.2, 4) == pytest.approx(expected)


def test_differences_are_the_first_of_a_pair_minus_the_second() -> None:
    values = {
        row: {seed: dict.fromkeys(seed_tables.COMPARED, seed + shift) for seed in range(3)}
        for row, shift in (("a", 0.0), ("b", 1.0))
    }
    rows = seed_tables.SeedRows(titles={"a": "A", "b": "B"}, values=values)
    line = "+1.00 (p = 0.25, above in 3 of 3)"
    assert seed_tables.pair_table(rows, [("b", "a")], [0, 1, 2]).splitlines()[-1] == f"| B − A |{f' {line} |' * 7}"
    assert f"| B − A | seeds 0 to 2 |\n|---|---|\n| All | {line} |" in seed_tables.difference_table(rows, [[0, 1, 2]])
    assert "-1.00 (p = 0.25, above in 0 of 3)" in seed_tables.pair_table(rows, [("a", "b")], [0, 1, 2])


@pytest.mark.parametrize(
    ("value", "fixed", "signed"),
    [(1.04, "1.0", "+1.0"), (-0.26, "−0.3", "−0.3"), (-0.04, "−0.0", "0.0"), (0.0, "0.0", "0.0")],
)
def test_numbers_are_written_with_a_minus_sign(value: float, fixed: str, signed: str) -> None:
    assert (pages.fixed(value), pages.signed(value)) == (fixed, signed)
    assert pages.listed(pages.each([value, 1.0], "signed")) == f"{signed} and +1.0"

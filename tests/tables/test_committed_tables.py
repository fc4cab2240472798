"""The tables in the repository follow from the runs in the repository."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from scipy.optimize import linear_sum_assignment

from gcdbench.reporting.records import CellRecord, cell_records
from gcdbench.runs.directory import DONE
from gcdbench.runs.index import load_runs

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
TABLES = sorted((RESULTS / "tables").glob("*.md"))

pytest.importorskip("gcdbench_medxplore")


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.stem)
def test_a_committed_table_follows_from_the_committed_runs(cli: Callable[..., Result], table: Path) -> None:
    """``SUITE.md`` is the suite's table, ``SUITE.against-ROW.md`` that of the differences to a row."""
    suite, _, row = table.stem.partition(".against-")
    against = ["--against", row] if row else []
    made = cli("table", suite, "--preset", "laptop", *against, "--runs", RESULTS / "runs", "--check", table)
    assert made.exit_code == 0, made.output


def test_the_numbers_on_pages_follow_from_the_committed_runs() -> None:
    pages = pytest.importorskip("benchmarks.pages", reason="runs from the repository's root")
    records = cell_records(load_runs(RESULTS / "runs"))
    groups = pages.group_runs(records)
    readme = pages.README.read_text(encoding="utf-8")
    ledger = pages.LEDGER.read_text(encoding="utf-8")
    assert len(pages.BLOCK.findall(readme)) == 3
    assert ledger.count("<!-- measured -->") == len(pages.LEDGER_ROW.findall(ledger)) == 24
    assert pages.fill_readme(readme, groups) == readme
    assert pages.fill_ledger(ledger, groups) == ledger
    fewer = pages.group_runs(record for record in records if record.seed != 0)
    assert pages.fill_readme(readme, fewer) != readme
    assert pages.fill_ledger(ledger, fewer) != ledger


def test_tables_of_means_on_pages_follow_from_the_committed_runs() -> None:
    pages = pytest.importorskip("benchmarks.pages", reason="runs from the repository's root")
    records = cell_records(load_runs(RESULTS / "runs"))
    fewer = [record for record in records if record.seed != 0]
    for path in (pages.LEDGER, pages.SPEED):
        page = path.read_text(encoding="utf-8")
        assert len(pages.MEANS_BLOCK.findall(page)) == page.count("<!-- means:") > 0
        assert pages.fill_means(page, records) == page
        assert pages.fill_means(page, fewer) != page


def test_tables_of_single_seeds_follow_from_the_committed_runs() -> None:
    pages = pytest.importorskip("benchmarks.pages", reason="runs from the repository's root")
    records = cell_records(load_runs(RESULTS / "runs"))
    page = pages.LEDGER.read_text(encoding="utf-8")
    assert len(pages.SEEDS_BLOCK.findall(page)) == page.count("<!-- seeds:") == 7
    assert pages.fill_seeds(page, records) == page
    assert pages.fill_seeds(page, [record for record in records if record.seed != 0]) != page


def assigned_classes(record: CellRecord) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True and assigned class of every image, and which classes are old; from the predictions, by scipy."""
    stored = np.load(record.path / "predictions" / "transductive.npz")
    truth, cluster = stored["y_true"], stored["cluster"]
    counts = np.zeros((8, 8), dtype=int)
    np.add.at(counts, (cluster, truth), 1)
    return truth, linear_sum_assignment(counts, maximize=True)[1][cluster], stored["is_old"]


def test_exchanges_and_errors_across_the_border_are_counted_from_the_predictions() -> None:
    seed_tables = pytest.importorskip("benchmarks.seed_tables", reason="runs from the repository's root")
    wanted = ("kvasir", "medxplore", DONE)  # a run that is going on beside the tests has no predictions yet
    records = [r for r in cell_records(load_runs(RESULTS / "runs")) if (r.dataset, r.method, r.status) == wanted]
    assert records
    pair = (6, 7)
    for record in records:
        truth, assigned, is_old = assigned_classes(record)
        swapped = (assigned != truth) & np.isin(truth, pair) & np.isin(assigned, pair)
        values = seed_tables.run_values(record, pair)
        assert values["exchanged"] == swapped.sum()
        assert values["apart"] == pytest.approx(100 * ((assigned != truth) & ~swapped).mean())
        crossed = is_old[truth] != is_old[assigned]
        assert values["across"] == pytest.approx(100 * crossed.mean())
        rates = [100 * crossed[is_old[truth] == side].mean() for side in (True, False)]
        assert seed_tables.border_rates(record) == pytest.approx(rates)
        assert values["rates"] == pytest.approx(sum(rates) / 2)


def test_a_table_of_one_seed_shows_that_seed_and_what_two_classes_exchange() -> None:
    pages = pytest.importorskip("benchmarks.pages", reason="runs from the repository's root")
    records = cell_records(load_runs(RESULTS / "runs"))
    for seed in (0, 1):
        table = pages.means_table("errors", "kvasir", records, seeds=(seed,), classes=("polyps", "normal-cecum"))
        line = next(line for line in table.splitlines() if line.startswith("| SimGCD | 1 |"))
        (run,) = (
            r
            for r in records
            if (r.dataset, r.method, r.seed, r.protocol) == ("kvasir", "simgcd", seed, "paper-stated")
            and not pages.changed_settings(r)
        )
        truth, assigned, _ = assigned_classes(run)
        wrong = assigned != truth
        swapped = wrong & np.isin(truth, (3, 6)) & np.isin(assigned, (3, 6))
        cells = [float(cell) for cell in line.strip("| ").split("|")[1:]]
        assert cells[1] == pytest.approx(100 * (1 - wrong.mean()), abs=0.051)
        assert cells[-2] == swapped.sum()
        assert cells[-1] == pytest.approx(100 * (wrong & ~swapped).mean(), abs=0.051)


def test_the_table_of_borders_follows_from_the_committed_runs() -> None:
    pages = pytest.importorskip("benchmarks.pages", reason="runs from the repository's root")
    border = pytest.importorskip("benchmarks.border")
    records = cell_records(load_runs(RESULTS / "runs"))
    page = pages.LEDGER.read_text(encoding="utf-8")
    assert len(pages.BORDER_BLOCK.findall(page)) == page.count("<!-- border:") == 1
    assert pages.fill_border(page, pages.group_runs(records)) == page
    assert pages.fill_border(page, pages.group_runs(r for r in records if r.seed != 0)) != page
    run = next(r for r in records if (r.method, r.dataset, r.status) == ("simgcd", "kvasir", DONE))
    events = [json.loads(line) for line in (run.path / "events.jsonl").read_text().splitlines()]
    last = max((event for event in events if event["type"] == "epoch"), key=lambda event: event["epoch"])
    config = run.identity["config"]
    assert border.spread(run) * (1 - config["lambda_"]) * config["memax_weight"] == pytest.approx(
        last["losses"]["memax"]
    )


def test_the_spread_without_an_error_is_the_mean_over_all_batches() -> None:
    """Every batch of four images of three classes, one of them old, with its chance; w = 1/5."""
    border = pytest.importorskip("benchmarks.border", reason="runs from the repository's root")
    chances = (0.6, 0.2, 0.2)
    expected = 0.0
    for batch in product(range(3), repeat=4):
        shares = [batch.count(c) / 4 for c in range(3)]
        entropy = -sum(share * math.log(share) for share in shares if share)
        expected += math.prod(chances[c] for c in batch) * (math.log(3) - entropy)
    assert border.errorless_spread(1, 2, 0.2, 4) == pytest.approx(expected)


def test_differences_are_the_first_of_a_pair_minus_the_second() -> None:
    seed_tables = pytest.importorskip("benchmarks.seed_tables", reason="runs from the repository's root")
    values = {
        row: {seed: dict.fromkeys(seed_tables.COMPARED, seed + shift) for seed in range(3)}
        for row, shift in (("a", 0.0), ("b", 1.0))
    }
    rows = seed_tables.SeedRows(titles={"a": "A", "b": "B"}, values=values)
    line = "+1.00 (p = 0.25, above in 3 of 3)"
    assert seed_tables.pair_table(rows, [("b", "a")], [0, 1, 2]).splitlines()[-1] == f"| B − A |{f' {line} |' * 7}"
    assert f"| B − A | seeds 0 to 2 |\n|---|---|\n| All | {line} |" in seed_tables.difference_table(rows, [[0, 1, 2]])
    assert "-1.00 (p = 0.25, above in 0 of 3)" in seed_tables.pair_table(rows, [("a", "b")], [0, 1, 2])

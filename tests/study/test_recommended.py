"""The recommended setting is the one that the rule, written down before the runs, chooses from the stored ones."""

from __future__ import annotations

import pytest

from gcdbench.api import cell_records, load_runs

split_tables = pytest.importorskip("benchmarks.medxplore.split_tables", reason="runs from the repository's root")


def test_the_rule_chooses_what_is_recommended() -> None:
    from gcdbench_medxplore.variants import RECOMMENDED, VARIANTS

    from benchmarks.medxplore.places import RUNS

    scores = split_tables.screening_scores(cell_records(load_runs(RUNS)))
    candidates = {key: value["both"] for key, value in scores.items() if key != "simgcd"}
    assert len(candidates) == 10
    first, second = sorted(candidates.values(), reverse=True)[:2]
    assert first - second > 0.1  # otherwise the number of changes decides
    chosen = max(candidates, key=lambda key: candidates[key])
    assert RECOMMENDED["recommended"] == VARIANTS[chosen]

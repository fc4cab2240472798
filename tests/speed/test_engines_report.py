"""The table of what engines cost."""

from __future__ import annotations

from benchmarks.speed import engines


def test_each_engine_stands_beside_the_local_executor() -> None:
    rows = [
        {"executor": name, "runs": 4, "at_once": 2, "seconds": 2 * each, "seconds_per_run": each}
        for name, each in (("process", 1.5), ("dask", 1.25), ("slurm", 3.0))
    ]
    text = engines.describe_engines({"machine": {"cores": 2, "cpu": "c"}, "date": "d", "rows": rows})
    assert [line.split("|")[4].strip() for line in text.splitlines()[-3:]] == ["+0.00", "-0.25", "+1.50"]


def test_one_engine_measured_again_leaves_the_others_of_that_day() -> None:
    def row(name: str, seconds: float, runs: int = 4) -> dict[str, object]:
        return {"executor": name, "runs": runs, "at_once": 2, "seconds": seconds, "seconds_per_run": seconds / 2}

    stored = {"machine": {"cpu": "c"}, "date": "d", "rows": [row("process", 1.0), row("slurm", 9.0)]}
    kept = engines.keep_others([row("slurm", 2.0)], stored, machine={"cpu": "c"}, date="d")
    assert [(one["executor"], one["seconds"]) for one in kept] == [("process", 1.0), ("slurm", 2.0)]
    for change in ({"date": "e"}, {"machine": {"cpu": "b"}}, {"rows": [row("process", 1.0, runs=8)]}):
        assert len(engines.keep_others([row("slurm", 2.0)], {**stored, **change}, machine={"cpu": "c"}, date="d")) == 1

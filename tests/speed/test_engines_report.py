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

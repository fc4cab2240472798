"""Time ``gcdbench table`` on a store with many runs: first reading, then with the index in place.

python benchmarks/speed/table.py [--runs 10000]
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gcdbench.identity import run_id
from gcdbench.plan import RunRequest, make_plan
from gcdbench.plugins.manager import get_manager
from gcdbench.store.rundir import RunDirectory
from gcdbench.testing.stored import FakeRun, fake_identity, fake_predictions, fake_record, fake_scores


def write_store(runs: Path, count: int) -> None:
    """``count`` runs: simgcd and legogcd with 10 settings each, all with the same seeds (so that tests are paired)."""
    manager = get_manager()
    groups = [(method, lr) for method in ("simgcd", "legogcd") for lr in range(1, 11)]
    for method, lr in groups:
        request = RunRequest(method=method, dataset="phantom", preset="laptop", overrides={"lr": lr / 100})
        plan = make_plan(request, manager)
        scores = fake_scores(fake_predictions(FakeRun(request=request)), manager)
        values = scores["sets"]["transductive"]["scores"]
        named = fake_identity(plan, manager)
        for seed in range(count // len(groups)):
            seeded = dataclasses.replace(plan, seed=seed)
            identity = {**named, "seed": seed}
            values["all"] = 70 + seed % 13 + lr / 10
            directory = RunDirectory.at(runs, "phantom", method, run_id(identity))
            directory.path.mkdir(parents=True)
            directory.record_path.write_text(json.dumps(fake_record(seeded, identity)))
            directory.scores_path.write_text(json.dumps(scores))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_store(Path(folder), options.runs)
        for label in ("first reading", "indexed", "indexed again"):
            start = time.perf_counter()
            command = [sys.executable, "-m", "gcdbench.cli.main", "table", "--runs", folder]
            out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            print(f"{label:15s} {time.perf_counter() - start:6.2f} s   {out.splitlines()[0]}")


if __name__ == "__main__":
    main()

"""Every row of the comparison, from the command line to its scores, on a phantom of smoke size."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest
from click.testing import Result

from gcdbench.plugins.manager import get_manager
from gcdbench.suites.read import load_suite

ROWS = load_suite("main").rows
SMALL = ("--dataset-set", "n_per_class=12", "--set", "weights=none", "--set", "epochs=1")


@pytest.mark.parametrize("method", [row.method for row in ROWS])
def test_a_row_of_the_comparison_runs(cli: Callable[..., Result], method: str) -> None:
    if method not in {spec.name for spec in get_manager().specs("methods")}:
        pytest.skip(f"the plugin of '{method}' is not installed")
    made = cli("run", "--method", method, "--dataset", "phantom", "--preset", "smoke", *SMALL, "--json", "--quiet")
    assert made.exit_code == 0, made.output
    scores = json.loads(made.output)["sets"]["transductive"]["scores"]
    assert all(math.isfinite(value) for value in scores.values())
    assert scores["k_hat"] == 8
    # Nobody is asked to learn anything in one epoch, but to do no worse than one cluster for all.
    assert scores["all"] >= 100 / 8


def test_the_comparison_has_ten_rows() -> None:
    assert len(ROWS) == 10

"""``estimate-k`` and ``tune-lr`` on a small phantom."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import Result

SMALL = ("--dataset", "phantom", "--preset", "smoke", "--dataset-set", "n_per_class=8", "--set", "image_size=32")
RANDOM = ("--set", "weights=none")


def test_both_estimates_with_their_error(cli: Callable[..., Result]) -> None:
    made = cli("estimate-k", *SMALL, *RANDOM, "--json")
    assert made.exit_code == 0
    told = json.loads(made.stdout)
    assert (told["dataset"], told["protocol"], told["seed"], told["image_size"]) == ("phantom", "half", 0, 32)
    assert [row["estimator"] for row in told["estimates"]] == ["gcd", "granularity"]
    for row in told["estimates"]:
        assert row["true_k"] == 8
        assert row["error"] == row["k"] - 8
        assert row["k"] >= told["k_old"] == 4


def test_one_estimate_as_a_line(cli: Callable[..., Result]) -> None:
    made = cli("estimate-k", *SMALL, *RANDOM, "--estimator", "granularity", "-q")
    assert made.exit_code == 0
    assert "granularity" in made.output
    assert "true 8" in made.output
    assert "gcd " not in made.output


def test_an_unknown_estimator_is_answered_with_the_nearest(cli: Callable[..., Result]) -> None:
    made = cli("estimate-k", *SMALL, "--estimator", "granulariti")
    assert made.exit_code != 0
    assert "granularity" in made.stderr


def test_rates_are_tried_and_one_is_recommended(cli: Callable[..., Result]) -> None:
    larger = (*SMALL, "--dataset-set", "n_per_class=20", *RANDOM, "--set", "epochs=1")
    made = cli("tune-lr", "--method", "simgcd", *larger, "--rates", "0.01,0.1", "--json")
    assert made.exit_code == 0, made.output
    told = json.loads(made.stdout)
    assert [trial["lr"] for trial in told["trials"]] == [0.01, 0.1]
    assert told["best"] in (0.01, 0.1)


def test_rates_that_are_none_and_methods_without_a_rate_are_refused(cli: Callable[..., Result]) -> None:
    for rates in ("0", "fast", ","):
        assert cli("tune-lr", "--method", "simgcd", *SMALL, "--rates", rates).exit_code != 0
    made = cli("tune-lr", "--method", "kmeans", *SMALL)
    assert made.exit_code != 0
    assert "trains nothing" in made.stderr


@pytest.mark.parametrize("method", ["simgcd", "gcd"])
def test_a_run_with_an_estimated_k_says_so_and_scores_the_error(cli: Callable[..., Result], method: str) -> None:
    options = ("--method", method, *SMALL, *RANDOM, "--set", "epochs=1")
    made = cli("run", *options, "--k", "estimated", "--json", "-q")
    assert made.exit_code == 0, made.output
    scores = json.loads(made.stdout)["sets"]["transductive"]["scores"]
    assert scores["k_hat"] >= 4
    assert scores["k_hat_error"] == scores["k_hat"] - 8
    # What runs use is what the command prints.
    told = json.loads(cli("estimate-k", *SMALL, *RANDOM, "--estimator", "granularity", "--json").stdout)
    assert scores["k_hat"] == told["estimates"][0]["k"]
    table = cli("table", "--scores", "all,k_hat_error", "--format", "csv").output
    assert ",estimated," in table
    assert "K estimated as" in cli("run", *options, "--k", "estimated", "-q").output

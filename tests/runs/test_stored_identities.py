"""Runs in the repository keep their ids: their settings, planned again by today's code, describe the same run."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcdbench.core.files import read_json
from gcdbench.core.identity import run_id
from gcdbench.plugins.manager import get_manager
from gcdbench.runs.plan import identity_of, make_plan
from gcdbench.runs.request_file import merge_request

RUNS = sorted((Path(__file__).parents[2] / "benchmarks").glob("**/run.json"))

pytest.importorskip("gcdbench_medxplore")


def test_stored_settings_give_the_stored_ids() -> None:
    assert RUNS
    wrong = {}
    for path in RUNS:
        record = read_json(path)
        stored = record["identity"]
        request = merge_request(path.with_name("config.toml"), overrides={}, dataset_options={})
        plan = make_plan(request, get_manager())
        identity = identity_of(
            plan,
            manifest_sha256=stored["manifest_sha256"],
            store_key=stored["images"],
            dataset_id=stored["dataset"],
            weights_sha256=stored.get("weights_sha256", ""),
            world_size=stored.get("world_size", 1),
            accepted_issues=stored.get("accepted_data_issues", ()),
        )
        # Predictions of a method may have changed since; its settings must still mean what they meant.
        identity["method_version"] = stored["method_version"]
        if run_id(identity) != record["run_id"]:
            keys = {*stored, *identity}
            wrong[record["run_id"]] = [key for key in keys if stored.get(key) != identity.get(key)]
    assert not wrong

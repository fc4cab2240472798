"""Every run in the repository, planned again with the settings stored beside it, has the id it was stored under.

What only images and weights can tell (the split's hash, the store's key, the weights' hash) comes from the record; the
rest of the identity is made again by today's code from ``config.toml``.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gcdbench.core.identity import run_id
from gcdbench.plugins.manager import get_manager
from gcdbench.runs.index import load_runs
from gcdbench.runs.plan import Materials, make_plan
from gcdbench.runs.request_file import merge_request

STORE = Path(__file__).resolve().parents[2] / "benchmarks" / "medxplore" / "runs"
RECORDS = sorted(STORE.glob("*/*/*/run.json"))

pytest.importorskip("gcdbench_medxplore")


@cache
def record_of(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record


def version_is_the_same(path: Path) -> bool:
    """A method whose version was raised makes other runs; its old ones keep their ids and are not made again."""
    identity = record_of(path)["identity"]
    return bool(get_manager().get("methods", identity["method"]).version == identity["method_version"])


def test_there_are_runs_of_unchanged_methods_to_plan_again() -> None:
    assert RECORDS
    assert any(map(version_is_the_same, RECORDS))


def test_every_stored_run_loads_and_is_complete() -> None:
    entries = {entry.run_id: entry for entry in load_runs(STORE)}
    assert set(entries) == {path.parent.name for path in RECORDS}
    for entry in entries.values():
        assert not entry.problem, entry.path
        assert entry.status == "done", entry.path
        assert entry.scores["all"] >= 0


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: "/".join(path.parts[-4:-1]))
def test_a_stored_run_is_named_by_what_it_is(path: Path) -> None:
    """The id in the record is the digest of the identity in the record, and the directory has that name."""
    record = record_of(path)
    assert run_id(record["identity"]) == record["run_id"] == path.parent.name


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: "/".join(path.parts[-4:-1]))
def test_planned_again_it_has_its_id(path: Path) -> None:
    if not version_is_the_same(path):
        pytest.skip("the method's version was raised since")
    record = record_of(path)
    stored = record["identity"]
    request = merge_request(path.with_name("config.toml"), overrides={}, dataset_options={})
    plan = make_plan(request, get_manager())
    materials = Materials(
        dataset=stored["dataset"],
        manifest_sha256=stored["manifest_sha256"],
        images=stored["images"],
        weights_sha256=stored.get("weights_sha256", ""),
        world_size=stored.get("world_size", 1),
        accepted_data_issues=tuple(stored.get("accepted_data_issues", ())),
    )
    identity = plan.identity(materials)
    assert json.loads(json.dumps(identity)) == stored
    assert run_id(identity) == record["run_id"]
    assert (plan.preset, plan.variant) == (record["preset"], record["variant"])

"""What gcdbench 0.1 has written can be read, listed, verified, scored again and imported; its ids stay."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from gcdbench.core.identity import run_id
from gcdbench.plugins.manager import get_manager
from gcdbench.runs.archive.merge import merge_archive
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.events import EpochEnd, OtherEvent
from gcdbench.runs.index import load_runs
from gcdbench.runs.integrity import check_run
from gcdbench.runs.numerics import NOT_RECORDED
from gcdbench.runs.predictions import load_predictions
from gcdbench.runs.record import DONE, FAILED

HERE = Path(__file__).parent
STORE = HERE / "stored_by_0_1"
ARCHIVE = HERE / "archive_by_0_1.zip"
COMMITTED = sorted((HERE.parents[1] / "benchmarks").glob("**/run.json"))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return Path(shutil.copytree(STORE, tmp_path / "store"))


def test_the_store_opens(store: Path, cli: Callable[..., Result]) -> None:
    entries = {entry.method: entry for entry in load_runs(store)}
    assert {name: entry.status for name, entry in entries.items()} == {
        "kmeans": DONE,
        "pixels-kmeans": DONE,
        "broken": FAILED,
    }
    assert entries["kmeans"].scores["all"] == 100.0
    assert entries["kmeans"].called == "folder:tiny"
    assert entries["broken"].problem == "ValueError: no light in the tunnel"
    record = RunDirectory(entries["kmeans"].path).record()
    assert record.split.classes == ("amber", "blue", "coral", "dune")
    assert record.environment.packages["gcdbench"] == "0.1.0"
    assert record.environment.numerics is None
    [event] = record.events
    assert isinstance(event, OtherEvent)
    assert event.type == "clustering"
    assert len(load_predictions(record, "transductive").ids) == 24
    assert "2 done, 1 failed" in cli("status", "--runs", store).stdout
    assert NOT_RECORDED in cli("show", record.run_id, "--runs", store).stdout
    assert "Traceback" in cli("show", entries["broken"].run_id, "--runs", store).stdout


def test_it_is_verified_and_scored_again_without_a_change(store: Path, cli: Callable[..., Result]) -> None:
    before = {path: path.read_bytes() for path in store.rglob("*.json")}
    assert cli("verify", "--runs", store).exit_code == 0
    result = cli("rescore", "--runs", store)
    assert result.exit_code == 0, result.output
    assert "0 score(s) changed" in result.stdout
    assert {path: path.read_bytes() for path in store.rglob("scores.json")}.keys() <= before.keys()
    assert all(path.read_bytes() == content for path, content in before.items() if path.name != "scores.json")


def test_a_changed_score_of_a_version_without_seals_is_found(store: Path, cli: Callable[..., Result]) -> None:
    file = next(store.glob("*/kmeans/*/scores.json"))
    table = json.loads(file.read_text())
    table["sets"]["transductive"]["scores"]["false_old"] = 12.5
    file.write_text(json.dumps(table))
    result = cli("verify", "--runs", store)
    assert result.exit_code == 1
    assert "transductive.false_old" in result.stdout
    assert "rescore" in result.stdout
    assert cli("rescore", "--runs", store).exit_code == 0
    assert cli("verify", "--runs", store).exit_code == 0


def test_damage_without_a_hash_is_found_where_it_can_be(store: Path) -> None:
    kmeans = RunDirectory(next(store.glob("*/kmeans/*")))
    embedding = kmeans.path / "embeddings" / "transductive.npz"
    content = bytearray(embedding.read_bytes())
    content[len(content) // 2] ^= 0xFF
    embedding.write_bytes(bytes(content))
    assert [damage.file for damage in check_run(kmeans, get_manager()).damages] == ["embeddings/transductive.npz"]
    (kmeans.path / "model.safetensors").write_bytes(b"not a model")
    assert len(check_run(kmeans, get_manager()).damages) == 2


def test_its_archive_is_merged(tmp_path: Path) -> None:
    merged = merge_archive(ARCHIVE, tmp_path / "here")
    assert len(merged.added) == 1
    [entry] = load_runs(tmp_path / "here")
    assert (entry.status, entry.method) == (DONE, "pixels-kmeans")


@pytest.mark.skipif(not COMMITTED, reason="needs the repository's runs")
def test_every_run_of_the_repository_is_read_with_its_id() -> None:
    stores = {path.parents[3] for path in COMMITTED}
    entries = [entry for store in stores for entry in load_runs(store)]
    assert len(entries) == len(COMMITTED)
    assert [entry.problem for entry in entries if entry.status != DONE] == []
    for entry in entries:
        record = RunDirectory(entry.path).record()
        assert run_id(dict(record.identity)) == record.run_id == entry.path.name
        assert record.scores is not None
        assert record.scores.sets["transductive"].n == sum(map(sum, record.scores.sets["transductive"].confusion))
        trained = [event for event in record.events if event.type == "epoch"]
        assert all(isinstance(event, EpochEnd) for event in trained)
        assert len(trained) >= record.training.get("epochs", 0)

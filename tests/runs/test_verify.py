"""``gcdbench verify`` finds damage in any file of a run; ``rescore`` restores scores whose predictions are whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.index import load_runs
from gcdbench.runs.record import DONE, FAILED

AddRun = Callable[..., RunDirectory]
Cli = Callable[..., Result]
RUN = ("run", "--method", "kmeans", "--dataset", "phantom", "--preset", "smoke", "--set", "image_size=32", "--quiet")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a real run, with embeddings."""
    from click.testing import CliRunner

    from gcdbench.cli.main import command

    runs = tmp_path_factory.mktemp("made") / "runs"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GCDBENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        result = CliRunner().invoke(
            command, [*RUN, "--set", "weights=none", "--runs", str(runs)], catch_exceptions=False
        )
    assert result.exit_code == 0, result.output
    return runs


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Path:
    import shutil

    return Path(shutil.copytree(made, tmp_path / "store"))


def damage(content: bytes, how: str) -> bytes:
    middle = len(content) // 2
    if how == "flipped bit":
        return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    if how == "zeroed":
        return content[:middle] + bytes(len(content) - middle)
    if how == "truncated":
        return content[:middle]
    return b""


def test_a_sound_run_is_sound_and_every_file_has_a_hash(store: Path, cli: Cli) -> None:
    result = cli("verify", "--runs", store)
    assert result.exit_code == 0, result.output
    assert "0 run(s) damaged" in result.stdout
    [path] = (store).glob("*/*/*")
    kept = {p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_file()}
    hashed = set(RunDirectory(path).record().files)
    assert kept - hashed == {"run.json", "scores.json", "lock", "heartbeat"}  # the first two carry a seal
    assert {"predictions/transductive.npz", "embeddings/transductive.npz", "config.toml", "env.json"} <= hashed


@pytest.mark.parametrize("how", ["flipped bit", "zeroed", "truncated", "emptied"])
def test_damage_in_any_file_is_found(store: Path, cli: Cli, how: str) -> None:
    [path] = store.glob("*/*/*")
    files = [p for p in sorted(path.rglob("*")) if p.is_file() and p.name not in ("lock", "heartbeat")]
    assert len(files) >= 7
    for file in files:
        content = file.read_bytes()
        file.write_bytes(damage(content, how))
        result = cli("verify", "--runs", store)
        assert result.exit_code == 1, file
        assert file.name in result.stdout
        [told] = json.loads(cli("verify", path.name, "--runs", store, "--json").stdout)
        assert told["damages"]
        assert all(found["restorable"] == (file.name == "scores.json") for found in told["damages"])
        file.write_bytes(content)
    assert cli("verify", "--runs", store).exit_code == 0


@pytest.mark.parametrize("name", ["run.json", "scores.json", "predictions/transductive.npz", "config.toml"])
def test_a_lost_file_is_found(store: Path, cli: Cli, name: str) -> None:
    [path] = store.glob("*/*/*")
    (path / name).unlink()
    result = cli("verify", path, "--runs", store) if name != "run.json" else cli("verify", "--runs", store)
    assert result.exit_code != 0


def test_embeddings_may_stay_behind(store: Path, cli: Cli) -> None:
    [path] = store.glob("*/*/*")
    (path / "embeddings" / "transductive.npz").unlink()
    result = cli("verify", "--runs", store)
    assert result.exit_code == 0
    assert "1 weight or embedding file(s) are not here" in result.stdout


@pytest.mark.parametrize("how", ["flipped bit", "truncated", "lost"])
def test_scores_come_back_from_predictions(store: Path, cli: Cli, how: str) -> None:
    [path] = store.glob("*/*/*")
    file = path / "scores.json"
    content = file.read_bytes()
    if how == "lost":
        file.unlink()
    else:
        file.write_bytes(damage(content, how))
    [entry] = load_runs(store)
    assert entry.status != DONE
    again = cli(*RUN, "--set", "weights=none", "--runs", store)
    assert again.exit_code == 2
    assert "rescore" in again.stderr
    result = cli("rescore", "--runs", store)
    assert result.exit_code == 0, result.output
    assert "1 run(s) restored" in result.stdout
    assert file.read_bytes() == content
    assert cli("verify", "--runs", store).exit_code == 0
    assert [entry.status for entry in load_runs(store)] == [DONE]


def test_scores_are_not_made_up_where_predictions_are_damaged(store: Path, cli: Cli) -> None:
    [path] = store.glob("*/*/*")
    (path / "scores.json").unlink()
    predictions = path / "predictions" / "transductive.npz"
    predictions.write_bytes(damage(predictions.read_bytes(), "flipped bit"))
    result = cli("rescore", path.name, "--runs", store)
    assert result.exit_code == 1
    assert "truncated or was changed" in result.stderr
    assert not (path / "scores.json").exists()


def test_force_makes_a_damaged_run_again(store: Path, cli: Cli) -> None:
    [path] = store.glob("*/*/*")
    expected = RunDirectory(path).record().predictions
    for name in ("run.json", "env.json", "predictions/transductive.npz"):
        (path / name).write_bytes(b"damaged")
        assert cli("verify", "--runs", store).exit_code == 1
        assert cli(*RUN, "--set", "weights=none", "--runs", store, "--force").exit_code == 0
        assert cli("verify", "--runs", store).exit_code == 0
        assert RunDirectory(path).record().predictions == expected


def test_unfinished_runs_promise_nothing(tmp_path: Path, add_run: AddRun, cli: Cli) -> None:
    add_run(tmp_path / "runs", status=FAILED)
    result = cli("verify", "--runs", tmp_path / "runs")
    assert result.exit_code == 0
    assert "Checked 0 finished run(s)" in result.stdout

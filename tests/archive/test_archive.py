"""Archives: what is packed comes back, two machines merge, and hostile files are refused with nothing written."""

from __future__ import annotations

import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest
from click.testing import CliRunner

from gcdbench.cli.export import command as export_command
from gcdbench.cli.import_ import command as import_command
from gcdbench.core.errors import GCDBenchError, StoreError
from gcdbench.runs.archive import merge
from gcdbench.runs.archive.layout import MANIFEST
from gcdbench.runs.archive.merge import merge_archive
from gcdbench.runs.archive.pack import pack_runs
from gcdbench.runs.index import load_runs
from gcdbench.testing.stored import edit_sealed
from tests.archive.archives import same, tree


def test_runs_come_back_and_are_not_duplicated(tmp_path, add_run, manager):
    there, here = tmp_path / "there", tmp_path / "here"
    for seed in range(3):
        add_run(there, seed)
    add_run(here, 2)
    add_run(here, 7)
    pack_runs(there, [e.path for e in load_runs(there)], tmp_path / "a.zip")
    merged = merge_archive(tmp_path / "a.zip", here, manager=manager)
    assert (len(merged.added), len(merged.present), merged.conflicts) == (2, 1, [])
    assert sorted(e.seed for e in load_runs(here)) == [0, 1, 2, 7]
    again = merge_archive(tmp_path / "a.zip", here)
    assert (len(again.added), len(again.present)) == (0, 3)
    name = merged.added[0]
    for file in ("run.json", "scores.json", "predictions/transductive.npz", "env.json", "events.jsonl"):
        assert same(file, (here / name / file).read_bytes(), (there / name / file).read_bytes())
    assert not [p for p in here.iterdir() if p.name.startswith(".import")]


def test_packing_is_deterministic_and_leaves_weights_at_home(tmp_path, add_run):
    runs = tmp_path / "runs"
    directory = add_run(runs, embedding=True)
    (directory.path / "model.safetensors").write_bytes(b"weights")
    (directory.path / "checkpoint").mkdir()
    (directory.path / "checkpoint" / "state.npz").write_bytes(b"x")
    (directory.path / "link.json").symlink_to("/etc/passwd")
    pack_runs(runs, [directory.path], tmp_path / "a.zip")
    pack_runs(runs, [directory.path], tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    names = {n.rpartition("/")[2] for n in zipfile.ZipFile(tmp_path / "a.zip").namelist()}
    assert names == {MANIFEST, "run.json", "config.toml", "env.json", "events.jsonl", "scores.json", "transductive.npz"}
    pack_runs(runs, [directory.path], tmp_path / "c.zip", weights=True, embeddings=True)
    names = zipfile.ZipFile(tmp_path / "c.zip").namelist()
    assert any(n.endswith("model.safetensors") for n in names)
    assert any("/embeddings/" in n for n in names)


def test_two_machines_that_disagree_are_told_and_ours_is_kept(tmp_path, add_run):
    there, here = tmp_path / "there", tmp_path / "here"
    theirs, ours = add_run(there, accuracy=0.5), add_run(here, accuracy=0.9)
    assert theirs.path.name == ours.path.name
    pack_runs(there, [theirs.path], tmp_path / "a.zip")
    before = tree(here)
    merged = merge_archive(tmp_path / "a.zip", here)
    assert len(merged.conflicts) == 1
    assert tree(here) == before


def test_a_finished_run_whose_repetition_was_killed_is_kept(tmp_path, add_run):
    there, here = tmp_path / "there", tmp_path / "here"
    add_run(there, accuracy=0.5)
    directory = add_run(here, accuracy=0.9)
    pack_runs(there, [e.path for e in load_runs(there)], tmp_path / "a.zip")
    previous = directory.path / "previous"  # as gcdbench 0.1 left it
    previous.mkdir()
    for entry in [entry for entry in directory.path.iterdir() if entry != previous]:
        entry.rename(previous / entry.name)
    directory.record_path.write_bytes((previous / "run.json").read_bytes())
    edit_sealed(directory.record_path, lambda record: record.update(status="interrupted", predictions={}))
    assert directory.status() == "interrupted"
    before = tree(here)
    merged = merge_archive(tmp_path / "a.zip", here)
    assert (len(merged.conflicts), merged.added) == (1, [])
    assert tree(here) == before


def test_a_failed_run_here_gives_way_to_a_finished_one(tmp_path, add_run):
    there, here = tmp_path / "there", tmp_path / "here"
    pack_runs(there, [add_run(there).path], tmp_path / "a.zip")
    add_run(here, status="failed")
    assert len(merge_archive(tmp_path / "a.zip", here).added) == 1
    assert [e.status for e in load_runs(here)] == ["done"]


def test_damaged_predictions_are_not_packed(tmp_path, add_run):
    directory = add_run(tmp_path / "runs")
    file = directory.path / "predictions" / "transductive.npz"
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(StoreError, match="does not match its hash"):
        pack_runs(tmp_path / "runs", [directory.path], tmp_path / "a.zip")
    assert not (tmp_path / "a.zip").exists()


def test_of_imports_at_the_same_time_one_adds_each_run(tmp_path, add_run, manager):
    there, here = tmp_path / "there", tmp_path / "here"
    for seed in range(6):
        add_run(there, seed)
    for seed in range(3):  # these are to be replaced, which takes more than a rename
        add_run(here, seed, status="failed")
    pack_runs(there, [e.path for e in load_runs(there)], tmp_path / "a.zip")
    start = threading.Barrier(4)

    def work(_):
        start.wait()
        return merge_archive(tmp_path / "a.zip", here, manager=manager)

    with ThreadPoolExecutor(4) as pool:
        merged = list(pool.map(work, range(4)))
    added = [name for one in merged for name in one.added]
    assert sorted(added) == sorted(set(added))
    assert len(added) == 6
    assert all(len(one.added) + len(one.present) + len(one.busy) == 6 for one in merged)
    assert [e.status for e in load_runs(here)] == ["done"] * 6
    assert not [p for p in here.iterdir() if p.name.startswith(".import")]


def test_a_run_that_came_while_an_archive_was_unpacked_is_not_claimed(tmp_path, add_run, manager, monkeypatch):
    there, here = tmp_path / "there", tmp_path / "here"
    add_run(there)
    pack_runs(there, [e.path for e in load_runs(there)], tmp_path / "a.zip")
    real = merge.write_json

    def late(path, value):
        real(path, value)
        add_run(here)

    monkeypatch.setattr(merge, "write_json", late)
    merged = merge_archive(tmp_path / "a.zip", here, manager=manager)
    assert (merged.added, len(merged.present)) == ([], 1)


def test_exports_to_one_file_do_not_collide(tmp_path, add_run):
    runs, target = tmp_path / "runs", tmp_path / "out" / "a.zip"
    paths = [add_run(runs, seed).path for seed in range(4)]
    start = threading.Barrier(4)

    def work(count):
        start.wait()
        return [pack_runs(runs, paths[:count], target).files for _ in range(5)]

    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(work, (1, 2, 3, 4)))
    assert [set(found) for found in counts] == [{6}, {12}, {18}, {24}]
    with zipfile.ZipFile(target) as archive:
        assert archive.testzip() is None
    assert [path.name for path in target.parent.iterdir()] == ["a.zip"]


def test_the_commands(tmp_path, add_run):
    there, here, archive = tmp_path / "there", tmp_path / "here", tmp_path / "a.zip"
    for seed in range(2):
        add_run(there, seed)
    runner = CliRunner()
    result = runner.invoke(export_command, [str(archive), "--runs", str(there)])
    assert "Packed 2 run(s)" in result.output
    result = runner.invoke(import_command, [str(archive), "--runs", str(here), "--check"])
    assert "2 run(s) would be added" in result.output
    assert not here.exists()
    result = runner.invoke(import_command, [str(archive), "--runs", str(here)])
    assert "2 run(s) added" in result.output
    nothing = runner.invoke(export_command, [str(archive), "--runs", str(there), "--method", "none"])
    assert isinstance(nothing.exception, GCDBenchError)

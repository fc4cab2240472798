"""Archives: what is packed comes back, two machines merge, and hostile files are refused with nothing written."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import stat
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from gcdbench.cli.export import command as export_command
from gcdbench.cli.import_ import command as import_command
from gcdbench.core.errors import GCDBenchError, StoreError
from gcdbench.core.identity import digest, run_id
from gcdbench.runs.archive import merge
from gcdbench.runs.archive.layout import FORMAT, MANIFEST, ArchiveError, check_name
from gcdbench.runs.archive.merge import merge_archive
from gcdbench.runs.archive.pack import pack_runs
from gcdbench.runs.index import load_runs
from gcdbench.runs.reader import read_scores
from gcdbench.runs.strict_json import SEAL
from gcdbench.testing.stored import edit_sealed


def tree(folder):
    """Every file below a folder with its bytes."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def write_zip(path, members, *, patch=lambda info: None):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            patch(info)
            archive.writestr(info, content)
    return path


def manifest_for(members):
    files = {n: {"size": len(c), "sha256": hashlib.sha256(c).hexdigest()} for n, c in members.items()}
    return json.dumps({"format": FORMAT, "files": files}).encode()


def with_manifest(members):
    return {MANIFEST: manifest_for(members), **members}


@pytest.fixture
def packed(tmp_path, add_run):
    """Members of a good archive with one run, as bytes by name (without the manifest)."""
    runs = tmp_path / "there"
    directory = add_run(runs)
    pack_runs(runs, [directory.path], tmp_path / "good.zip")
    with zipfile.ZipFile(tmp_path / "good.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist() if name != MANIFEST}


def prefix_of(members):
    return "/".join(next(iter(members)).split("/")[:3])


def refused(tmp_path, archive, reason):
    """Import must fail with this reason and leave the store as it was."""
    runs = tmp_path / "here"
    runs.mkdir(exist_ok=True)
    before = tree(tmp_path)
    with pytest.raises(ArchiveError, match=reason) as caught:
        merge_archive(archive, runs)
    assert "Nothing was written" in caught.value.hint
    assert tree(tmp_path) == before
    assert list(runs.iterdir()) == []


def same(name, ours, theirs):
    """Whether a file came back; scores are written here, so that their text may be laid out otherwise."""
    return json.loads(ours) == json.loads(theirs) if name.endswith("scores.json") else ours == theirs


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


def test_names_of_any_script_are_names_of_runs():
    check_name("folder-Größe/simgcd/0123abcd/run.json")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../../outside.json", "leads out of the store"),
        ("phantom/simgcd/../../../outside.json", "leads out of the store"),
        ("/etc/cron.d/outside.json", "absolute path"),
        ("C:/windows/outside.json", "absolute path"),
        ("\\\\host\\share\\outside.json", "absolute path"),
        ("phantom/simgcd/x\\..\\..\\outside.json", "not a name that a run has"),
        ("phantom/simgcd/x/.hidden.json", "not a name that a run has"),
        ("phantom/simgcd/x/evil.py", "not a file of a finished run"),
        ("phantom/simgcd/x/model.pkl", "not a file of a finished run"),
        ("loose.json", "not a file of a finished run"),
        ("phantom/simgcd/x/previous/run.json", "not a file of a finished run"),
        ("phantom/simgcd/x/checkpoint/latest.safetensors", "not a file of a finished run"),
        ("phantom/simgcd/x/lock", "not a file of a finished run"),
        ("phantom/simgcd/x/heartbeat", "not a file of a finished run"),
        ("phantom/simgcd/x/imported.json", "not a file of a finished run"),
        ("phantom/simgcd/x/more.json", "not a file of a finished run"),
        ("phantom/simgcd/x/predictions/notes.json", "not a file of a finished run"),
        ("a/b/c/d/e/f.json", "not a file of a finished run"),
    ],
)
def test_path_tricks(tmp_path, packed, name, reason):
    members = {**packed, name: b"{}"}
    refused(tmp_path, write_zip(tmp_path / "x.zip", with_manifest(members)), reason)
    # The same trick in the manifest alone.
    files = json.loads(manifest_for(packed))["files"] | {name: {"size": 2, "sha256": "0" * 64}}
    listed = {MANIFEST: json.dumps({"format": FORMAT, "files": files}).encode(), **packed}
    refused(tmp_path, write_zip(tmp_path / "y.zip", listed), reason)


@given(st.text(max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_accepted_name_stays_inside(name):
    try:
        accepted = check_name(name)
    except ArchiveError:
        return
    parts = accepted.split("/")
    assert ".." not in parts
    assert not accepted.startswith("/")
    assert all(part and not part.startswith(".") for part in parts)


def test_symbolic_links(tmp_path, packed):
    link = f"{prefix_of(packed)}/env.json"

    def make_link(info):
        if info.filename == link:
            info.create_system = 3
            info.external_attr = (stat.S_IFLNK | 0o777) << 16

    members = {**packed, link: b"/etc/passwd"}
    refused(tmp_path, write_zip(tmp_path / "x.zip", with_manifest(members), patch=make_link), "symbolic link")


def test_wrong_hash_missing_and_unlisted_files(tmp_path, packed):
    scores = f"{prefix_of(packed)}/scores.json"
    changed = {MANIFEST: manifest_for(packed), **packed, scores: packed[scores].replace(b"1", b"2", 1)}
    refused(tmp_path, write_zip(tmp_path / "a.zip", changed), "does not match its hash")
    without = {MANIFEST: manifest_for(packed), **{n: c for n, c in packed.items() if n != scores}}
    refused(tmp_path, write_zip(tmp_path / "b.zip", without), "in its manifest but not in it")
    extra = {MANIFEST: manifest_for(packed), **packed, f"{prefix_of(packed)}/cost.json": b"{}"}
    refused(tmp_path, write_zip(tmp_path / "c.zip", extra), "not in its manifest")
    refused(tmp_path, write_zip(tmp_path / "d.zip", packed), "no manifest")


def test_a_pickle_inside_an_array_file(tmp_path, packed):
    file = f"{prefix_of(packed)}/predictions/transductive.npz"
    marker = tmp_path / "executed"

    class Evil:
        def __reduce__(self):
            return (open, (str(marker), "w"))

    buffer = io.BytesIO()
    np.savez(buffer, ids=np.array([Evil()], dtype=object))
    members = {**packed, file: buffer.getvalue()}
    refused(tmp_path, write_zip(tmp_path / "x.zip", with_manifest(members)), "does not hold plain arrays")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as inner:
        inner.writestr("ids.pkl", b"cos\nsystem\n(S'true'\ntR.")
    members = {**packed, file: buffer.getvalue()}
    refused(tmp_path, write_zip(tmp_path / "y.zip", with_manifest(members)), "is not an array")
    assert not marker.exists()


def zeros(path, name, size):
    """A zip with one member of ``size`` zero bytes, written in pieces."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(MANIFEST, json.dumps({"format": FORMAT, "files": {name: {"size": size, "sha256": "0" * 64}}}))
        with archive.open(name, "w", force_zip64=True) as file:
            piece = bytes(2**24)
            for _ in range(size // len(piece)):
                file.write(piece)
    return path


def test_zeros_that_unpack_to_much_more(tmp_path):
    archive = zeros(tmp_path / "x.zip", "phantom/simgcd/x/predictions/transductive.npz", 2**28)
    assert archive.stat().st_size < 2**22
    refused(tmp_path, archive, "would unpack")


@pytest.mark.slow
def test_ten_gigabytes_of_zeros(tmp_path):
    archive = zeros(tmp_path / "x.zip", "phantom/simgcd/x/predictions/transductive.npz", 10 * 2**30)
    refused(tmp_path, archive, "would unpack")


def test_zeros_inside_an_array_file(tmp_path, packed):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, ids=np.zeros(2**25, dtype=np.int64))
    members = {**packed, f"{prefix_of(packed)}/predictions/transductive.npz": buffer.getvalue()}
    refused(tmp_path, write_zip(tmp_path / "x.zip", with_manifest(members)), "would unpack")


def test_a_size_that_lies(tmp_path, packed):
    file = f"{prefix_of(packed)}/env.json"
    files = json.loads(manifest_for(packed))["files"]
    files[file]["size"] -= 1
    members = {MANIFEST: json.dumps({"format": FORMAT, "files": files}).encode(), **packed}
    refused(tmp_path, write_zip(tmp_path / "x.zip", members), "larger than its manifest says")


def edited(packed, file, change):
    """The archive's members with one JSON file changed and everything else, hashes included, made to fit."""
    name = f"{prefix_of(packed)}/{file}"
    value = json.loads(packed[name])
    del value[SEAL]
    change(value)
    seal = digest(value) if "NaN" not in json.dumps(value) else ""
    return with_manifest({**packed, name: json.dumps({**value, SEAL: seal}).encode()})


def named(record):
    return {"run_id": run_id(record["identity"])}


def set_nmi(scores, value):
    scores["sets"]["transductive"]["scores"]["nmi"] = value


@pytest.mark.parametrize(
    ("file", "change", "reason"),
    [
        ("run.json", lambda r: r.update(schema=99), "schema 99"),
        ("run.json", lambda r: r["identity"].update(seed=5), "does not follow from 'identity'"),
        ("run.json", lambda r: (r["identity"].update(seed=5), r.update(named(r), seed=5)), "not named after"),
        ("run.json", lambda r: r.update(status="failed"), "is failed, not finished"),
        ("run.json", lambda r: r.update(dataset="../../etc"), "belongs to"),
        ("run.json", lambda r: r.update(seed="<script>"), "'seed'"),
        ("run.json", lambda r: r["predictions"]["transductive"].update(sha256="0" * 64), "lacks the predictions"),
        ("run.json", lambda r: r["predictions"]["transductive"].update(file="../x.npz"), "not a file of a run"),
        ("run.json", lambda r: r.update(predictions={}), "no predictions"),
        ("scores.json", lambda s: s["sets"]["transductive"]["scores"].update(all=99.9), "do not follow"),
        ("scores.json", lambda s: s["sets"]["transductive"]["scores"].update(nmi="high"), "must be a table of numbers"),
        ("scores.json", lambda s: s["sets"]["transductive"]["scores"].update(all=float("nan")), "NaN"),
        ("scores.json", lambda s: s.update(sets={}), "no scores for"),
        ("scores.json", lambda s: s["sets"]["transductive"]["scores"].update(false_old=0.0), "'false_old'"),
        ("scores.json", lambda s: s["sets"]["transductive"]["scores"].update(k_hat=80.0), "'k_hat'"),
        ("scores.json", lambda s: s["sets"]["transductive"]["confusion"][0].reverse(), "'confusion'"),
        ("scores.json", lambda s: s["sets"]["transductive"].update(confusion=[[1, 2, 0], [3, 4, 0]]), "'confusion'"),
        ("scores.json", lambda s: s["sets"]["transductive"].update(n=24_000), "'n' on"),
        ("scores.json", lambda s: s["sets"]["transductive"].update(old_share=0.9), "'old_share'"),
        ("scores.json", lambda s: s["sets"].update(inductive=s["sets"]["transductive"]), "no predictions for"),
        ("scores.json", lambda s: (s.update(metrics={}), set_nmi(s, 99.0)), "'nmi'"),
        ("env.json", lambda e: e.update(packages=[]), "'packages' must be a table"),
        ("env.json", lambda e: e.update(cpu="another"), "not what the run recorded"),
        ("run.json", lambda r: r["files"].update({"extra.json": r["files"]["env.json"]}), "lacks 'extra.json'"),
        ("run.json", lambda r: r["split"]["new_classes"].append("one more"), "its split has 9"),
    ],
)
def test_records_that_do_not_hold_together(tmp_path, packed, file, change, reason):
    refused(tmp_path, write_zip(tmp_path / "x.zip", edited(packed, file, change)), reason)


def test_scores_of_metrics_that_are_not_here_are_dropped_with_a_note(tmp_path, packed, manager):
    members = edited(
        packed, "scores.json", lambda s: s["sets"]["transductive"]["scores"].update(accuracy_by_experts=99.9)
    )
    here = tmp_path / "here"
    merged = merge_archive(write_zip(tmp_path / "x.zip", members), here, manager=manager)
    assert merged.dropped == {prefix_of(packed): ("accuracy_by_experts",)}
    [run] = load_runs(here)
    assert "accuracy_by_experts" not in read_scores(run.path).sets["transductive"].scores
    result = CliRunner().invoke(import_command, [str(tmp_path / "x.zip"), "--runs", str(tmp_path / "other")])
    assert "dropped" in result.output
    assert "accuracy_by_experts" in result.output


def test_another_version_of_a_metric_may_say_something_else_and_ours_is_kept(tmp_path, packed, manager):
    def change(scores):
        scores["metrics"]["nmi"] = "gcdbench/0"
        set_nmi(scores, 12.5)

    here = tmp_path / "here"
    merged = merge_archive(write_zip(tmp_path / "x.zip", edited(packed, "scores.json", change)), here, manager=manager)
    assert merged.replaced == {prefix_of(packed): ("nmi",)}
    [run] = load_runs(here)
    theirs = json.loads(packed[f"{prefix_of(packed)}/scores.json"])
    kept = read_scores(run.path)
    assert kept.sets["transductive"].scores == theirs["sets"]["transductive"]["scores"]
    assert kept.metrics["nmi"] == theirs["metrics"]["nmi"]


@pytest.mark.parametrize(
    "arrays",
    [
        {"cluster": np.zeros((240, 2), dtype=np.int64)},
        {"cluster": np.full(240, -1)},
        {"y_true": np.full(240, 2**60)},
        {"y_true": np.zeros(240)},
        {"is_old": np.zeros((8, 2), dtype=bool)},
        {"is_old": np.zeros(8, dtype=np.int64)},
        {"is_old": np.zeros(50_000, dtype=bool)},
        {"group": np.zeros(3, dtype=np.int64)},
        {"k_hat": np.arange(3)},
        {"ids": np.array(["a"] * 240)},
    ],
)
def test_predictions_that_are_none(tmp_path, packed, arrays):
    file = f"{prefix_of(packed)}/predictions/transductive.npz"
    with np.load(io.BytesIO(packed[file])) as found:
        content = {**found, **arrays}
    buffer = io.BytesIO()
    np.savez(buffer, **content)
    body = buffer.getvalue()
    sha256 = hashlib.sha256(body).hexdigest()

    def change(record):
        record["predictions"]["transductive"]["sha256"] = sha256
        record["files"]["predictions/transductive.npz"] = {"sha256": sha256, "size": len(body)}

    members = edited({**packed, file: body}, "run.json", change)
    refused(tmp_path, write_zip(tmp_path / "x.zip", members), "cannot be scored")


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


def test_things_that_are_no_archive(tmp_path):
    (tmp_path / "x.zip").write_bytes(b"not a zip")
    refused(tmp_path, tmp_path / "x.zip", "not a zip file")
    refused(tmp_path, tmp_path / "absent.zip", "does not exist")
    refused(tmp_path, write_zip(tmp_path / "y.zip", {MANIFEST: b"[" * 100_000}), "manifest")
    refused(tmp_path, write_zip(tmp_path / "z.zip", {MANIFEST: b'{"format": "other/1"}'}), "format")


def test_a_flipped_byte_never_adds_a_wrong_run(tmp_path, packed, manager):
    good = (tmp_path / "good.zip").read_bytes()
    here, bad = tmp_path / "fuzz", tmp_path / "bad.zip"
    rng = np.random.default_rng(0)
    accepted = 0
    for position in rng.integers(0, len(good), 250):
        content = bytearray(good)
        content[position] ^= int(rng.integers(1, 256))
        bad.write_bytes(bytes(content))
        try:
            merge_archive(bad, here, manager=manager)
        except GCDBenchError:
            assert not here.exists(), position
            continue
        accepted += 1  # harmless: a byte of a header that says nothing about the content, such as a date
        for name in packed:
            assert same(name, (here / name).read_bytes(), packed[name]), position
        shutil.rmtree(here)
    assert accepted < 100


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

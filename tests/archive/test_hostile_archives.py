"""Archives with tricks in them, or damaged: refused, with nothing written."""

from __future__ import annotations

import io
import json
import shutil
import stat
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcdbench.core.errors import GCDBenchError
from gcdbench.runs.archive.layout import FORMAT, MANIFEST, ArchiveError, check_name
from gcdbench.runs.archive.merge import merge_archive
from tests.archive.archives import manifest_for, prefix_of, refused, same, with_manifest, write_zip


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

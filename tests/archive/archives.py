"""Zip files as an archive has them, and crafted ones; an import that must be refused."""

from __future__ import annotations

import hashlib
import json
import zipfile

import pytest

from gcdbench.runs.archive.layout import FORMAT, MANIFEST, ArchiveError
from gcdbench.runs.archive.merge import merge_archive


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

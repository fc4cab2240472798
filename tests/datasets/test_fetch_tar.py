"""Archives of the tar kind: fetched, checked, unpacked where the loaders look, and refused where they would escape."""

from __future__ import annotations

import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from gcdbench.core.errors import DataError
from gcdbench.datasets.card import load_card
from gcdbench.datasets.fetch import fetch_dataset, unpack
from tests.data.loading import opened
from tests.data.test_fetch import Server, md5, server
from tests.datasets.field_copies import COPIES

__all__ = ["server"]


def tarred(folder: Path, *names: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name in names:
            archive.add(folder / name, arcname=name)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "tops"),
    [
        ("cifar10", ("cifar-10-batches-bin",)),
        ("cifar100", ("cifar-100-binary",)),
        ("cub-200-2011", ("CUB_200_2011",)),
        ("fgvc-aircraft", ("fgvc-aircraft-2013b",)),
        ("herbarium-19", ("herbarium-19/small-train", "herbarium-19/small-validation")),
    ],
)
def test_a_set_is_fetched_to_where_its_loader_looks(
    name: str, tops: tuple[str, ...], server: Server, tmp_path: Path
) -> None:
    COPIES[name](tmp_path / "made")
    card = load_card(name)
    assert set(card.checksums) >= set(card.downloads)
    downloads, checksums = {}, {}
    for file, top in zip(card.downloads, tops, strict=True):
        folder, _, inside = f"./{top}".rpartition("/")
        server.files[f"/{file}"] = tarred(tmp_path / "made" / folder, inside)
        downloads[file] = f"{server.address}/{file}"
        checksums[file] = md5(server.files[f"/{file}"])
    fetch_dataset(replace(card, downloads=downloads, checksums=checksums), tmp_path / "root")
    found = opened(name, tmp_path / "root")
    made = opened(name, tmp_path / "made")
    assert found.keys == made.keys
    assert found.raw(len(found) - 1) == made.raw(len(made) - 1)
    assert not [path for path in (tmp_path / "root").rglob("*") if path.name.startswith(".") or path.suffix == ".gz"]


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.size = kind, link, 3 if kind == tarfile.REGTYPE else 0
    return made


@pytest.mark.parametrize(
    "members",
    [
        [member("../evil.txt")],
        [member("a/../../evil.txt")],
        [member("link", tarfile.SYMTYPE, ".."), member("link/evil.txt")],
        [member("link", tarfile.SYMTYPE, "/etc/passwd")],
        [member("hard", tarfile.LNKTYPE, "../secret.txt")],
        [member("device", tarfile.CHRTYPE)],
        [member("pipe", tarfile.FIFOTYPE)],
    ],
)
def test_an_archive_that_would_escape_is_refused(members: list[tarfile.TarInfo], tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("mine")
    with tarfile.open(tmp_path / "evil.tar.gz", "w:gz") as archive:
        for info in members:
            archive.addfile(info, io.BytesIO(b"xyz") if info.isreg() else None)
    with pytest.raises(DataError, match="not a complete archive"):
        unpack(tmp_path / "evil.tar.gz", tmp_path / "inner" / "out")
    assert not list(tmp_path.rglob("evil.txt"))
    assert not [path for path in tmp_path.rglob("*") if path.is_symlink()]
    assert (tmp_path / "secret.txt").read_text() == "mine"


def test_absolute_names_land_inside(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as archive:
        archive.addfile(member(f"{tmp_path}/outside.txt"), io.BytesIO(b"xyz"))
    unpack(tmp_path / "a.tgz", tmp_path / "out")
    assert not (tmp_path / "outside.txt").exists()
    [found] = (tmp_path / "out").rglob("outside.txt")
    assert found.read_bytes() == b"xyz"


def test_a_cut_archive_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.bin").write_bytes(bytes(range(256)) * 500)
    (tmp_path / "cut.tar.gz").write_bytes(tarred(tmp_path, "data")[:-300])
    with pytest.raises(DataError, match="not a complete archive"):
        unpack(tmp_path / "cut.tar.gz", tmp_path / "out")
    assert not list((tmp_path / "out").rglob("*"))

"""Downloads from a small server of the test's own: resumed, checked, unpacked; and what is said offline."""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gcdbench.core.errors import DataError
from gcdbench.datasets import fetch
from gcdbench.datasets.card import load_card
from gcdbench.datasets.fetch import download, fetch_dataset, unpack

CONTENT = bytes(range(256)) * 4000


class Server(ThreadingHTTPServer):
    """Serves ``files``; ``cut`` ends the next answer after so many bytes; ``ranges`` remembers what was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {"/data.bin": CONTENT}
        self.cut: int | None = None
        self.resumable = True
        self.ranges: list[str | None] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        body = self.server.files.get(self.path)
        if body is None:
            self.send_error(404)
            return
        asked = self.headers.get("Range")
        self.server.ranges.append(asked)
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and self.server.resumable else 0
        if start and start >= len(body):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        end = len(body) if self.server.cut is None else start + self.server.cut
        self.server.cut = None
        self.wfile.write(body[start:end])

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def md5(data: bytes) -> str:
    return "md5:" + hashlib.md5(data).hexdigest()


def test_a_download_is_checked_and_reports_progress(server: Server, tmp_path: Path) -> None:
    calls: list[tuple[str, int, int]] = []
    target = tmp_path / "deep" / "data.bin"
    download(f"{server.address}/data.bin", target, checksum=md5(CONTENT), progress=lambda *c: calls.append(c))
    assert target.read_bytes() == CONTENT
    assert ("fetching data.bin", len(CONTENT), len(CONTENT)) in calls
    download(f"{server.address}/data.bin", target, checksum=md5(CONTENT))
    assert server.ranges == [None]  # not fetched a second time


@pytest.mark.parametrize("resumable", [True, False])
def test_a_broken_download_is_continued(server: Server, tmp_path: Path, resumable: bool) -> None:
    server.cut, server.resumable = 300_000, resumable
    target = tmp_path / "data.bin"
    with pytest.raises(DataError, match=r"data\.bin could not be fetched"):
        download(f"{server.address}/data.bin", target)
    assert not target.exists()
    assert (tmp_path / "data.bin.part").stat().st_size == 300_000
    download(f"{server.address}/data.bin", target, checksum=md5(CONTENT))
    assert target.read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=300000-"]
    assert not (tmp_path / "data.bin.part").exists()


def test_a_part_that_was_complete_is_used(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data.bin.part").write_bytes(CONTENT)
    download(f"{server.address}/data.bin", tmp_path / "data.bin", checksum=md5(CONTENT))
    assert (tmp_path / "data.bin").read_bytes() == CONTENT


def test_a_wrong_checksum_is_refused_and_deleted(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="damaged or was replaced"):
        download(f"{server.address}/data.bin", tmp_path / "data.bin", checksum=md5(b"other"))
    assert list(tmp_path.iterdir()) == []


def test_offline_one_sentence_says_which_file_goes_where(tmp_path: Path) -> None:
    card = replace(load_card("kvasir"), downloads={"kvasir-dataset.zip": "http://127.0.0.1:9/kvasir-dataset.zip"})
    with pytest.raises(DataError) as caught:
        fetch_dataset(card, tmp_path)
    assert "kvasir-dataset.zip" in caught.value.message
    assert "http://127.0.0.1:9/" in caught.value.message
    assert f"put it into {tmp_path}" in caught.value.message


def test_an_address_that_is_gone(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Not Found"):
        download(f"{server.address}/gone.bin", tmp_path / "gone.bin")


def zipped(names: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in names.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def test_an_archive_is_unpacked_where_the_loader_looks(server: Server, tmp_path: Path) -> None:
    server.files["/k.zip"] = zipped({"kvasir-dataset/polyps/1.jpg": b"x", "../../evil.txt": b"y"})
    card = replace(load_card("kvasir"), downloads={"k.zip": f"{server.address}/k.zip"})
    fetch_dataset(card, tmp_path / "root")
    assert (tmp_path / "root" / card.places[0] / "polyps" / "1.jpg").read_bytes() == b"x"
    assert not (tmp_path / "root" / "k.zip").exists()
    assert not (tmp_path / "evil.txt").exists()
    assert not list((tmp_path / "root" / "kvasir").glob(".unpacking*"))


def test_a_dataset_of_two_archives_is_not_left_half_unpacked(server: Server, tmp_path: Path) -> None:
    server.files["/NCT-CRC-HE-100K.zip"] = zipped({"NCT-CRC-HE-100K/ADI/1.tif": b"x"})
    names = ("NCT-CRC-HE-100K.zip", "CRC-VAL-HE-7K.zip")
    card = replace(
        load_card("nct-crc-he-100k"), downloads={name: f"{server.address}/{name}" for name in names}, checksums={}
    )
    with pytest.raises(DataError, match="Not Found"):
        fetch_dataset(card, tmp_path)
    assert not (tmp_path / "NCT-CRC-HE-100K").exists()
    server.files["/CRC-VAL-HE-7K.zip"] = zipped({"CRC-VAL-HE-7K/ADI/1.tif": b"y"})
    server.files["/NCT-CRC-HE-100K.zip"] = b"is not fetched again"
    fetch_dataset(card, tmp_path)
    assert (tmp_path / "NCT-CRC-HE-100K/ADI/1.tif").read_bytes() == b"x"
    assert (tmp_path / "CRC-VAL-HE-7K/ADI/1.tif").read_bytes() == b"y"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["CRC-VAL-HE-7K", "NCT-CRC-HE-100K"]


def test_what_is_here_is_refused_before_the_download(tmp_path: Path) -> None:
    card = replace(load_card("kvasir"), downloads={"k.zip": "http://127.0.0.1:9/k.zip"})
    (tmp_path / card.places[0]).mkdir(parents=True)
    with pytest.raises(DataError, match="exists already; remove it"):
        fetch_dataset(card, tmp_path)


def test_a_cut_archive_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "cut.zip"
    path.write_bytes(zipped({"a/1.jpg": b"x" * 9000})[:-40])
    with pytest.raises(DataError, match="not a complete archive"):
        unpack(path, tmp_path / "out")
    assert not (tmp_path / "out").exists() or list((tmp_path / "out").iterdir()) == []


def test_what_a_killed_unpacking_left_counts_as_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "k.zip"
    path.write_bytes(zipped({"a/1.jpg": b"x" * 9000}))
    left = tmp_path / "out" / ".unpacking-k" / "a"
    left.mkdir(parents=True)
    seen: list[bool] = []
    monkeypatch.setattr(fetch, "require_space", lambda *arguments: seen.append(left.exists()))
    unpack(path, tmp_path / "out")
    assert seen == [False]
    assert (tmp_path / "out" / "a" / "1.jpg").stat().st_size == 9000


def test_a_dataset_without_an_address_gives_instructions(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        fetch_dataset(load_card("pbc"), tmp_path)
    assert "data.mendeley.com" in caught.value.message
    assert str(tmp_path) in caught.value.message

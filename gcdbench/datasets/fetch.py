"""Downloads that can be resumed, are checked, and say what to do by hand when there is no network."""

from __future__ import annotations

import gzip
import http.client
import os
import shutil
import tarfile
import urllib.error
import urllib.request
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from gcdbench.core.disk_space import require_space
from gcdbench.core.errors import DataError
from gcdbench.core.work import Progress
from gcdbench.datasets.card import DatasetCard
from gcdbench.datasets.checksums import file_checksum

ARCHIVES = (".zip", ".tar.gz", ".tgz", ".tar")

_BLOCK = 2**20
_TIMEOUT = 30.0


def fetch_dataset(
    card: DatasetCard, root: Path, *, files: tuple[str, ...] | None = None, progress: Progress | None = None
) -> list[Path]:
    """Download the published files of a dataset into ``root`` and unpack archives where the loader looks for them.

    ``files`` chooses among ``card.downloads``. Archives are unpacked when all files are here, so that a dataset of
    several is not found half, and then deleted.
    """
    if not card.downloads:
        place = root / (card.places[0] if card.places else card.name)
        raise DataError(
            f"'{card.name}' has no plain address to download from: get it from {card.source} and put it into {place}.",
            hint=f"Layout: {card.layout}",
        )
    targets = [root / name for name in files or tuple(card.downloads)]
    archives = [target for target in targets if target.name.endswith(ARCHIVES)]
    if archives and (place := root / card.places[0]).exists():
        raise DataError(f"{place} exists already; remove it before fetching '{card.name}' again.")
    for target in targets:
        download(card.downloads[target.name], target, checksum=card.checksums.get(target.name), progress=progress)
    folder = root / PurePosixPath(card.places[0]).parent if archives else root
    for archive in archives:
        unpack(archive, folder, progress)
    for archive in archives:
        archive.unlink()
    return [folder if target in archives else target for target in targets]


def download(address: str, target: Path, *, checksum: str | None = None, progress: Progress | None = None) -> None:
    """Fetch one file. What an earlier, broken attempt left in ``<target>.part`` is continued, not fetched again."""
    if target.is_file() and (checksum is None or file_checksum(target, checksum.partition(":")[0]) == checksum):
        return
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _receive(address, part, progress)
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        reason = getattr(error, "reason", None) or error
        raise DataError(
            f"{target.name} could not be fetched ({reason}): "
            f"download it from {address} and put it into {target.parent}.",
            hint="The same command then continues from there"
            + (", or resumes this download." if part.exists() else "."),
        ) from None
    if checksum is not None:
        found = file_checksum(part, checksum.partition(":")[0], progress=progress)
        if found != checksum:
            part.unlink()
            raise DataError(
                f"{target.name} from {address} is damaged or was replaced: its checksum is {found}, "
                f"expected {checksum}; it was deleted."
            )
    os.replace(part, target)


def _receive(address: str, part: Path, progress: Progress | None) -> None:
    done = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "gcdbench"}
    if done:
        headers["Range"] = f"bytes={done}-"
    try:
        response = urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == 416 and done:  # nothing beyond what is here: the file was complete
            return
        raise
    with response:
        if response.status != 206:
            done = 0  # the server does not continue: begin again
        length = int(response.headers.get("Content-Length") or 0)
        total = done + length
        if length:
            require_space(part.parent, length, f"{part.name.removesuffix('.part')}")
        with part.open("ab" if done else "wb") as file:
            while block := response.read(_BLOCK):
                file.write(block)
                done += len(block)
                if progress:
                    progress(f"fetching {part.name.removesuffix('.part')}", done, max(total, done))
    if length and done < total:
        raise http.client.IncompleteRead(b"", total - done)


def unpack(archive: Path, folder: Path, progress: Progress | None = None) -> None:
    """Unpack an archive into ``folder``; its entries appear there only when all of them were written."""
    temporary = folder / f".unpacking-{archive.stem}"
    try:
        shutil.rmtree(temporary, ignore_errors=True)  # of a killed attempt: its room counts as free
        if archive.suffix == ".zip":
            _unpack_zip(archive, temporary, progress)
        else:
            _unpack_tar(archive, temporary, progress)
        for entry in temporary.iterdir():
            if (folder / entry.name).exists():
                raise DataError(f"{folder / entry.name} exists already; remove it before unpacking {archive.name}.")
            os.replace(entry, folder / entry.name)
    except (zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(
            f"{archive} is not a complete archive: {error}.", hint="Delete it and fetch it again."
        ) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _unpack_zip(archive: Path, target: Path, progress: Progress | None) -> None:
    with zipfile.ZipFile(archive) as packed:
        members = packed.infolist()
        require_space(target.parent, sum(member.file_size for member in members), f"Unpacking {archive.name}")
        for done, member in enumerate(members, start=1):
            packed.extract(member, target)  # names that would leave the folder are made harmless by zipfile
            _tell(progress, archive, done, len(members))


def _unpack_tar(archive: Path, target: Path, progress: Progress | None) -> None:
    if not hasattr(tarfile, "data_filter"):
        raise DataError(
            f"This Python cannot unpack {archive} safely.",
            hint=f"Unpack it into {target.parent} by hand, or use Python 3.11.4 or later.",
        )
    with tarfile.open(archive) as packed:
        members = packed.getmembers()
        require_space(target.parent, sum(member.size for member in members), f"Unpacking {archive.name}")
        for done, member in enumerate(members, start=1):
            # "data" refuses names and links that lead out of the folder, devices, and special permissions.
            packed.extract(member, target, filter="data")
            _tell(progress, archive, done, len(members))


def _tell(progress: Progress | None, archive: Path, done: int, total: int) -> None:
    if progress and (done % 100 == 0 or done == total):
        progress(f"unpacking {archive.name}", done, total)

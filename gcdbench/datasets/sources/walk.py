"""Finding image files below a folder, whatever else is there, and reading them."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from gcdbench.core.regular_files import open_regular, read_regular, require_regular
from gcdbench.datasets.sources.kinds import is_image


@dataclass(frozen=True, kw_only=True)
class FoundFile:
    """An image file: ``key`` is its path below the root, with forward slashes."""

    key: str
    size: int
    stamp: str


@dataclass(frozen=True, kw_only=True)
class IgnoredFile:
    """Something below the root that is not used, and why."""

    key: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class FileReader:
    """Reads samples from files below ``root``; ``raw`` of every dataset stored in files. Picklable.

    ignored: what else was found, for the audit; size: bytes of all files together.
    """

    root: str
    names: tuple[str, ...]
    ignored: tuple[IgnoredFile, ...] = ()
    size: int = 0

    def __call__(self, index: int) -> bytes:
        return read_regular(self.path(index))

    def open(self, index: int) -> BinaryIO:
        """The file of sample ``index``, open for reading."""
        return open_regular(self.path(index))

    def path(self, index: int) -> str:
        """Path of sample ``index``."""
        return os.path.join(self.root, self.names[index])


@dataclass(frozen=True, kw_only=True)
class Listing:
    """All that was found below a folder, sorted by key."""

    files: tuple[FoundFile, ...]
    ignored: tuple[IgnoredFile, ...]


def list_images(root: Path, *, wanted: Callable[[str], bool] | None = None) -> Listing:
    """Walk ``root`` (following links, each real folder once) and sort what is there into images and the rest.

    Hidden files and folders are never samples: file managers leave thumbnails and ``._name.jpg`` twins behind.
    ``wanted(name)`` may leave out folders at the first level.
    """
    files: list[FoundFile] = []
    ignored: list[IgnoredFile] = []
    _walk(root, "", set(), files, ignored, wanted)
    return Listing(
        files=tuple(sorted(files, key=lambda file: file.key)),
        ignored=tuple(sorted(ignored, key=lambda file: file.key)),
    )


def fingerprint(root: Path, files: Iterable[FoundFile], *extra: str) -> str:
    """A token that changes whenever a file is added, removed, renamed or written; no content is read.

    ``extra`` is anything else that the samples depend on, for example the stamp of a list of files.
    """
    lines = [str(root.resolve()), *extra, *(f"{file.key}\t{file.size}\t{file.stamp}" for file in files)]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def file_stamp(path: Path) -> str:
    """Size and times of one file, as a string."""
    status = path.stat()
    return f"{path}\t{status.st_size}\t{_stamp(status)}"


def found_file(root: Path, key: str) -> FoundFile:
    """One file that a list names; raises OSError when it is not there, or is not a regular file."""
    status = (root / key).stat()
    require_regular(status)
    return FoundFile(key=key, size=status.st_size, stamp=_stamp(status))


def _stamp(status: os.stat_result) -> str:
    # The time of the last change of metadata as well: copying tools may restore the time of modification.
    return f"{status.st_mtime_ns}.{status.st_ctime_ns}"


def _walk(
    folder: Path,
    prefix: str,
    above: set[tuple[int, int]],
    files: list[FoundFile],
    ignored: list[IgnoredFile],
    wanted: Callable[[str], bool] | None,
) -> None:
    status = folder.stat()
    inside = above | {(status.st_dev, status.st_ino)}
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        key = prefix + entry.name
        try:
            entry_status = entry.stat()
        except OSError as error:
            ignored.append(IgnoredFile(key=key, reason=f"cannot be reached ({error.strerror})"))
            continue
        is_folder = stat.S_ISDIR(entry_status.st_mode)
        if entry.name.startswith("."):
            ignored.append(IgnoredFile(key=key, reason="hidden folder" if is_folder else "hidden file"))
        elif is_folder:
            if (entry_status.st_dev, entry_status.st_ino) in inside:
                ignored.append(IgnoredFile(key=key, reason="link to a folder above it (a loop)"))
            elif wanted is None or wanted(entry.name):
                try:
                    _walk(Path(entry.path), f"{key}/", inside, files, ignored, None)
                except OSError as error:
                    ignored.append(IgnoredFile(key=key, reason=f"cannot be listed ({error.strerror})"))
        elif not stat.S_ISREG(entry_status.st_mode):
            ignored.append(IgnoredFile(key=key, reason="neither a file nor a folder"))
        elif is_image(entry.path):
            files.append(FoundFile(key=key, size=entry_status.st_size, stamp=_stamp(entry_status)))
        else:
            ignored.append(IgnoredFile(key=key, reason="not an image by its name"))

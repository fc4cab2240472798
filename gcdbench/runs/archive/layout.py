"""What an archive looks like, and which names may occur in one."""

from __future__ import annotations

import json
import re
import stat
import struct
import zipfile
import zlib
from dataclasses import dataclass
from typing import Any

from gcdbench.core.errors import GCDBenchError
from gcdbench.runs.reader import CONFIG, COST, ENVIRONMENT, EVENTS, RECORD, SCORES

FORMAT = "gcdbench-archive/1"
MANIFEST = "manifest.json"
MANIFEST_LIMIT = 64 * 2**20
LARGEST = 2**63
RATIO_LIMIT = 200
RATIO_FLOOR = 64 * 2**20
"""A member (or a whole archive) of more than RATIO_FLOOR bytes that shrank more than RATIO_LIMIT-fold is a bomb."""

_PART = re.compile(r"\w[\w.+=@,-]*")  # letters of any script, as in names of folders
WEIGHTS = ("model.safetensors", "auxiliary.safetensors")
FILES = frozenset({RECORD, CONFIG, ENVIRONMENT, EVENTS, SCORES, COST, "model.json", *WEIGHTS})
FOLDERS = {"predictions": (".npz",), "embeddings": (".npz",), "attention": (".npz", ".png", ".svg")}
"""Folders of a finished run, and how the names of the files in them end. Nothing else is part of an archive."""
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
"""What Python's zip reader raises on damaged or crafted files."""


class ArchiveError(GCDBenchError):
    """An archive that is damaged, not ours, or hostile."""


@dataclass(frozen=True, kw_only=True)
class FileEntry:
    """One file as the manifest describes it."""

    size: int
    sha256: str


def refuse(reason: str) -> ArchiveError:
    """The error for an archive that will not be unpacked."""
    return ArchiveError(f"The archive is refused: {reason}.", hint="Nothing was written.")


def check_name(name: str) -> str:
    """A member's name if it is ``dataset/method/run_id/`` and a file that a finished run has; else an error."""
    if name.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", name):
        raise refuse(f"'{name}' is an absolute path")
    parts = name.split("/")
    if ".." in parts:
        raise refuse(f"'{name}' leads out of the store")
    if "\\" in name or not all(_PART.fullmatch(part) for part in parts):
        raise refuse(f"{name!r} is not a name that a run has")
    if not _of_a_finished_run(parts[3:]):
        raise refuse(f"'{name}' is not a file of a finished run")
    return name


def _of_a_finished_run(parts: list[str]) -> bool:
    match parts:
        case [file]:
            return file in FILES
        case [folder, file]:
            return file.endswith(FOLDERS.get(folder, ())) and not file.startswith(".")
    return False


def check_member(info: zipfile.ZipInfo) -> None:
    """Refuse what is not a plain file, or encrypted, or shrank beyond belief."""
    mode = info.external_attr >> 16
    if mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode):
        kind = "a symbolic link" if stat.S_ISLNK(mode) else "not a regular file"
        raise refuse(f"'{info.filename}' is {kind}")
    if info.flag_bits & 0x1:
        raise refuse(f"'{info.filename}' is encrypted")
    if info.file_size > RATIO_FLOOR and info.file_size > RATIO_LIMIT * max(1, info.compress_size):
        raise refuse(f"'{info.filename}' would unpack {info.compress_size:,} bytes to {info.file_size:,}")


def read_manifest(archive: zipfile.ZipFile) -> dict[str, FileEntry]:
    """Member name -> size and hash, from the manifest; every name checked."""
    try:
        info = archive.getinfo(MANIFEST)
    except KeyError:
        raise refuse("it has no manifest, so it was not made by 'gcdbench export'") from None
    check_member(info)
    if info.file_size > MANIFEST_LIMIT:
        raise refuse("its manifest is too large")
    try:
        value: Any = json.loads(archive.read(info))
    except DAMAGE as error:  # RecursionError, from JSON nested too deeply, is a RuntimeError
        raise refuse(f"its manifest cannot be read ({error})") from None
    if not isinstance(value, dict) or value.get("format") != FORMAT or not isinstance(value.get("files"), dict):
        raise refuse(f"its manifest is not of the format {FORMAT}")
    files = {}
    for name, entry in value["files"].items():
        match entry:
            case {"size": int(size), "sha256": str(sha256)} if not isinstance(size, bool) and 0 <= size < LARGEST:
                files[check_name(name)] = FileEntry(size=size, sha256=sha256)
            case _:
                raise refuse(f"its manifest does not describe {name!r}")
    return files

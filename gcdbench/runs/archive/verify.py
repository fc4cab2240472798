"""Looking through an archive without writing anything: names, sizes, hashes, schema, arrays, and every score again."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gcdbench.core.errors import GCDBenchError, StoreError
from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.archive.layout import (
    DAMAGE,
    MANIFEST,
    RATIO_FLOOR,
    RATIO_LIMIT,
    FileEntry,
    check_member,
    check_name,
    read_manifest,
    refuse,
)
from gcdbench.runs.archive.scoring import Recomputed, recompute
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.integrity import may_be_absent
from gcdbench.runs.reader import (
    CONFIG,
    ENVIRONMENT,
    EVENTS,
    RECORD,
    SCORES,
    checked,
    parse_config,
    parse_environment,
    parse_events,
    parse_record,
    parse_scores,
)
from gcdbench.runs.record import DONE, TRANSDUCTIVE, Environment, Record

CHUNK = 2**20
DEFAULT_LIMIT = 8 * 2**30


@dataclass(frozen=True, kw_only=True)
class ArchivedRun:
    """A run that passed every check; ``files`` are its members' names, ``prefix`` is ``dataset/method/run_id``.

    scored: its scores as they were computed here, which are the ones to keep.
    """

    prefix: str
    record: Record
    environment: Environment
    scored: Recomputed
    files: Mapping[str, FileEntry]


def open_archive(path: Path) -> zipfile.ZipFile:
    """Open a zip; anything else is refused."""
    try:
        return zipfile.ZipFile(path)
    except FileNotFoundError:
        raise refuse(f"'{path}' does not exist") from None
    except DAMAGE as error:
        raise refuse(f"'{path}' is not a zip file ({error})") from None


def verify(archive: zipfile.ZipFile, manager: PluginManager, limit: int = DEFAULT_LIMIT) -> list[ArchivedRun]:
    """Every run of the archive, or an error that names the first thing that is wrong."""
    members = _check_members(archive, limit)
    manifest = read_manifest(archive)
    if missing := sorted(set(manifest) - members):
        raise refuse(f"'{missing[0]}' is in its manifest but not in it")
    if extra := sorted(members - set(manifest) - {MANIFEST}):
        raise refuse(f"'{extra[0]}' is not in its manifest")
    groups: dict[str, dict[str, FileEntry]] = {}
    for name, entry in manifest.items():
        groups.setdefault("/".join(name.split("/")[:3]), {})[name] = entry
    return [_verify_run(archive, prefix, files, manager) for prefix, files in groups.items()]


def _check_members(archive: zipfile.ZipFile, limit: int) -> set[str]:
    seen: set[str] = set()
    total = packed = 0
    for info in archive.infolist():
        check_member(info)
        if info.filename != MANIFEST:
            check_name(info.filename)
        if info.filename in seen:
            raise refuse(f"'{info.filename}' occurs twice")
        seen.add(info.filename)
        total, packed = total + info.file_size, packed + info.compress_size
    if total > limit:
        raise refuse(f"it would unpack to {total / 2**30:.1f} GiB, more than the limit of {limit / 2**30:.1f} GiB")
    if total > RATIO_FLOOR and total > RATIO_LIMIT * max(1, packed):
        raise refuse(f"it would unpack {packed:,} bytes to {total:,}")
    return seen


def read_member(archive: zipfile.ZipFile, name: str, entry: FileEntry) -> bytes:
    """A member's content, after checking its size and hash; never reads more than the manifest allows."""
    content = io.BytesIO()
    digest = hashlib.sha256()
    try:
        with archive.open(name) as file:
            while piece := file.read(CHUNK):
                digest.update(piece)
                content.write(piece)
                if content.tell() > entry.size:
                    raise refuse(f"'{name}' is larger than its manifest says")
    except DAMAGE as error:
        raise refuse(f"'{name}' is damaged ({error})") from None
    if content.tell() != entry.size or digest.hexdigest() != entry.sha256:
        raise refuse(f"'{name}' does not match its hash")
    return content.getvalue()


def _verify_run(
    archive: zipfile.ZipFile, prefix: str, files: Mapping[str, FileEntry], manager: PluginManager
) -> ArchivedRun:
    # One run at a time is held in memory; its predictions are needed to check its scores.
    contents = {name.removeprefix(f"{prefix}/"): read_member(archive, name, entry) for name, entry in files.items()}
    try:
        record = parse_record(_member(prefix, contents, RECORD), Path(prefix))
        environment = parse_environment(_member(prefix, contents, ENVIRONMENT), f"{prefix}/{ENVIRONMENT}")
        scores = parse_scores(_member(prefix, contents, SCORES), f"{prefix}/{SCORES}")
        parse_events(contents.get(EVENTS, b""), f"{prefix}/{EVENTS}")
        if CONFIG in contents:  # left out where it names files
            parse_config(contents[CONFIG], f"{prefix}/{CONFIG}")
    except StoreError as error:
        raise refuse(error.message.rstrip(".")) from None
    name = prefix.rpartition("/")[2]
    if record.run_id != name:
        raise refuse(f"run '{prefix}' is not named after its identity")
    home = RunDirectory.at(Path(), record.dataset, record.method, name)
    if home.path.as_posix() != prefix:
        raise refuse(f"run '{prefix}' belongs to '{home.path.as_posix()}'")
    if record.status != DONE or record.folder:
        raise refuse(f"run '{prefix}' is {record.status}, not finished")
    arrays = {
        path: load_arrays_safely(f"{prefix}/{path}", body) for path, body in contents.items() if path.endswith(".npz")
    }
    _check_files(prefix, record, contents)
    predictions = _predictions(prefix, record, contents, arrays)
    scored = recompute(prefix, predictions, scores, len(record.split.classes), manager)
    return ArchivedRun(prefix=prefix, record=record, environment=environment, scored=scored, files=files)


def _member(prefix: str, contents: Mapping[str, bytes], name: str) -> bytes:
    if name not in contents:
        raise refuse(f"run '{prefix}' has no {name}")
    return contents[name]


def load_arrays_safely(name: str, content: bytes) -> dict[str, Any]:
    """The arrays of an ``.npz``: plain ones only, and no more than their compressed size makes credible."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as inner:
            for info in inner.infolist():
                check_member(info)
                if not info.filename.endswith(".npy") or "/" in info.filename:
                    raise refuse(f"'{name}' holds '{info.filename}', which is not an array")
            total = sum(info.file_size for info in inner.infolist())
            if total > RATIO_FLOOR and total > RATIO_LIMIT * len(content):
                raise refuse(f"'{name}' would unpack {len(content):,} bytes to {total:,}")
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except GCDBenchError:
        raise
    except Exception as error:  # numpy raises many kinds on crafted headers; none of them may pass
        raise refuse(f"'{name}' does not hold plain arrays ({error})") from None


def _check_files(prefix: str, record: Record, contents: Mapping[str, bytes]) -> None:
    """Every file must be what the run recorded, and what it recorded must be there, but for what may be left out."""
    for name in record.files:
        if name not in contents and not may_be_absent(name):
            raise refuse(f"run '{prefix}' lacks '{name}', which it recorded")
    for name, content in contents.items():
        try:
            checked(record, name, content)
        except StoreError:
            raise refuse(f"'{prefix}/{name}' is not what the run recorded") from None


def _predictions(
    prefix: str, record: Record, contents: Mapping[str, bytes], arrays: Mapping[str, Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    """The arrays of each evaluation set, which must be those that the run recorded."""
    if TRANSDUCTIVE not in record.predictions:
        raise refuse(f"run '{prefix}' has no predictions")
    for name, entry in record.predictions.items():
        if entry.file not in arrays or hashlib.sha256(contents[entry.file]).hexdigest() != entry.sha256:
            raise refuse(f"run '{prefix}' lacks the predictions it recorded for '{name}'")
    return {name: arrays[entry.file] for name, entry in record.predictions.items()}

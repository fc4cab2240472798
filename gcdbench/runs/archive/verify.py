"""Looking through an archive without writing anything: names, sizes, hashes, schema, and what arrays hold."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gcdbench.core.errors import GCDBenchError
from gcdbench.core.identity import run_id
from gcdbench.metrics.accuracy import accuracy
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
from gcdbench.runs.directory import DONE, SCHEMA, RunDirectory
from gcdbench.runs.predictions import ScoredSet

CHUNK = 2**20
DEFAULT_LIMIT = 8 * 2**30
FIELDS: dict[Any, tuple[str, ...]] = {
    str: ("run_id", "method", "dataset", "preset", "protocol", "backbone"),
    int: ("seed", "image_size"),
    (str, type(None)): ("variant",),
    dict: ("identity", "predictions"),
}


@dataclass(frozen=True, kw_only=True)
class ArchivedRun:
    """A run that passed every check; ``files`` are its members' names, ``prefix`` is ``dataset/method/run_id``."""

    prefix: str
    record: Mapping[str, Any]
    files: Mapping[str, FileEntry]


def open_archive(path: Path) -> zipfile.ZipFile:
    """Open a zip; anything else is refused."""
    try:
        return zipfile.ZipFile(path)
    except FileNotFoundError:
        raise refuse(f"'{path}' does not exist") from None
    except DAMAGE as error:
        raise refuse(f"'{path}' is not a zip file ({error})") from None


def verify(archive: zipfile.ZipFile, limit: int = DEFAULT_LIMIT) -> list[ArchivedRun]:
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
    return [_verify_run(archive, prefix, files) for prefix, files in groups.items()]


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


def _verify_run(archive: zipfile.ZipFile, prefix: str, files: Mapping[str, FileEntry]) -> ArchivedRun:
    # One run at a time is held in memory; its predictions are needed to check its scores.
    contents = {name.removeprefix(f"{prefix}/"): read_member(archive, name, entry) for name, entry in files.items()}
    record = _parse(prefix, contents, "run.json")
    if record.get("schema") != SCHEMA:
        raise refuse(f"run '{prefix}' has schema {record.get('schema')}, this gcdbench reads {SCHEMA}")
    identity = record.get("identity")
    name = prefix.rpartition("/")[2]
    if not isinstance(identity, dict) or run_id(identity) != name or record.get("run_id") != name:
        raise refuse(f"run '{prefix}' is not named after its identity")
    _check_types(prefix, record)
    home = RunDirectory.at(Path(), str(record.get("dataset")), str(record.get("method")), name)
    if home.path.as_posix() != prefix:
        raise refuse(f"run '{prefix}' belongs to '{home.path.as_posix()}'")
    if record.get("status") != DONE:
        raise refuse(f"run '{prefix}' is not finished but {record.get('status')}")
    arrays = {
        path: load_arrays_safely(f"{prefix}/{path}", body) for path, body in contents.items() if path.endswith(".npz")
    }
    _check_scores(prefix, record, contents, arrays)
    return ArchivedRun(prefix=prefix, record=record, files=files)


def _parse(prefix: str, contents: Mapping[str, bytes], name: str) -> dict[str, Any]:
    if name not in contents:
        raise refuse(f"run '{prefix}' has no {name}")
    try:
        value = json.loads(contents[name], parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise refuse(f"'{prefix}/{name}' is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise refuse(f"'{prefix}/{name}' is not a table")
    return value


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is not a number")


def _check_types(prefix: str, record: Mapping[str, Any]) -> None:
    """What tables and reports rely on."""
    for kind, keys in FIELDS.items():
        for key in keys:
            if not isinstance(record.get(key), kind):
                raise refuse(f"'{key}' in the run.json of '{prefix}' is not what a run records")
    times = record.get("seconds", {})
    if not isinstance(times, dict) or not all(isinstance(value, (int, float)) for value in times.values()):
        raise refuse(f"'seconds' in the run.json of '{prefix}' is not what a run records")


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


def _check_scores(
    prefix: str, record: Mapping[str, Any], contents: Mapping[str, bytes], arrays: Mapping[str, Mapping[str, Any]]
) -> None:
    """Predictions must be those the run recorded, and the headline scores must follow from them."""
    sets = _parse(prefix, contents, "scores.json").get("sets")
    predictions = record.get("predictions")
    if not isinstance(sets, dict) or not isinstance(predictions, dict) or not predictions:
        raise refuse(f"run '{prefix}' has no scores or no predictions")
    for name, entry in predictions.items():
        file = str(entry.get("file")) if isinstance(entry, dict) else ""
        if file not in contents or hashlib.sha256(contents[file]).hexdigest() != entry.get("sha256"):
            raise refuse(f"run '{prefix}' lacks the predictions it recorded for '{name}'")
        try:
            found = arrays[file]
            scored = ScoredSet(
                ids=found["ids"], cluster=found["cluster"], y_true=found["y_true"], group=found["group"],
                is_old=found["is_old"], anchored=bool(found["anchored"]), k_hat=int(found["k_hat"]),
            )  # fmt: skip
            again = accuracy(scored.y_true, scored.cluster, scored.is_old)
            stored = sets[name]["scores"]
        except (KeyError, TypeError, ValueError) as error:
            raise refuse(f"run '{prefix}' has predictions that cannot be scored ({error})") from None
        if not isinstance(stored, dict) or not all(type(value) in (int, float) for value in stored.values()):
            raise refuse(f"the scores of run '{prefix}' are not numbers")
        if not all(abs(stored.get(key, -1.0) - value) <= 1e-6 for key, value in again.items()):
            raise refuse(f"the scores of run '{prefix}' do not follow from its predictions")

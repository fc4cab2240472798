"""Looking through an archive without writing anything: names, sizes, hashes, schema, and what arrays hold."""

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
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.predictions import ScoredSet
from gcdbench.runs.reader import (
    ENVIRONMENT,
    EVENTS,
    RECORD,
    SCORES,
    parse_environment,
    parse_events,
    parse_record,
    parse_scores,
)
from gcdbench.runs.record import DONE, Environment, Record, Scores

CHUNK = 2**20
DEFAULT_LIMIT = 8 * 2**30


@dataclass(frozen=True, kw_only=True)
class ArchivedRun:
    """A run that passed every check; ``files`` are its members' names, ``prefix`` is ``dataset/method/run_id``."""

    prefix: str
    record: Record
    environment: Environment
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
    try:
        record = parse_record(_member(prefix, contents, RECORD), Path(prefix))
        environment = parse_environment(_member(prefix, contents, ENVIRONMENT), f"{prefix}/{ENVIRONMENT}")
        scores = parse_scores(_member(prefix, contents, SCORES), f"{prefix}/{SCORES}")
        parse_events(contents.get(EVENTS, b""), f"{prefix}/{EVENTS}")
    except StoreError as error:
        raise refuse(error.message.rstrip(".")) from None
    name = prefix.rpartition("/")[2]
    if record.run_id != name:
        raise refuse(f"run '{prefix}' is not named after its identity")
    home = RunDirectory.at(Path(), record.dataset, record.method, name)
    if home.path.as_posix() != prefix:
        raise refuse(f"run '{prefix}' belongs to '{home.path.as_posix()}'")
    if record.status != DONE or record.folder:
        raise refuse(f"run '{prefix}' is not finished but {record.status}")
    arrays = {
        path: load_arrays_safely(f"{prefix}/{path}", body) for path, body in contents.items() if path.endswith(".npz")
    }
    _check_scores(prefix, record, scores, contents, arrays)
    return ArchivedRun(prefix=prefix, record=record, environment=environment, files=files)


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


def _check_scores(
    prefix: str,
    record: Record,
    scores: Scores,
    contents: Mapping[str, bytes],
    arrays: Mapping[str, Mapping[str, Any]],
) -> None:
    """Predictions must be those the run recorded, and the headline scores must follow from them."""
    if not record.predictions:
        raise refuse(f"run '{prefix}' has no predictions")
    for name, entry in record.predictions.items():
        if entry.file not in contents or hashlib.sha256(contents[entry.file]).hexdigest() != entry.sha256:
            raise refuse(f"run '{prefix}' lacks the predictions it recorded for '{name}'")
        try:
            found = arrays[entry.file]
            scored = ScoredSet(
                ids=found["ids"], cluster=found["cluster"], y_true=found["y_true"], group=found["group"],
                is_old=found["is_old"], anchored=bool(found["anchored"]), k_hat=int(found["k_hat"]),
            )  # fmt: skip
            if name not in scores.sets:
                if scored.has_truth:
                    raise refuse(f"run '{prefix}' has no scores for '{name}'")
                continue
            again = accuracy(scored.y_true, scored.cluster, scored.is_old)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise refuse(f"run '{prefix}' has predictions that cannot be scored ({error})") from None
        stored = scores.sets[name].scores
        if not all(abs(stored.get(key, -1.0) - value) <= 1e-6 for key, value in again.items()):
            raise refuse(f"the scores of run '{prefix}' do not follow from its predictions")

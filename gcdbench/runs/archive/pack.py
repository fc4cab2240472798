"""Packing runs into an archive: the same bytes for the same runs."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gcdbench.core.errors import StoreError
from gcdbench.runs.archive.layout import FOLDERS, FORMAT, MANIFEST, WEIGHTS, check_name
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.reader import CONFIG, parse_config

ALWAYS = ("run.json", "config.toml", "env.json", "events.jsonl", "scores.json", "model.json", "cost.json")
EMBEDDINGS = "embeddings"
FIXED_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, kw_only=True)
class Packed:
    """What went into an archive."""

    path: Path
    runs: int
    files: int
    size: int


def files_of_run(run: Path, *, weights: bool, embeddings: bool) -> list[Path]:
    """The files of one run that are packed, in order; never its lock, heartbeat or checkpoint."""
    names = [*ALWAYS, *(WEIGHTS if weights else ())]
    chosen = [run / name for name in names if (run / name).is_file()]
    if names_files(run):
        chosen.remove(run / CONFIG)
    for folder, suffixes in FOLDERS.items():
        if (run / folder).is_dir() and (embeddings or folder != EMBEDDINGS):
            chosen += sorted(path for path in (run / folder).iterdir() if path.is_file() and path.suffix in suffixes)
    return [path for path in chosen if not path.is_symlink()]


def pack_runs(
    runs: Path, chosen: Iterable[Path], target: Path, *, weights: bool = False, embeddings: bool = False
) -> Packed:
    """Write ``target`` with the run directories ``chosen`` below ``runs``; predictions must match their hashes."""
    files: dict[str, Path] = {}
    count = 0
    for run in sorted(chosen):
        check_predictions(run)
        check_privacy(run)
        prefix = run.relative_to(runs).as_posix()
        files |= {
            check_name(f"{prefix}/{path.relative_to(run).as_posix()}"): path
            for path in files_of_run(run, weights=weights, embeddings=embeddings)
        }
        count += 1
    manifest = {
        "format": FORMAT,
        "runs": count,
        "files": {name: {"size": path.stat().st_size, "sha256": _hash(path)} for name, path in files.items()},
    }
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # A name of its own: somebody else may be packing into the same file, and the last one to end wins whole.
        handle, part_name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    except OSError as error:
        raise StoreError(f"Cannot write '{target}': {error.strerror or error}.") from error
    part = Path(part_name)
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            _add(archive, MANIFEST, json.dumps(manifest, indent=1, sort_keys=True).encode())
            for name, path in files.items():
                _add(archive, name, path.read_bytes())
        part.chmod(0o644)
        size = part.stat().st_size
        os.replace(part, target)
    except OSError as error:
        raise StoreError(f"Cannot write '{target}': {error.strerror or error}.") from error
    finally:
        part.unlink(missing_ok=True)
    return Packed(path=target, runs=count, files=len(files), size=size)


def names_files(run: Path) -> bool:
    """Whether a run's config.toml holds a path: of its images, its split or its weights. Such a file stays here.

    What names the run is in run.json, so nothing is lost but where the files were.
    """
    path = run / CONFIG
    if not path.is_file():
        return False
    try:
        table = parse_config(path.read_bytes(), str(path))
    except StoreError:  # damaged: nobody knows what it holds
        return True
    settings = table.get("settings")
    weights = settings.get("weights") if isinstance(settings, dict) else None
    return ":" in str(table.get("dataset", "")) or bool(table.get("split")) or bool(weights)


def check_privacy(run: Path) -> None:
    """Refuse a run on somebody's own files whose accepted data issues are sentences that name these files."""
    record = RunDirectory(run).record()
    if record.accepted_data_issues and names_files(run):
        raise StoreError(
            f"The run '{record.run_id}' recorded problems of its images by their file names, so it cannot be packed.",
            hint="Correct the images instead of accepting the problems, and make the run again.",
        )


def check_predictions(run: Path) -> None:
    """Refuse a run whose predictions are not those it recorded."""
    for entry in RunDirectory(run).record().predictions.values():
        file = run / entry.file
        if not file.is_file() or _hash(file) != entry.sha256:
            raise StoreError(
                f"'{file}' is missing or does not match its hash, so the run cannot be packed.",
                hint="'gcdbench verify' lists damaged runs.",
            )


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(name, date_time=FIXED_DATE)
    info.external_attr = 0o100644 << 16
    archive.writestr(info, content, compress_type=zipfile.ZIP_DEFLATED)


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

"""Submitted archives: each is verified and scored again as a whole, or refused as a whole."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gcdbench.core.errors import ConfigError
from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.archive.layout import ArchiveError
from gcdbench.runs.archive.verify import DEFAULT_LIMIT, ArchivedRun, open_archive, verify
from gcdbench.runs.record import TRANSDUCTIVE, Environment, Record, SetScores


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """A run of an archive that passed every check. scores: as they were computed here. archive: its sha256."""

    record: Record
    environment: Environment
    scores: SetScores
    metrics: dict[str, str]
    archive: str


@dataclass(frozen=True, kw_only=True)
class Refused:
    """An archive that is not shown. path: where it was, for the terminal only; sha256: its name on the pages."""

    path: Path
    sha256: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Collected:
    """What the archives hold. archives: how many were accepted; notes: what was left out of those, and why."""

    runs: tuple[Submitted, ...]
    refused: tuple[Refused, ...]
    archives: int
    notes: tuple[str, ...]


def find_archives(sources: Sequence[Path]) -> list[Path]:
    """The archives meant by files and folders; a folder stands for the ``.zip`` files in it, at any depth."""
    found: dict[Path, None] = {}
    for source in sources:
        if source.is_dir():
            inside = sorted(path for path in source.rglob("*.zip") if path.is_file())
            if not inside:
                raise ConfigError(
                    f"There is no archive in '{source}'.", hint="'gcdbench export runs.zip' packs a store of runs."
                )
            found.update(dict.fromkeys(inside))
        elif source.is_file():
            found[source] = None
        else:
            raise ConfigError(f"There is no archive '{source}'.")
    return list(found)


def collect(archives: Iterable[Path], manager: PluginManager, limit: int = DEFAULT_LIMIT) -> Collected:
    """Verify every archive and score its runs again with the metrics of ``manager``.

    An archive in which anything is wrong is refused with all its runs. A run that two archives hold is taken from the
    first one.
    """
    kept: dict[str, Submitted] = {}
    refused: list[Refused] = []
    notes: list[str] = []
    accepted = 0
    for path in archives:
        digest = _digest(path)
        try:
            with open_archive(path) as archive:
                verified = verify(archive, manager, limit)
        except ArchiveError as error:
            refused.append(Refused(path=path, sha256=digest, reason=error.message))
            continue
        accepted += 1
        for run in verified:
            _take(run, digest, kept, notes)
    return Collected(runs=tuple(kept.values()), refused=tuple(refused), archives=accepted, notes=tuple(notes))


def _take(run: ArchivedRun, digest: str, kept: dict[str, Submitted], notes: list[str]) -> None:
    scored, run_id = run.scored.scores, run.record.run_id
    if TRANSDUCTIVE not in scored.sets:
        notes.append(f"Run {run_id} has no scores, because nobody knows the classes of its images.")
        return
    new = Submitted(
        record=run.record,
        environment=run.environment,
        scores=scored.sets[TRANSDUCTIVE],
        metrics=dict(scored.metrics),
        archive=digest,
    )
    first = kept.setdefault(run_id, new)
    if first is new or _predictions(first) == _predictions(new):
        return
    differences = "; ".join(first.environment.numeric_differences(new.environment))
    why = f"made with other numerics ({differences})" if differences else "for no reason that was recorded"
    notes.append(f"Run {run_id} is in two archives with different predictions, {why}; the first is shown.")


def _predictions(run: Submitted) -> dict[str, str]:
    return {name: entry.sha256 for name, entry in run.record.predictions.items()}


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ConfigError(f"Cannot read '{path}': {error.strerror or error}.") from error

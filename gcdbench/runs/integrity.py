"""Is a stored run still what it was? Every recorded hash is compared, and what has none is at least opened."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gcdbench.core.errors import GCDBenchError, StoreError
from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.attempt import EMBEDDINGS
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.evaluate import score_run
from gcdbench.runs.predictions import load_arrays, load_predictions
from gcdbench.runs.reader import CONFIG, EVENTS, IMPORTED, SCORES, read_scores
from gcdbench.runs.record import DONE, Record, Scores
from gcdbench.runs.strict_json import open_regular

LEFT_OUT = (".safetensors", "model.json", "config.toml", "names.toml")
"""Endings of files that an archive or a repository may leave out; so may embeddings."""


@dataclass(frozen=True, kw_only=True)
class Damage:
    """One file of a run that is not what was recorded; ``restorable`` where ``gcdbench rescore`` mends it."""

    file: str
    problem: str
    restorable: bool = False


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What was found of one run. files: how many were compared with a hash; absent: files that were left out."""

    path: Path
    finished: bool
    files: int = 0
    absent: tuple[str, ...] = ()
    damages: tuple[Damage, ...] = ()


def check_run(directory: RunDirectory, manager: PluginManager) -> Checked:
    """Compare a run with its hashes; of an unfinished one nothing is promised but a record that can be read."""
    try:
        record = directory.record()
    except StoreError as error:
        return Checked(path=directory.path, finished=True, damages=(Damage(file="run.json", problem=error.message),))
    if record.status != DONE:
        return Checked(path=directory.path, finished=False)
    absent = tuple(name for name in record.files if may_be_absent(name) and not (record.home / name).exists())
    if not (record.path / IMPORTED).exists():  # only an archive leaves the settings out, where they name files
        absent = tuple(name for name in absent if name != CONFIG)
    damages = [*_check_predictions(record), *_check_files(record, absent), *_check_others(record)]
    if not damages or all(damage.file == EVENTS for damage in damages):
        damages += _check_scores(record, manager)
    else:
        damages += _check_scores(record, None)
    return Checked(
        path=directory.path,
        finished=True,
        files=len({*record.files, *(entry.file for entry in record.predictions.values())}) - len(absent),
        absent=absent,
        damages=tuple(damages),
    )


def may_be_absent(name: str) -> bool:
    """Whether a run is whole without this file, although it had it when it ended."""
    return name.endswith(LEFT_OUT) or name.startswith(f"{EMBEDDINGS}/")


def _check_predictions(record: Record) -> Iterator[Damage]:
    for name, entry in record.predictions.items():
        try:
            load_predictions(record, name)
        except StoreError as error:
            yield Damage(file=entry.file, problem=error.message)


def _check_files(record: Record, absent: tuple[str, ...]) -> Iterator[Damage]:
    predictions = {entry.file for entry in record.predictions.values()}
    for name, entry in record.files.items():
        if name in predictions or name in absent:
            continue
        try:
            with open_regular(record.home / name) as file:
                if name == EVENTS:  # to which lines may have been added since
                    found = hashlib.sha256(file.read(entry.size)).hexdigest()
                else:
                    found = hashlib.file_digest(file, "sha256").hexdigest()
        except StoreError as error:
            yield Damage(file=name, problem=error.message)
            continue
        if found != entry.sha256:
            yield Damage(file=name, problem=f"'{record.home / name}' is not what the run recorded.")


def _check_others(record: Record) -> Iterator[Damage]:
    """What has no hash, or holds more than its hash tells: it must at least be readable."""
    for name, read in (("env.json", lambda: record.environment), (EVENTS, lambda: record.events)):
        try:
            read()
        except StoreError as error:
            if name not in record.files:
                yield Damage(file=name, problem=error.message)
    if record.files:
        return
    for path in sorted((record.home / EMBEDDINGS).glob("*.npz")):
        try:
            load_arrays(path, None)
        except StoreError as error:
            yield Damage(file=f"{EMBEDDINGS}/{path.name}", problem=error.message)
    for path in sorted(record.home.glob("*.safetensors")):
        if problem := _tensor_problem(path):
            yield Damage(file=path.name, problem=f"'{path}' cannot be read: {problem}.")


def _tensor_problem(path: Path) -> str:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np"):  # checks the header, and that the file has the size it promises
            return ""
    except (SafetensorError, OSError) as error:
        return str(error)


def _check_scores(record: Record, manager: PluginManager | None) -> Iterator[Damage]:
    """Scores must be readable; those of 0.1, which have no seal, must also follow from the predictions."""
    try:
        stored = read_scores(record.home)
    except StoreError as error:
        yield Damage(file=SCORES, problem=error.message, restorable=True)
        return
    if record.schema > 1 or manager is None:
        return
    try:
        fresh = score_run(record, manager)
    except GCDBenchError as error:
        yield Damage(file=SCORES, problem=error.message)
        return
    if different := _differing(stored, fresh):
        problem = f"'{record.home / SCORES}': {', '.join(different[:5])} do(es) not follow from the predictions."
        yield Damage(file=SCORES, problem=problem, restorable=True)


def _differing(stored: Scores, fresh: Scores) -> list[str]:
    """Scores that two sides have and do not agree on; a metric that has another version now may give another value."""
    same = {name for name, version in stored.metrics.items() if fresh.metrics.get(name) == version}
    if same != set(stored.metrics) & set(fresh.metrics):
        return []
    return [
        f"{name}.{key}"
        for name, found in stored.sets.items()
        for key, value in found.scores.items()
        if name in fresh.sets and key in fresh.sets[name].scores and fresh.sets[name].scores[key] != value
    ]

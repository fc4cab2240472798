"""The one reader of what a run has written: every file becomes a type, or a :class:`StoreError` that names it.

Version 1 (gcdbench 0.1) had no seals: what it wrote is checked for its types alone. From version 2 on run.json and
scores.json carry a digest of their content, and run.json the digests of all other files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from gcdbench.core.errors import StoreError
from gcdbench.core.identity import run_id
from gcdbench.core.toml_files import parse_toml
from gcdbench.runs.events import Event, make_event
from gcdbench.runs.numerics import Numerics
from gcdbench.runs.record import (
    DONE,
    READABLE,
    RECORDED,
    Environment,
    Record,
    Scores,
    SetScores,
    SplitHeader,
    StoredFile,
)
from gcdbench.runs.strict_json import SEAL, Fields, NotJSON, parse_table, read_bytes, unsealed

RECORD, SCORES, ENVIRONMENT, EVENTS, CONFIG = "run.json", "scores.json", "env.json", "events.jsonl", "config.toml"
COST, IMPORTED, NAMES = "cost.json", "imported.json", "names.toml"
PARTS = (RECORD, SCORES, CONFIG, ENVIRONMENT, EVENTS)
"""The files that tell what a run is and what came out; the others hold arrays."""
MOST_RECORD_BYTES = 64 * 2**20
"""Largest run.json or env.json that is read; a run may have accepted many thousand data issues."""
MOST_EVENT_BYTES = 2**20
"""Longest line of events.jsonl that is read."""


def read_record(path: Path) -> Record:
    """The record of the run in the directory ``path``; its scores, environment and events are read when asked for."""
    return parse_record(read_bytes(path / RECORD, MOST_RECORD_BYTES), path)


def parse_record(content: bytes, path: Path) -> Record:
    """The content of a run.json as a record of the run in ``path``."""
    top = _opened(content, str(path / RECORD))
    identity = top.inner("identity")
    _check_identity(identity)
    split = top.inner("split")
    status = top.text("status")
    if status not in RECORDED:
        raise top.refuse("'status' is not one that a run can have")
    record = Record(
        path=path,
        run_id=top.text("run_id"),
        identity=identity.table,
        method=top.text("method"),
        variant=top.optional_text("variant"),
        dataset=top.text("dataset"),
        dataset_options=top.text_table("dataset_options", {}),
        preset=top.text("preset"),
        protocol=top.text("protocol"),
        seed=top.whole("seed"),
        backbone=top.text("backbone"),
        image_size=top.whole("image_size", least=0),
        views=top.text("views"),
        world_size=top.whole("world_size", 1, least=1),
        split=parse_split(split),
        reconstruction=top.flag("reconstruction", False),
        accepted_data_issues=top.texts("accepted_data_issues", []),
        status=status,
        started=top.text("started", ""),
        finished=top.text("finished", ""),
        host=top.text("host", ""),
        pid=top.whole("pid", 0),
        predictions={name: _stored(entry, None) for name, entry in top.inner_tables("predictions", {}).items()},
        files={name: _stored(entry, name) for name, entry in top.inner_tables("files", {}).items()},
        seconds=top.number_table("seconds", {}),
        resumed=top.flag("resumed", False),
        error=top.text("error", ""),
        traceback=top.text("traceback", ""),
        folder=_inside(top, top.text("folder", ""), empty=True),
        schema=top.whole("schema"),
    )
    if run_id(dict(record.identity)) != record.run_id:
        raise top.refuse("'run_id' does not follow from 'identity'")
    if record.identity["seed"] != record.seed:
        raise top.refuse("'seed' is not that of 'identity'")
    return record


def _opened(content: bytes, where: str) -> Fields:
    """A versioned table: its schema must be known and, from version 2 on, its seal right."""
    table = parse_table(content, where)
    schema = table.get("schema")
    if type(schema) is not int or schema not in READABLE:
        found = schema if type(schema) is int else "none"
        raise StoreError(
            f"'{where}' has schema {found}, this gcdbench reads {' and '.join(map(str, READABLE))}.",
            hint="Use the version of gcdbench that wrote it.",
        )
    return Fields(unsealed(table, where) if schema > 1 else table, where)


def _check_identity(identity: Fields) -> None:
    """What tables and reports rely on; the rest of an identity is the method's own."""
    for key in ("method", "method_version", "dataset", "manifest_sha256", "images"):
        identity.text(key)
    identity.text("weights_sha256", "")
    identity.whole("seed")
    identity.inner("config")
    identity.inner("protocol").text("k_policy")
    training = identity.inner("training", {})
    training.whole("batch_size", 1, least=1)
    training.whole("epochs", 0, least=0)
    identity.texts("accepted_data_issues", [])


def parse_split(header: Fields) -> SplitHeader:
    """What a record keeps of its split."""
    share = "old_share_of_unlabelled"
    return SplitHeader(
        old_classes=header.texts("old_classes", []),
        new_classes=header.texts("new_classes", []),
        counts=header.whole_table("counts", {}),
        old_share=None if header.table.get(share) is None else header.number(share),
        content=header.table,
    )


def _inside(fields: Fields, name: str, *, empty: bool = False) -> str:
    """A name that stays within the run's directory."""
    parts = PurePosixPath(name).parts
    if (not name and not empty) or name.startswith("/") or ".." in parts or "\\" in name or "\0" in name:
        raise fields.refuse(f"{name[:80]!r} is not a file of a run")
    return name


def _stored(entry: Fields, name: str | None) -> StoredFile:
    sha256 = entry.text("sha256")
    if len(sha256) != 64 or not set(sha256) <= set("0123456789abcdef"):
        raise entry.refuse("'sha256' is none")
    file = _inside(entry, entry.text("file") if name is None else name)
    return StoredFile(file=file, sha256=sha256, size=entry.whole("size", -1))


def read_scores(home: Path) -> Scores:
    """The content of the scores.json in ``home``."""
    return parse_scores(read_bytes(home / SCORES), str(home / SCORES))


def parse_scores(content: bytes, where: str) -> Scores:
    """The content of a scores.json."""
    top = _opened(content, where)
    return Scores(
        sets={name: _set_scores(entry) for name, entry in top.inner_tables("sets").items()},
        metrics=top.text_table("metrics", {}),
        metric_errors=top.text_table("metric_errors", {}),
    )


def _set_scores(entry: Fields) -> SetScores:
    found = SetScores(
        n=entry.whole("n", least=0),
        old_share=entry.number("old_share"),
        k_old=entry.whole("k_old", least=0),
        scores=entry.number_table("scores"),
        confusion=entry.whole_rows("confusion", []),
    )
    if found.confusion and len(found.confusion[0]) != len(found.confusion) + 1:
        raise entry.refuse("'confusion' must have one column more than rows")
    return found


Contents = Mapping[str, "bytes | StoreError"]
"""Files of a run by name, or why they could not be read."""


def read_contents(place: str) -> Contents:
    """The files that a record is made of, each read once."""
    found: dict[str, bytes | StoreError] = {}
    for name in PARTS:
        try:
            found[name] = read_bytes(f"{place}/{name}")
        except StoreError as error:
            found[name] = error
    return found


def parse_contents(contents: Contents, path: Path) -> Record:
    """The record in files that were read already, and where it is done, its scores, environment and events checked."""

    def content(name: str) -> bytes:
        found = contents[name]
        if isinstance(found, StoreError):
            raise found
        return found

    record = parse_record(content(RECORD), path)
    if record.status != DONE:
        return record
    if record.folder:
        record.require_readable()
        return record
    environment = checked(record, ENVIRONMENT, content(ENVIRONMENT))
    vars(record).update(  # where cached properties are kept
        scores=parse_scores(content(SCORES), str(path / SCORES)),
        environment=parse_environment(environment, str(path / ENVIRONMENT)),
    )
    if EVENTS in record.files:
        checked(record, EVENTS, content(EVENTS))  # as it was when the run ended; no need to take it apart
    elif isinstance(contents[EVENTS], bytes) or (path / EVENTS).exists():
        parse_events(content(EVENTS), str(path / EVENTS))
    return record


def read_environment(record: Record) -> Environment:
    """What a run ran on."""
    return parse_environment(read_checked(record, ENVIRONMENT), str(record.home / ENVIRONMENT))


def parse_environment(content: bytes, where: str) -> Environment:
    """The content of an env.json."""
    table = parse_table(content, where)
    top = _opened(content, where) if "schema" in table else Fields(table, where)  # 0.1 wrote none
    packages = top.inner("packages")
    git = top.inner("git") if top.table.get("git") is not None else Fields({}, where)
    return Environment(
        python=top.text("python"),
        packages={name: packages.optional_text(name) for name in packages.table},
        platform=top.text("platform", ""),
        plugins=top.text_table("plugins", {}),
        commit=git.text("commit", ""),
        dirty=git.flag("dirty", False),
        cpu=top.text("cpu", ""),
        cores=top.whole("cores", 0),
        device=top.text("device", ""),
        gpu=top.optional_text("gpu") or "",
        threads=top.whole("threads", 0),
        kernels=top.text("kernels", ""),
        deterministic_algorithms=top.flag("deterministic_algorithms", False),
        numerics=_numerics(top),
    )


def _numerics(top: Fields) -> Numerics | None:
    if top.table.get("numerics") is None:
        return None
    found = top.inner("numerics")
    return Numerics(
        processor=found.text("processor", ""),
        features=found.texts("features", []),
        capability=found.text("capability", ""),
        libraries=found.text("libraries", ""),
        products=found.text("products", ""),
        kernels=found.text("kernels", ""),
        torch=found.text("torch", ""),
        threads=found.whole("threads", 0),
        device=found.text("device", ""),
    )


def read_events(record: Record) -> tuple[Event, ...]:
    """What a run told; a line that was being written when its process was killed is left out."""
    where = record.home / EVENTS
    if not where.exists() and EVENTS not in record.files:
        return ()
    return parse_events(read_checked(record, EVENTS), str(where))


def parse_events(content: bytes, where: str) -> tuple[Event, ...]:
    """The whole lines of an events.jsonl."""
    found: list[Event] = []
    lines = content.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if len(line) > MOST_EVENT_BYTES:
            raise StoreError(f"'{where}' cannot be read: line {number} has {len(line):,} bytes.")
        if not line.strip():
            continue
        try:
            table = parse_table(line, f"{where}, line {number}")
        except NotJSON:  # torn, by a kill
            continue
        except StoreError:
            if number == len(lines):  # torn as well: in the middle of a letter
                continue
            raise
        if not isinstance(table.get("type"), str):
            raise StoreError(f"'{where}' cannot be read: line {number} is not an event.")
        found.append(make_event(table))
    return tuple(found)


def read_config(record: Record) -> Mapping[str, Any]:
    """The settings of a run as it was written down, from config.toml."""
    return parse_config(read_checked(record, CONFIG), str(record.home / CONFIG))


def parse_config(content: bytes, where: str) -> Mapping[str, Any]:
    """The content of a config.toml."""
    try:
        return parse_toml(content)
    except ValueError as error:
        raise StoreError(f"'{where}' cannot be read: {error}.") from None


def read_cost(home: Path) -> dict[str, float]:
    """What the model of a run was measured to cost, by name; empty where it was not measured."""
    if not (home / COST).exists():
        return {}
    where = str(home / COST)
    table = parse_table(read_bytes(home / COST, MOST_RECORD_BYTES), where)
    content = unsealed(table, where) if SEAL in table else table  # 0.1 wrote no seal
    return {key: float(value) for key, value in content.items() if type(value) in (int, float)}


def read_origin(home: Path) -> str:
    """Digest of the archive that a run came from; empty where it was made here."""
    if not (home / IMPORTED).exists():
        return ""
    where = str(home / IMPORTED)
    return Fields(parse_table(read_bytes(home / IMPORTED, MOST_RECORD_BYTES), where), where).text("archive_sha256")


def read_checked(record: Record, name: str) -> bytes:
    """A file of a run, which must be what it was when the run ended, where that was recorded.

    Only events.jsonl may have become longer since.
    """
    return checked(record, name, read_bytes(record.home / name))


def checked(record: Record, name: str, content: bytes) -> bytes:
    """The content of a file, if it is what the run recorded."""
    expected = record.files.get(name)
    if expected is None:
        return content
    known = content[: expected.size] if name == EVENTS and expected.size >= 0 else content
    if hashlib.sha256(known).hexdigest() != expected.sha256:
        raise StoreError(
            f"'{record.home / name}' is damaged: it is not what the run recorded.",
            hint="'gcdbench verify' lists what is damaged; 'gcdbench run --force' makes the run again.",
        )
    return content

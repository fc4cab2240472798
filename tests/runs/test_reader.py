"""Readers of what a run has written: any bytes at all give a record or a StoreError."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gcdbench.cli.present import score_lines
from gcdbench.core.errors import StoreError
from gcdbench.core.identity import digest
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.reader import (
    parse_environment,
    parse_events,
    parse_record,
    parse_scores,
    read_cost,
    read_origin,
    read_record,
)
from gcdbench.runs.record import Record, Scores
from gcdbench.runs.run_entry import make_entry
from gcdbench.runs.strict_json import MOST_DEPTH, SEAL, parse_table, read_bytes, write_sealed

AddRun = Callable[..., RunDirectory]
LONG = "9" * 5000
ODD_TEXTS = st.text() | st.sampled_from(["../../x", "/etc/passwd", "a\0b", "\ud800", "=1+1", "\x1b[2J", "done", "none"])
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=10**300, max_value=10**310)
    | st.floats()
    | ODD_TEXTS
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD_TEXTS, inner, max_size=3), max_leaves=8
) | st.integers(1, 2000).map(lambda depth: json.loads("[" * depth + "]" * depth) if depth < 900 else depth)


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory, manager: Any) -> dict[str, dict[str, Any]]:
    """The tables of one sound run, by file."""
    from gcdbench.runs.request import Request
    from gcdbench.testing.stored import FakeRun, write_fake_run

    request = Request(method="simgcd", dataset="phantom", preset="smoke")
    numerics = {"processor": "x", "features": ["avx"], "threads": 2}
    path = write_fake_run(tmp_path_factory.mktemp("valid"), FakeRun(request=request, samples=48), manager).path
    tables = {name: json.loads((path / name).read_text()) for name in ("run.json", "scores.json", "env.json")}
    tables["env.json"]["numerics"] = numerics
    tables["events.jsonl"] = json.loads((path / "events.jsonl").read_text().splitlines()[0])
    return tables


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a table, as the keys that lead to it."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


def changed(table: Any, place: tuple[Any, ...], new: Any, *, delete: bool) -> Any:
    if not place:
        return new
    copy = json.loads(json.dumps(table))
    target = copy
    for key in place[:-1]:
        target = target[key]
    if delete:
        del target[place[-1]]
    else:
        target[place[-1]] = new
    return copy


def sealed(table: Any) -> Any:
    """Seal a table again where that is possible, as somebody would who means it."""
    if not isinstance(table, dict):
        return table
    content = {key: value for key, value in table.items() if key != SEAL}
    try:
        return {**content, SEAL: digest(content)}
    except (ValueError, UnicodeEncodeError):
        return table


@st.composite
def mutations(draw: st.DrawFn, table: dict[str, Any]) -> bytes:
    """A table with one or two places changed or lost, sealed again or not, and sometimes a few bytes on top."""
    for _ in range(draw(st.integers(1, 2))):
        place = draw(st.sampled_from(places(table)))
        table = changed(table, place, draw(LEAVES | VALUES), delete=draw(st.integers(0, 4)) == 0)
        if not isinstance(table, dict):
            break
    content = json.dumps(sealed(table) if draw(st.integers(0, 4)) else table).encode(errors="surrogatepass")
    if draw(st.integers(0, 4)) == 0:
        at = draw(st.integers(0, len(content)))
        content = content[:at] + draw(st.binary(max_size=4)) + content[at + draw(st.integers(0, 8)) :]
    return content


def use_record(record: Record) -> None:
    """What lists and tables do with a record."""
    entry = make_entry(Record(**{**record.__dict__, "status": "failed"}))
    digest(record.to_table())
    json.dumps([entry.k_policy, entry.split_sha256, entry.weights_sha256, dict(entry.scores), entry.samples])
    f"{record.title} {record.spent} {record.split.classes} {record.config} {record.training}".encode()


def use_scores(record: Record, scores: Scores) -> None:
    "\n".join(score_lines(record, scores)).encode()
    digest(scores.to_table())


READERS: dict[str, Callable[[bytes], Any]] = {
    "run.json": lambda content: parse_record(content, Path("run")),
    "scores.json": lambda content: parse_scores(content, "scores.json"),
    "env.json": lambda content: parse_environment(content, "env.json"),
    "events.jsonl": lambda content: parse_events(content + b"\n", "events.jsonl"),
}


@pytest.mark.parametrize("name", READERS)
def test_a_sound_file_is_read(valid: dict[str, dict[str, Any]], name: str) -> None:
    found = READERS[name](json.dumps(sealed(valid[name]) if name == "env.json" else valid[name]).encode())
    assert found


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_change_of_a_file_gives_a_record_or_a_store_error(
    valid: dict[str, dict[str, Any]], name: str, data: st.DataObject
) -> None:
    content = data.draw(mutations(valid[name]))
    try:
        found = READERS[name](content)
        if name == "run.json":
            use_record(found)
        elif name == "scores.json":
            use_scores(READERS["run.json"](json.dumps(valid["run.json"]).encode()), found)
        elif name == "env.json":
            f"{found.numerics} {found.numeric_differences(found)}".encode()
            digest(found.to_table())
        else:
            json.dumps([event.to_table() for event in found])
    except StoreError as error:
        error.message.encode()


@settings(max_examples=200, deadline=None)
@given(content=st.binary(max_size=200))
def test_any_bytes_give_a_table_or_a_store_error(content: bytes) -> None:
    for read in READERS.values():
        try:
            read(content)
        except StoreError:
            continue


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"[" * 100_000, "cannot be read"),
        (b'{"a":' * (MOST_DEPTH + 2) + b"1" + b"}" * (MOST_DEPTH + 2), "nested more than"),
        (b'{"a": ' + LONG.encode() + b"}", "digits"),
        (b'{"a": 1e999}', "not a finite number"),
        (b'{"a": NaN}', "NaN is not a number"),
        (b'{"a": -Infinity}', "Infinity is not a number"),
        (b'{"a": "\\ud800"}', "not UTF-8"),
        (b'{"a": "\xff"}', "not UTF-8"),
        ("{}".encode("utf-16"), "not UTF-8"),
        (b"[]", "not a table but a list"),
        (b"", "cannot be read"),
    ],
)
def test_what_is_no_plain_table_is_refused_with_its_reason(content: bytes, reason: str) -> None:
    with pytest.raises(StoreError, match=reason):
        parse_table(content, "file")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda r: r.pop("method"), "'method' is missing"),
        (lambda r: r.update(seed=True), "'seed' must be a whole number, not true or false"),
        (lambda r: r.update(seed=1), "'seed' is not that of 'identity'"),
        (lambda r: r.update(status="finished"), "'status' is not one"),
        (lambda r: r.update(run_id="0" * 16), "does not follow from 'identity'"),
        (lambda r: r["identity"].update(config=[]), "'config' must be a table, not a list"),
        (lambda r: r["identity"]["training"].update(batch_size=0), "'batch_size' must be at least 1"),
        (lambda r: r["predictions"]["transductive"].update(file="../../x.npz"), "not a file of a run"),
        (lambda r: r["predictions"]["transductive"].update(sha256="zz"), "'sha256' is none"),
        (lambda r: r.update(schema=3), "has schema 3, this gcdbench reads 1 and 2"),
        (lambda r: r.update(schema=True), "has schema none"),
    ],
)
def test_a_record_must_hold_together(
    valid: dict[str, dict[str, Any]], change: Callable[[Any], None], reason: str
) -> None:
    table = json.loads(json.dumps(valid["run.json"]))
    change(table)
    with pytest.raises(StoreError, match=reason):
        READERS["run.json"](json.dumps(sealed(table)).encode())


@pytest.mark.parametrize("name", ["run.json", "scores.json", "env.json"])
def test_a_changed_digit_breaks_the_seal(valid: dict[str, dict[str, Any]], name: str) -> None:
    table = sealed(json.loads(json.dumps(valid[name])))
    other: dict[str, dict[str, Any]] = {
        "run.json": {"seconds": {"fit": 1.0}},
        "scores.json": {"metrics": {"a": "b"}},
        "env.json": {"cores": 7},
    }
    with pytest.raises(StoreError, match="does not match the sha256"):
        READERS[name](json.dumps({**table, **other[name]}).encode())


def test_a_pipe_or_a_device_or_a_huge_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(2**40)
    for name, reason in (("pipe", "not a file"), ("device", "not a file"), ("huge", "too large")):
        with pytest.raises(StoreError, match=reason):
            read_bytes(tmp_path / name)
    with pytest.raises(StoreError, match=r"[Ii]s a directory|it is a folder"):
        read_bytes(tmp_path)


def test_files_beside_the_record_are_compared_with_their_hashes(tmp_path: Path, add_run: AddRun) -> None:
    directory = add_run(tmp_path)
    assert len(directory.record().events) == 3
    events = directory.path / "events.jsonl"
    with events.open("a") as file:
        file.write('{"type":"note","message":"later"}\n')
    assert len(directory.record().events) == 4  # what is added after the end is not damage
    events.write_bytes(events.read_bytes().replace(b"1.0", b"9.0", 1))
    with pytest.raises(StoreError, match=r"events\.jsonl' is damaged"):
        _ = directory.record().events
    environment = directory.path / "env.json"
    environment.unlink()
    write_sealed(environment, {"schema": 2, "python": "4", "packages": {}})
    with pytest.raises(StoreError, match=r"env\.json' is damaged"):
        _ = directory.record().environment


def test_costs_and_origins_are_read_with_the_same_care(tmp_path: Path) -> None:
    assert read_cost(tmp_path) == {}
    assert read_origin(tmp_path) == ""
    write_sealed(tmp_path / "cost.json", {"flops": 3, "device": "cpu", "note": None})
    assert read_cost(tmp_path) == {"flops": 3.0}
    (tmp_path / "cost.json").write_text((tmp_path / "cost.json").read_text().replace("3", "4"))
    with pytest.raises(StoreError, match="damaged"):
        read_cost(tmp_path)
    (tmp_path / "imported.json").write_text('{"archive_sha256": []}')
    with pytest.raises(StoreError, match="must be a string"):
        read_origin(tmp_path)


def test_a_run_without_a_record_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="does not exist"):
        read_record(tmp_path)

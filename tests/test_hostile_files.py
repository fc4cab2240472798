"""Files that people write or send to each other: whatever is in them, they are used or refused in one sentence."""

from __future__ import annotations

import copy
import datetime
import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gcdbench.core.errors import GCDBenchError
from gcdbench.datasets.card import load_card
from gcdbench.datasets.catalogue import open_dataset
from gcdbench.datasets.imported import imported_file, imported_protocols
from gcdbench.plugins.manager import PluginManager
from gcdbench.reporting.suites.planning import plan_suite
from gcdbench.reporting.suites.read import load_suite
from gcdbench.runs.archive.layout import FORMAT, MANIFEST, read_manifest
from gcdbench.runs.naming import parse_decisions
from gcdbench.runs.plan import make_plan
from gcdbench.runs.request_file import merge_request
from gcdbench.splits.manifest import make_split
from gcdbench.splits.protocol import Protocol
from gcdbench.splits.split_file import read_split

Table = dict[str, Any]
MANAGER = PluginManager(points=[])
CARD: Table = {
    "name": "x", "title": "X", "modality": "m", "licence": "l", "citation": "c", "source": "s", "layout": "y",
    "classes": [{"name": "a", "count": 3, "test_count": 1}, {"name": "b", "count": 4, "test_count": 0}],
    "samples": {"train": 7}, "downloads": {"a.zip": "there"}, "checksums": {"a.zip": "md5:" + 32 * "0"},
    "editions": [{"name": "e", "place": "p", "count": 1, "note": "n"}], "image_size": 32, "notes": ["n"],
    "protocols": {"theirs": {"old_classes": [0], "label_fraction": 0.5, "citation": "who"}},
    "default_protocol": "theirs",
}  # fmt: skip
SOUND: dict[str, Table] = {
    "suite": {
        "title": "Small",
        "kind": "comparison",
        "protocol": "half",
        "k": "known",
        "replicate": "seed",
        "scores": ["all", "old"],
        "notes": ["a note"],
        "presets": {"smoke": {"seeds": [0, 1], "stand_in": "missing", "set": {"image_size": 32}}},
        "columns": [{"dataset": "phantom", "title": "Phantom", "protocol": "half"}],
        "rows": [
            {"method": "kmeans", "key": "first", "executor": {"slurm": {"time": 3}}},
            {"method": "simgcd", "title": "x", "set": {"lr": 0.1}, "set_in": {"smoke": {"epochs": 1}}},
        ],
        "sweeps": [{"method": "simgcd", "setting": "lr", "values": [0.1, 0.2], "reported_variants": {"0.1": "x"}}],
    },
    "card": CARD,
    "request": {
        "method": "simgcd",
        "dataset": "phantom",
        "preset": "smoke",
        "seed": 1,
        "k": "known",
        "protocol": {"name": "half", "k_policy": "known", "split_seed": 1},
        "set": {"lr": 0.1, "views": "bank:2"},
        "settings": {"image_size": 32},
        "training": {"epochs": 1},
        "config": {},
        "dataset_set": {"size": 32},
    },
    "names": {"run": "r", "clusters": {"0": {"name": "a"}, "1": {"merge_into": 0}, "2": {"rejected": True}}},
    "protocol": {"old_classes": ["a"], "label_fraction": 0.5, "citation": "who", "note": ""},
    "manifest": {"format": FORMAT, "files": {"phantom/simgcd/r/run.json": {"size": 3, "sha256": "0" * 64}}},
}


def use(kind: str, content: bytes, folder: Path) -> object:
    """Do with a file what the tool does with it before anything is computed."""
    file = folder / f"{kind}.toml"
    if kind == "manifest":
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr(MANIFEST, content)
        with zipfile.ZipFile(packed) as archive:
            return read_manifest(archive)
    if kind == "names":
        return parse_decisions(content, "names.toml")
    if kind == "protocol":
        card = folder / "card.toml"
        card.write_text(tomli_w.dumps(CARD))
        file = imported_file("x", "theirs-too")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        return imported_protocols(load_card(card))
    file.write_bytes(content)
    if kind == "card":
        return load_card(file)
    if kind == "request":
        return make_plan(merge_request(file, overrides={}, dataset_options={}), MANAGER)
    suite = load_suite(file, MANAGER)
    return [plan_suite(suite, name, MANAGER, [], data_root=folder) for name in suite.presets]


def use_or_refuse(kind: str, content: bytes, folder: Path) -> None:
    with suppress(GCDBenchError):
        use(kind, content, folder)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("gcdbench.datasets.imported.user_data_dir", lambda: tmp_path / "data")
    return tmp_path


def written(kind: str, table: Any) -> bytes:
    return json.dumps(table).encode() if kind == "manifest" else tomli_w.dumps(table).encode()


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a table, as the keys that lead to it."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in inner for place in ((*path, key), *places(item, (*path, key)))]


VALUES: list[Any] = [
    True, -1, 0, 10**15, 2**63 - 1, 10**400, 0.5, -0.0, float("nan"), float("inf"), "", "x", " ", "\x1b[2J", "../../x",
    "a\nb", "a/b", "a\0b", "0", [], [1], ["a"], [["a"]], {}, {"a": 1}, [{"a": {"b": []}}], [{}], "phantom", "simgcd",
    "folder:x", "csv:/dev/zero", "half+x", "a" * 300, "é\u202e",
]  # fmt: skip
TOML_ONLY: list[Any] = [datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1), datetime.time(1)]
QUICKLY = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def changed(table: Table, changes: list[tuple[tuple[Any, ...], Any, str]]) -> Table:
    table = copy.deepcopy(table)
    for place, value, how in changes:
        inner: Any = table
        try:
            for key in place[:-1]:
                inner = inner[key]
            if how == "delete":
                del inner[place[-1]]
            elif how == "add":
                inner[value if isinstance(value, str) else "more"] = value
            else:
                inner[place[-1]] = copy.deepcopy(value)
        except (KeyError, IndexError, TypeError):
            continue  # the first change has removed the place of the second
    return table


@pytest.mark.parametrize("kind", SOUND)
def test_the_sound_file_is_used(tmp_path: Path, kind: str) -> None:
    assert use(kind, written(kind, SOUND[kind]), tmp_path)


@pytest.mark.parametrize("kind", SOUND)
@QUICKLY
@given(data=st.data())
def test_a_changed_file_is_used_or_refused(tmp_path: Path, kind: str, data: st.DataObject) -> None:
    values = st.sampled_from(VALUES if kind == "manifest" else VALUES + TOML_ONLY)
    change = st.tuples(st.sampled_from(places(SOUND[kind])), values, st.sampled_from(["put", "put", "delete", "add"]))
    table = changed(SOUND[kind], data.draw(st.lists(change, min_size=1, max_size=2)))
    use_or_refuse(kind, written(kind, table), tmp_path)


@pytest.mark.parametrize("kind", SOUND)
@QUICKLY
@given(content=st.binary(max_size=80) | st.text(max_size=80).map(lambda text: text.encode(errors="replace")))
def test_any_bytes_are_used_or_refused(tmp_path: Path, kind: str, content: bytes) -> None:
    use_or_refuse(kind, content, tmp_path)


HEX = "0x" + "f" * 5000
"""A number that Python reads, and cannot print."""


@pytest.mark.parametrize(
    "content",
    [
        b"a = " + b"[" * 50_000,
        b"a = " + b"[" * 300 + b"]" * 300,
        b"a = " + b"{b=" * 50_000,
        b"[" + b"a." * 5_000 + b"a]",
        b"a = " + b"9" * 5000,
        b"a = " + HEX.encode(),
        b"a = 1\xff",
    ],
    ids=["brackets", "lists", "tables", "dots", "digits", "hexadecimal", "no text"],
)
@pytest.mark.parametrize("kind", [kind for kind in SOUND if kind != "manifest"])
def test_what_no_hand_wrote_is_refused(tmp_path: Path, kind: str, content: bytes) -> None:
    for whole in (content, content + b"\n" + tomli_w.dumps(SOUND[kind]).encode()):
        with pytest.raises(GCDBenchError):
            use(kind, whole, tmp_path)


@pytest.mark.parametrize("size", ["1e999", "NaN", "true", '"3"', "-1", "9" * 4000, "2.5", "null"])
def test_a_size_in_a_manifest_is_a_whole_number(tmp_path: Path, size: str) -> None:
    content = written("manifest", SOUND["manifest"]).replace(b'"size": 3', b'"size": ' + size.encode())
    with pytest.raises(GCDBenchError, match="does not describe"):
        use("manifest", content, tmp_path)


@pytest.mark.parametrize("kind", ["suite", "card", "request", "protocol"])
def test_a_pipe_is_not_waited_for(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "pipe.toml"
    os.mkfifo(file)
    readers: dict[str, Callable[[], object]] = {
        "suite": lambda: load_suite(file, MANAGER),
        "card": lambda: load_card(file),
        "request": lambda: merge_request(file, overrides={}, dataset_options={}),
    }
    if kind == "protocol":
        (tmp_path / "card.toml").write_text(tomli_w.dumps(CARD))
        imported_file("x", "pipe").parent.mkdir(parents=True)
        file.rename(imported_file("x", "pipe"))
        readers["protocol"] = lambda: imported_protocols(load_card(tmp_path / "card.toml"))
    with pytest.raises(GCDBenchError, match="pipe"):
        readers[kind]()


CELLS = st.sampled_from(
    ["", "a.png", "b.png", "path", "label", "part", "train", "test", '"', "'", "=1+1", "/dev/zero", "../a.png", "a\0b",
     "\x1b[2J", "\r", "\n", "~", "a" * 140_000, "é", "\ufeff", "sep=\"", "sep=\x0b", "9" * 30]
)  # fmt: skip


@QUICKLY
@given(
    rows=st.lists(st.lists(CELLS | st.text(max_size=5), max_size=4), max_size=5),
    mark=st.sampled_from([",", ";", "\t", "|", '"']),
    header=st.sampled_from(["", "path,label\n", "\ufeffpath;label;part\n", 'sep="\npath"label\n', "path,path,label\n"]),
    encoding=st.sampled_from(["utf-8", "utf-16", "utf-16-le", "latin-1"]),
)
def test_a_list_of_images_is_used_or_refused(
    tmp_path: Path, rows: list[list[str]], mark: str, header: str, encoding: str
) -> None:
    text = header + "\n".join(mark.join(cells) for cells in rows)
    (tmp_path / "list.csv").write_bytes(text.encode(encoding, errors="replace"))
    (tmp_path / "a.png").write_bytes(b"")
    with suppress(GCDBenchError):
        open_dataset(f"csv:{tmp_path / 'list.csv'}", MANAGER, image_size=32)


SPLIT = make_split(
    dataset="d", class_names=["a", "b", "c"], labels=np.arange(12) % 3,
    sha256=sorted(hashlib.sha256(bytes([number])).hexdigest() for number in range(12)), protocol=Protocol(name="half"),
).to_text()  # fmt: skip


@QUICKLY
@given(
    at=st.integers(0, len(SPLIT)), lost=st.integers(0, 12),
    put=st.text(max_size=4)
    | st.sampled_from(["", "9" * 5000, "NaN", "1e999", "-1", "null", "[" * 5000, "\t", "\n", "\0", "\udc80"]),
)  # fmt: skip
def test_a_split_file_is_used_or_refused(tmp_path: Path, at: int, lost: int, put: str) -> None:
    file = tmp_path / "split.tsv"
    file.write_bytes((SPLIT[:at] + put + SPLIT[at + lost :]).encode(errors="surrogateescape"))
    with suppress(GCDBenchError):
        read_split(file).to_text()

"""One bad run does not take the store down: every command names it with the reason and goes on with the others."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.index import load_runs
from gcdbench.runs.record import DONE, UNREADABLE
from gcdbench.testing.stored import edit_sealed

AddRun = Callable[..., RunDirectory]
Cli = Callable[..., Result]

BYTES: dict[str, bytes] = {
    "nothing": b"",
    "half": b'{"schema": 2, "run_id": "',
    "a list": b"[1, 2]",
    "a number": b"12",
    "nesting": b'{"a":' * 5000 + b"1" + b"}" * 5000,
    "a giant integer": b'{"schema": 2, "seed": ' + b"9" * 4000 + b"}",
    "NaN": b'{"schema": 2, "seconds": NaN}',
    "another encoding": '{"schema": 2}'.encode("utf-16"),
    "no UTF-8": b'{"schema": 2, "method": "\xff\xfe"}',
    "another schema": b'{"schema": 99}',
    "zeros": b"\0" * 100,
}
FILES = ("run.json", "scores.json", "env.json")
EVENTS: dict[str, bytes] = {
    "no event": b'{"message": "without a type"}\n',
    "a list": b"[1]\n",
    "nesting": b'{"type":' * 60 + b"1" + b"}" * 60 + b"\n",
    "no UTF-8": b'{"type": "note", "message": "\xff"}\n{"type": "x"}\n',
}


@pytest.fixture
def store(tmp_path: Path, add_run: AddRun) -> Path:
    """Three sound runs, and one for each kind of damage in each file."""
    runs = tmp_path / "runs"
    for seed in range(3):
        sound = add_run(runs, seed)
    for file in FILES:
        for kind, content in BYTES.items():
            bad = _copy(sound.path, f"{file}-{kind}")
            (bad / file).write_bytes(content)
    for kind, content in EVENTS.items():
        bad = _copy(sound.path, f"events-{kind}")
        (bad / "events.jsonl").write_bytes(content)
        edit_sealed(bad / "run.json", lambda record: record.update(files={}))  # as 0.1 wrote it, without hashes
    pipe = _copy(sound.path, "events-pipe")
    (pipe / "events.jsonl").unlink()
    os.mkfifo(pipe / "events.jsonl")
    (_copy(sound.path, "a-folder") / "scores.json").unlink()
    (sound.path.parent / "a-folder" / "scores.json").mkdir()
    return runs


def _copy(sound: Path, name: str) -> Path:
    target = sound.with_name(name.replace(" ", "-"))
    shutil.copytree(sound, target)
    return target


COUNT = len(FILES) * len(BYTES) + len(EVENTS) + 2


def test_every_bad_run_is_listed_with_its_reason(store: Path, cli: Cli) -> None:
    entries = load_runs(store)
    assert sum(entry.status == DONE for entry in entries) == 3
    bad = [entry for entry in entries if entry.status == UNREADABLE]
    assert len(bad) == COUNT
    assert all(entry.problem and len(entry.problem) < 500 for entry in bad)
    assert all(file in entry.problem for entry in bad for file in FILES if entry.run_id.startswith(file))
    shown = cli("status", "--runs", store)
    assert shown.exit_code == 0
    assert f"3 done, {COUNT} unreadable" in shown.stdout
    assert len(json.loads(cli("status", "--runs", store, "--json").stdout)) == COUNT + 3


def test_a_table_shows_the_others(store: Path, cli: Cli) -> None:
    result = cli("table", "--runs", store, "--json")
    assert result.exit_code == 0
    assert {entry["n"] for entry in json.loads(result.stdout)["entries"]} == {3}


def test_a_report_shows_the_others_and_the_reasons(store: Path, cli: Cli, tmp_path: Path) -> None:
    result = cli("report", "--runs", store, "-o", tmp_path / "report.html")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "report.html").read_text()
    assert page.count('<span class="bad">unreadable</span>') == COUNT


def test_rescore_mends_what_it_can_and_names_the_rest(store: Path, cli: Cli) -> None:
    result = cli("rescore", "--runs", store)
    assert result.exit_code == 1
    restored = len(BYTES)
    assert f"{restored} run(s) restored" in result.stdout
    assert f"{COUNT - restored} run(s) failed" in result.stdout
    assert sum(entry.status == DONE for entry in load_runs(store)) == 3 + restored


def test_export_leaves_the_bad_ones_out_and_says_so(store: Path, cli: Cli, tmp_path: Path) -> None:
    result = cli("export", tmp_path / "a.zip", "--runs", store)
    assert result.exit_code == 1
    assert "Packed 3 run(s)" in result.stdout
    assert result.stderr.count("left out:") == COUNT
    here = tmp_path / "here"
    assert "3 run(s) added" in cli("import", tmp_path / "a.zip", "--runs", here).stdout


def test_verify_and_doctor_name_them(store: Path, cli: Cli) -> None:
    result = cli("verify", "--runs", store)
    assert result.exit_code == 1
    assert f"{COUNT} run(s) damaged" in result.stdout
    healed = cli("doctor", "--runs", store)
    assert healed.exit_code == 1
    assert healed.stdout.count("is unreadable") == COUNT


def test_show_says_what_is_wrong(store: Path, cli: Cli) -> None:
    result = cli("show", store / "phantom" / "pixels-kmeans" / "run.json-NaN", "--runs", store)
    assert result.exit_code == 2
    assert "NaN is not a number" in result.stderr

"""Hostile strings in every text of every file of a run: no list, table, page or archive is steered by them."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gcdbench.cli.main import command
from gcdbench.core.identity import run_id
from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.attempt import hash_files
from gcdbench.runs.request import Request
from gcdbench.runs.strict_json import SEAL, write_sealed
from gcdbench.testing.stored import FakeRun, write_fake_run

ESCAPE, MARKUP, FORMULA = (
    "\x1b[2J\x1b[31mred\x07\x9b1m",
    '"><img src=x onerror=alert(2)><script>alert(1)',
    "=cmd|' /C'!A0",
)
LINES = "x\nforged line\r\u2028\u202e"
KEPT = {
    "sha256", "file", "status", "run_id", "method", "dataset", "manifest_sha256", "images", "weights_sha256",
    "k_policy", "type", "folder", "schema",
}  # fmt: skip
"""Texts that must be what they are for the file to be read at all; 'images' and digests are never shown as they are."""


def poison(value: Any, text: str, key: str = "") -> Any:
    """Every text replaced but those of KEPT."""
    if isinstance(value, dict):
        return {name: poison(item, text, name) for name, item in value.items()}
    if isinstance(value, list):
        return [poison(item, text, key) for item in value]
    return text + value if isinstance(value, str) and key not in KEPT else value


@pytest.fixture(params=[ESCAPE, MARKUP, FORMULA, LINES], ids=["escape", "markup", "formula", "lines"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    text: str = request.param
    asked = Request(method="simgcd", dataset="phantom", preset="smoke", seed=0, variant=None)
    home = write_fake_run(tmp_path / "runs", FakeRun(request=asked), PluginManager(points=[])).path
    for name in ("scores.json", "env.json"):
        table = json.loads((home / name).read_text())
        table.pop(SEAL, None)
        write_sealed(home / name, poison(table, text))
    events = [poison(json.loads(line), text) for line in (home / "events.jsonl").read_text().splitlines()]
    (home / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    (home / "config.toml").write_text(f"dataset = {json.dumps(text)}\n")
    record = json.loads((home / "run.json").read_text())
    record.pop(SEAL)
    record["variant"] = "v"
    record["accepted_data_issues"] = ["an issue"] * 3
    record["identity"]["accepted_data_issues"] = ["an issue"]
    record = poison(record, text)
    record["run_id"] = run_id(record["identity"])
    record["files"] = {name: {"sha256": f.sha256, "size": f.size} for name, f in hash_files(home).items()}
    write_sealed(home / "run.json", record)
    return home.rename(home.with_name(record["run_id"])).parents[2], record["run_id"]


def call(*arguments: object) -> Result:
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result


def check_terminal(text: str) -> None:
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u202e]", text)


def test_lists_and_tables(store: tuple[Path, str]) -> None:
    runs, name = store
    status = call("status", "--runs", runs).output
    check_terminal(status)
    assert "done" in status
    assert len(status.splitlines()) == 2
    check_terminal(call("show", name, "--runs", runs).output)
    for kind in ("text", "markdown", "latex", "json"):
        found = call("table", "--runs", runs, "--format", kind).output
        check_terminal(found)
        assert not re.search(r"^forged line", found, re.MULTILINE)
    rows = list(csv.reader(io.StringIO(call("table", "--runs", runs, "--format", "csv").output)))
    for cell in (cell for row in rows for cell in row):
        check_terminal(cell)
        assert not re.match(r"[=+@\t\r]|-(?![\d.])", cell), cell


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.scripts = 0
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        self.handlers += [name for name, value in attrs if name.startswith("on") or value == "x"]


def test_pages(store: tuple[Path, str], tmp_path: Path) -> None:
    runs, _ = store
    call("report", "--runs", runs, "-o", tmp_path / "page.html")
    for text, scripts in (
        ((tmp_path / "page.html").read_text(), 1),
        (call("table", "--runs", runs, "--format", "html").output, 0),
    ):
        seen = _Elements()
        seen.feed(text)
        assert (seen.scripts, seen.handlers) == (scripts, [])


def test_archives(store: tuple[Path, str], tmp_path: Path) -> None:
    runs, _ = store
    check_terminal(call("export", tmp_path / "a.zip", "--runs", runs).output)
    result = CliRunner().invoke(command, ["import", str(tmp_path / "a.zip"), "--runs", str(tmp_path / "other")])
    check_terminal(result.output)

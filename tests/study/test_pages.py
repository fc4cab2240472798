"""The pages of the study hold what follows from the stored runs, and their templates no number that does not."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from gcdbench.reporting.records import CellRecord, cell_records
from gcdbench.runs.index import load_runs

pytest.importorskip("gcdbench_medxplore")
pages = pytest.importorskip("benchmarks.medxplore.pages", reason="runs from the repository's root")
facts = pytest.importorskip("benchmarks.medxplore.facts")
outcomes = pytest.importorskip("benchmarks.medxplore.outcomes")
places = pytest.importorskip("benchmarks.medxplore.places")
verdict = pytest.importorskip("benchmarks.medxplore.verdict")

PUBLIC = ("gcdbench", "gcdbench.api", "gcdbench.plugins", "gcdbench.testing")


@pytest.fixture(scope="module")
def records() -> list[CellRecord]:
    return cell_records(load_runs(places.RUNS))


def test_every_page_follows_from_the_stored_runs(records: list[CellRecord]) -> None:
    for path, text in pages.written_pages(records).items():
        assert path.read_text(encoding="utf-8") == text, f"write {path.name} again: python -m benchmarks.medxplore"


def test_other_runs_make_other_pages(records: list[CellRecord]) -> None:
    """Without seed 1, which nothing on the pages is about alone."""
    fewer = pages.written_pages([record for record in records if record.seed != 1])
    for path, text in fewer.items():
        assert path.read_text(encoding="utf-8") != text, path.name


def test_the_report_and_the_readme_answer_once_every_split_is_there(
    records: list[CellRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = {seed: {"all": 90.0, "false_old": 1.0} for seed in range(10)}
    worse = {seed: {"all": 86.7 - seed, "false_old": 3.25 + seed} for seed in range(10)}
    found = {
        row: verdict.Finding(title=row, decisions=outcomes.decide(worse, reference), planned=10)
        for row in ("medxplore", "recommended")
    }
    monkeypatch.setattr(facts, "findings", lambda _: found)
    written = pages.written_pages(records)
    assert "**No.**" in written[places.REPORT]
    for page in (places.REPORT, places.README):  # medians of the differences by hand: −3.3 − 4.5 and 2.25 + 4.5
        assert "against SimGCD, worse:\nAll −7.8" in written[page]
        assert "+6.75 (above in 10" in written[page]


def test_every_row_of_the_ledger_is_filled() -> None:
    ledger = places.LEDGER.read_text(encoding="utf-8")
    assert ledger.count("<!-- measured -->") == len(pages.LEDGER_ROW.findall(ledger)) > 0
    assert "<!-- measured --> |" not in ledger


@pytest.mark.parametrize("name", ["report.md", "notebook.md", "readme.md"])
def test_no_measured_number_is_typed(name: str) -> None:
    """A number with decimals in prose is a setting ("α = 0.1"); whatever was measured is an expression."""
    text = (places.TEMPLATES / name).read_text(encoding="utf-8")
    text = re.sub(r"```.*?```|\{\{.*?\}\}|\{%.*?%\}|`[^`]*`", "", text, flags=re.DOTALL)
    assert re.findall(r"(?<!= )(?<![\d.])[+−-]?\d+\.\d+", text) == []


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return {name for name in found if name.partition(".")[0] == "gcdbench"}


def test_scripts_look_inside_of_gcdbench_in_one_place_only() -> None:
    scripts = [path for path in places.HERE.glob("*.py") if not path.name.startswith("_inside")]
    assert scripts
    for path in scripts:
        assert not [name for name in imported(path) if not name.startswith(PUBLIC[1:]) and name != PUBLIC[0]], path.name


def test_the_plugin_uses_the_public_interface_only() -> None:
    package = places.ROOT / "plugins" / "medxplore" / "gcdbench_medxplore"
    for path in package.rglob("*.py"):
        assert not [name for name in imported(path) if name not in PUBLIC], path.name


def test_the_tool_knows_no_study() -> None:
    """No module of gcdbench names the study or the plugin; what is known of packages is in a data file outside."""
    for path in (places.ROOT / "gcdbench").rglob("*.*"):
        if path.suffix in (".py", ".toml", ".css", ".js", ".c"):
            assert "medxplore" not in path.read_text(encoding="utf-8").lower(), path


def test_links_between_pages_lead_somewhere() -> None:
    """Files that exist, and headings that the page has."""
    for page in (
        places.REPORT,
        places.LEDGER,
        places.NOTEBOOK,
        places.README,
        places.ROOT / "docs" / "studies" / "index.md",
    ):
        for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text(encoding="utf-8")):
            file, _, heading = target.partition("#")
            found = page if not file else (page.parent / file)
            assert found.exists(), f"{page.name}: {target}"
            if heading:
                titles = re.findall(r"^#+ (.*)$", found.read_text(encoding="utf-8"), re.MULTILINE)
                anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
                assert heading in anchors, f"{page.name}: {target}"

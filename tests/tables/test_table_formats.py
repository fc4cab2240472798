"""A table as text, Markdown, LaTeX, CSV, JSON and HTML."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from gcdbench.core.errors import ConfigError
from gcdbench.reporting.suites.read import load_suite
from gcdbench.reporting.tables.plain import plain_table
from gcdbench.reporting.tables.render import render
from gcdbench.reporting.tables.suite_table import suite_table

SEEDS = range(7)
needs_latex = pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="needs pdflatex (Debian: texlive-latex-recommended)"
)


@pytest.fixture
def table(store, suite, manager):
    store.add("simgcd", SEEDS, accuracy=0.5)
    store.add("legogcd", SEEDS[:6], accuracy=0.9)
    return suite_table(suite, store.records(), manager)


def test_json_and_csv_hold_every_cell(table):
    entries = json.loads(render(table, "json"))["entries"]
    assert len(entries) == 3 * 2 * 3
    rows = list(csv.DictReader(io.StringIO(render(table, "csv"))))
    assert len(rows) == len(entries)
    for row, entry in zip(rows, entries, strict=True):
        expected = table.entry(entry["row"], entry["column"], entry["score"])
        assert entry["n"] == expected.n == int(row["n"])
        if expected.mean is not None:
            assert float(row["mean"]) == pytest.approx(expected.mean, abs=1e-4)
            assert row["runs"].split() == list(expected.runs)


@pytest.mark.parametrize("layout", ["long", "wide", "tall"])
def test_markdown_renders_as_tables(table, layout):
    html = MarkdownIt("commonmark").enable("table").render(render(table, "markdown", layout))
    assert html.count("<table>") == {"long": 2, "wide": 1, "tall": 2 * 3}[layout]  # datasets, all, datasets x scores
    width = {row.count("<td") for row in html.split("<tr>") if "<td" in row}
    assert len(width) == 1
    assert "<strong>" in html
    assert "LegoGCD" in html


class _Cells(HTMLParser):
    def __init__(self):
        super().__init__()
        self.stack, self.widths, self.errors = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.widths.append(0)
        if tag in ("td", "th"):
            self.widths[-1] += int(dict(attrs).get("colspan", 1))
        self.stack.append(tag)

    def handle_endtag(self, tag):
        if self.stack.pop() != tag:
            self.errors.append(tag)


@pytest.mark.parametrize("layout", ["long", "wide", "tall"])
def test_html_is_well_formed_and_rows_are_equally_wide(table, layout):
    parser = _Cells()
    parser.feed(render(table, "html", layout))
    assert parser.stack == []
    assert parser.errors == []
    assert len(set(parser.widths)) == 1


@pytest.mark.parametrize("layout", ["long", "wide", "tall"])
def test_text_columns_line_up(table, layout):
    lines = render(table, "text", layout).splitlines()
    rule = next(i for i, line in enumerate(lines) if set(line) == {"-"})
    body = [line for line in lines[rule + 1 :] if line.startswith(("SimGCD", "LegoGCD"))]
    assert len(body) >= 3
    assert len({len(line) for line in body}) <= 2


def test_marks_and_names_are_escaped(store, suite, manager):
    odd = replace(suite, title="100 % of <A> & B_1 | $x$", notes=("a_b * c",))
    table = suite_table(odd, store.records(), manager)
    assert r"100 \% of \textless{}A\textgreater{} \& B\_1" in render(table, "latex")
    assert "&lt;A&gt; &amp; B_1" in render(table, "html")
    assert r"\| $x$" in render(table, "markdown")


def test_latex_sets_signs_and_subscripts_as_mathematics(store, suite, manager):
    store.add("simgcd", SEEDS, accuracy=0.2)
    store.add("legogcd", SEEDS, accuracy=0.9)
    text = render(suite_table(suite, store.records(), manager), "latex")
    assert "Percent of $D_u$" in text
    assert re.search(r"& \$-\$\d+\.\d & ", text)  # a difference to the published value
    assert not re.search(r"[ &]-\d", text)
    assert "paper-stated" in text


def compile_latex(folder, *tables):
    """Compile the tables in one article; returns TeX's log."""
    preamble = r"\documentclass{article}\usepackage{booktabs,graphicx,xcolor}\begin{document}"
    text = "\n\\clearpage\n".join([preamble, *tables, r"\end{document}"])
    (folder / "t.tex").write_text(text, encoding="utf-8")
    run = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stdout[-2000:]
    assert (folder / "t.pdf").stat().st_size > 1000
    return (folder / "t.log").read_text(encoding="utf-8", errors="replace")


@pytest.mark.slow
@needs_latex
@pytest.mark.parametrize("layout", ["long", "wide", "tall"])
def test_latex_compiles(table, layout, tmp_path):
    assert "Overfull" not in compile_latex(tmp_path, render(table, "latex", layout))


@pytest.mark.slow
@needs_latex
def test_latex_of_every_suite_compiles_and_fits_the_page(store, manager, tmp_path):
    store.add("simgcd", [0, 1])
    store.add("legogcd", [0])
    records = store.records()
    study = pytest.importorskip("gcdbench_medxplore.study")
    suites = [load_suite(file, manager) for file in sorted(study.FOLDER.glob("*.toml"))]
    tables = [suite_table(suite, records, manager) for suite in suites]
    texts = [
        render(table, "latex", layout)
        for table in (*tables, plain_table(records, manager))
        for layout in ("auto", "wide")
    ]
    log = compile_latex(tmp_path, *texts)
    assert "Overfull" not in log
    assert "Float too large" not in log


def test_unknown_format_is_refused(table):
    with pytest.raises(ConfigError, match="no table format"):
        render(table, "docx")

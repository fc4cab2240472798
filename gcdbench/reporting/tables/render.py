"""Text formats: terminal, Markdown, LaTeX (booktabs), CSV, JSON. HTML is in :mod:`gcdbench.reporting.tables.html`."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from typing import Any

from gcdbench.core.errors import ConfigError
from gcdbench.core.printable import one_line, spreadsheet_text
from gcdbench.reporting.tables.grid import REMARK, Grid, GridCell, Layout, lay_out
from gcdbench.reporting.tables.html import render_html
from gcdbench.reporting.tables.model import Entry, ResultTable, RowHead

SUFFIXES = {".txt": "text", ".md": "markdown", ".tex": "latex", ".csv": "csv", ".json": "json", ".html": "html"}
FORMATS = ("text", "markdown", "latex", "csv", "json", "html")


def render(table: ResultTable, format_name: str, layout: Layout = "auto") -> str:
    """The table in one of FORMATS."""
    if format_name == "csv":
        return render_csv(table)
    if format_name == "json":
        return json.dumps(plain(table), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    grid = lay_out(table, layout)
    writers: dict[str, Callable[[Grid], str]] = {
        "text": render_text,
        "markdown": render_markdown,
        "latex": render_latex,
        "html": render_html,
    }
    if format_name not in writers:
        raise ConfigError(f"There is no table format '{format_name}'.", hint=f"Formats: {', '.join(FORMATS)}.")
    return writers[format_name](grid)


def _merged_header(grid: Grid) -> list[str]:
    """One header line: the groups' titles before their columns'."""
    groups = [text for text, span in grid.header[0] for _ in range(span)]
    leaves = [text for text, _ in grid.header[-1]]
    return [f"{group} {leaf}".strip() if group else leaf for group, leaf in zip(groups, leaves, strict=True)]


def render_text(grid: Grid, *, colours: bool = False) -> str:
    """Plain columns for a log; with ``colours`` for a terminal, where bold is bold and intervals are dim."""
    groups = [(text, span) for text, span in grid.header[0]]
    leaves = [text for text, _ in grid.header[-1]]
    body = [[f"*{c.text}*" if c.bold and not colours else c.text for c in row.cells] for row in grid.rows]
    widths = [max([len(leaf), *(len(cells[i]) for cells in body if cells)]) for i, leaf in enumerate(leaves)]
    start = 0
    for text, span in groups:  # a group's title must fit over its columns
        room = sum(widths[start : start + span]) + 2 * (span - 1)
        widths[start + span - 1] += max(0, len(text) - room)
        start += span
    lines, start, top = [grid.title, ""], 0, []
    for text, span in groups:
        top.append(text.center(sum(widths[start : start + span]) + 2 * (span - 1)))
        start += span
    lines += ["  ".join(top).rstrip()] if any(text for text, _ in groups) else []

    def aligned(cells: list[str]) -> list[str]:
        return [
            t.ljust(w) if grid.is_text(i) else t.rjust(w) for i, (t, w) in enumerate(zip(cells, widths, strict=True))
        ]

    lines.append("  ".join(aligned(leaves)).rstrip())
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    lines.append(rule)
    for row, cells in zip(grid.rows, body, strict=True):
        if row.section:
            lines += ["", row.section]
        elif colours:
            styled = [_ansi(t, bold=c.bold, faint=c.faint) for t, c in zip(aligned(cells), row.cells, strict=True)]
            lines.append("  ".join(styled))
        else:
            lines.append("  ".join(aligned(cells)).rstrip())
    below = [grid.caption, *grid.notes]
    lines += [rule, *([_ansi(line, faint=True) for line in below] if colours else below)]
    return "\n".join(lines) + "\n"


def _ansi(text: str, *, bold: bool = False, faint: bool = False) -> str:
    return f"\x1b[1m{text}\x1b[0m" if bold else f"\x1b[2m{text}\x1b[0m" if faint else text


def render_markdown(grid: Grid) -> str:
    """A pipe table (one for each section), the caption above and the notes below."""
    header = _merged_header(grid)
    rule = [":---" if grid.is_text(i) else "---:" for i in range(grid.width)]
    lines = [f"### {_md(grid.title)}", "", _md(grid.caption), ""]
    head = ["| " + " | ".join(map(_md, header)) + " |", "| " + " | ".join(rule) + " |"]
    if not grid.rows or not grid.rows[0].section:
        lines += head
    for row in grid.rows:
        if row.section:
            lines += [*([""] if lines[-1].startswith("|") else []), f"**{_md(row.section)}**", "", *head]
        else:
            lines.append("| " + " | ".join(f"**{_md(c.text)}**" if c.bold else _md(c.text) for c in row.cells) + " |")
    lines += ["", *(f"- {_md(note)}" for note in grid.notes)]
    return "\n".join(lines).rstrip() + "\n"


def _md(text: str) -> str:
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", text)


_TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "—": "--", "Δ": r"$\Delta$",
    "†": r"$^\dagger$", "‡": r"$^\ddagger$", "α": r"$\alpha$", "β": r"$\beta$", "δ": r"$\delta$", "×": r"$\times$",
    "−": "$-$", "→": r"$\to$", "≤": r"$\le$", "≥": r"$\ge$", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip


def _tex(text: str) -> str:
    """Escaped, with subscripts such as D_u and signs of numbers set as mathematics."""
    parts = re.split(r"\b([A-Za-z]_[a-z])\b|(?<![\w.])(-)(?=\d)", text)
    return "".join(
        f"${part[0]}_{part[2]}$" if i % 3 == 1 else "$-$" if i % 3 == 2 else "".join(_TEX.get(c, c) for c in part)
        for i, part in enumerate(parts)
        if part
    )


def _tex_cell(cell: GridCell) -> str:
    text = _tex(cell.text)
    if cell.bold:
        return rf"\textbf{{{text}}}"
    return rf"\textcolor{{gray}}{{{text}}}" if cell.faint and text else text


def render_latex(grid: Grid) -> str:
    """A ``table*`` with booktabs rules; needs the packages booktabs, graphicx and xcolor."""
    alignment = "".join("l" if grid.is_text(i) else "r" for i in range(grid.width))
    lines = [
        "% needs \\usepackage{booktabs,graphicx,xcolor}",
        r"\begin{table*}[t]",
        r"\centering",
        r"\setlength{\tabcolsep}{4pt}",
        rf"\caption{{{_tex(grid.title)}. {_tex(grid.caption)}}}",
        # Shrinks what is too wide and leaves the rest as large as its text.
        r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{@{{}}{alignment}@{{}}}}",
        r"\toprule",
    ]
    groups, rules, start = [], [], 1
    for text, span in grid.header[0]:
        groups.append(rf"\multicolumn{{{span}}}{{c}}{{{_tex(text)}}}" if span > 1 else _tex(text))
        if text:
            rules.append(rf"\cmidrule(lr){{{start}-{start + span - 1}}}")
        start += span
    if rules:
        lines += [" & ".join(groups) + r" \\", " ".join(rules)]
    lines += [" & ".join(_tex(text) for text, _ in grid.header[-1]) + r" \\", r"\midrule"]
    for i, row in enumerate(grid.rows):
        if row.section:
            rule = [r"\midrule"] if i else []
            lines += [*rule, rf"\multicolumn{{{grid.width}}}{{@{{}}l}}{{\textit{{{_tex(row.section)}}}}} \\"]
        else:
            lines.append(" & ".join(map(_tex_cell, row.cells)) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}}"]
    if grid.notes:
        lines += [r"\par\smallskip\footnotesize", *(_tex(note) + r"\par" for note in grid.notes)]
    lines.append(r"\end{table*}")
    return "\n".join(lines) + "\n"


def plain(table: ResultTable) -> dict[str, Any]:
    """The table as JSON values: one record for each row, column and score."""
    return {
        "name": table.name,
        "title": table.title,
        "caption": table.caption,
        "notes": list(table.notes),
        "against": table.reference or None,
        "mean_rank": dict(table.ranks),
        "entries": [
            _plain_entry(table, row, column.key, score)
            for column in table.columns
            for row in table.rows
            for score in table.scores
        ],
    }


def _plain_entry(table: ResultTable, row: RowHead, column: str, score: str) -> dict[str, Any]:
    entry: Entry = table.entry(row.key, column, score)
    head = next(c for c in table.columns if c.key == column)
    return {
        **{title.lower().replace(" ", "_"): label for title, label in zip(table.label_titles, row.labels, strict=True)},
        **({REMARK: row.remark} if table.has_remarks else {}),
        "row": row.key,
        "column": column,
        "stand_in_for": list(head.stand_in_for),
        "score": score,
        "n": entry.n,
        "mean": _rounded(entry.mean),
        "sd": _rounded(entry.sd),
        "low": _rounded(entry.low),
        "high": _rounded(entry.high),
        "interval": entry.interval_kind,
        **({"p": _rounded(entry.p), "above": entry.above} if table.reference else {}),
        "bold": entry.bold,
        "missing_seeds": list(entry.missing),
        "failed": entry.failed,
        "reported": entry.reported.value if entry.reported else None,
        "difference": _rounded(entry.difference),
        "runs": list(entry.runs),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def render_csv(table: ResultTable) -> str:
    """One line for each row, column and score; lists are joined by spaces."""
    records = plain(table)["entries"]
    out = io.StringIO()
    if records:
        writer = csv.DictWriter(out, fieldnames=list(records[0]), lineterminator="\n")
        writer.writeheader()
        for record in records:
            writer.writerow({key: _csv_cell(value) for key, value in record.items()})
    return out.getvalue()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, list):
        value = " ".join(map(str, value))
    return spreadsheet_text(one_line(value)) if isinstance(value, str) else value

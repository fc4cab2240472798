"""The report of a store: suites with runs, all runs, what failed or is missing, and a card for each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from pathlib import Path

from gcdbench import __version__
from gcdbench.metrics.error_terms import HEAD_TERMS, TERMS
from gcdbench.metrics.score import ScoreCatalogue
from gcdbench.plugins.manager import PluginManager
from gcdbench.reporting.records import CellRecord, cell_records
from gcdbench.reporting.replicates import group_replicates
from gcdbench.reporting.report.cards import card_anchor, run_card
from gcdbench.reporting.report.finding import find_sentences
from gcdbench.reporting.report.page import Section, render_page
from gcdbench.reporting.report.plots import Plots
from gcdbench.reporting.scores import score_catalogue
from gcdbench.reporting.suites.model import Suite
from gcdbench.reporting.tables.bootstrap import RunBootstrap
from gcdbench.reporting.tables.build import finished
from gcdbench.reporting.tables.grid import lay_out
from gcdbench.reporting.tables.html import render_html
from gcdbench.reporting.tables.model import ResultTable
from gcdbench.reporting.tables.plain import plain_table
from gcdbench.reporting.tables.suite_cells import runs_of_suite
from gcdbench.reporting.tables.suite_table import choose_preset, suite_table
from gcdbench.reporting.telling_settings import telling_settings
from gcdbench.runs.index import load_runs
from gcdbench.runs.record import DONE

MOST_CARDS = 200
FIRST = ("main", "errors", "ablation", "faac-buildup")
"""Suites that come first; the others follow in the order given."""


def build_report(
    runs: Path,
    suites: Sequence[Suite],
    manager: PluginManager,
    *,
    title: str = "gcdbench report",
    preset: str | None = None,
    pictures: Path | None = None,
    most_cards: int = MOST_CARDS,
    fewest_rows: int = 1,
) -> str:
    """One HTML document; suites with fewer than ``fewest_rows`` rows that have runs of their own are left out."""
    records = cell_records(load_runs(runs))
    plots = Plots()
    catalogue = score_catalogue(manager)
    sections: list[Section] = []
    findings: list[str] = []
    settings = _settings(records, manager)
    ordered = sorted(suites, key=lambda suite: FIRST.index(suite.name) if suite.name in FIRST else len(FIRST))
    without_runs: list[str] = []
    for suite in ordered:
        section = _suite(suite, records, manager, preset, plots, fewest_rows, findings)
        sections += [section] if section else []
        without_runs += [] if section or fewest_rows > 1 else [suite.title]  # asked for by name, so it is missed
    if any(record.status == DONE for record in records):
        plain = plain_table(records, manager, catalogue=catalogue)
        findings = findings or find_sentences(plain)
        table = render_html(lay_out(plain), titled=False)
        sections.append(Section(anchor="all-runs", short="All runs", title="All finished runs", body=table))
    sections = [_finding(findings), *sections, _problems(records, without_runs), _overview(records)]
    sections.append(_cards(records, catalogue, pictures, most_cards, settings))
    counts = Counter(record.status for record in records)
    lead = f"{len(records)} runs, " + ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    return render_page(
        title, lead, sections, f"Made by gcdbench {__version__} from stored predictions; this file needs no network."
    )


def _settings(records: Sequence[CellRecord], manager: PluginManager) -> dict[str, str]:
    """By a run's settings: what distinguishes it from others of its name."""
    groups = group_replicates(record for record in records if record.settings)
    told = telling_settings(groups, manager)
    return {record.settings: told[key] for key, members in groups.items() for record in members}


def _finding(sentences: Sequence[str]) -> Section:
    lines = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    body = (
        f'<ul class="finding">{lines}</ul>' if lines else "<p>No run is finished, so there is nothing to compare.</p>"
    )
    text = (
        "Accuracies are percent of D_u (the unlabelled training images) under one Hungarian map (v2): All, Old, New. "
        "Intervals are 95 %. Bold needs a paired test over shared seeds. Click a column's heading to sort."
    )
    return Section(anchor="finding", short="Finding", title="Finding", body=f"{body}<p>{escape(text)}</p>")


def _overview(records: Sequence[CellRecord]) -> Section:
    done = [record for record in records if record.status == DONE]
    tiles = {
        "finished run": len(done),
        "method": len({record.method for record in done}),
        "dataset": len({record.dataset for record in done}),
        "unfinished run": len(records) - len(done),
    }
    body = "".join(
        f"<li><strong>{value}</strong>{escape(name)}{'' if value == 1 else 's'}</li>" for name, value in tiles.items()
    )
    return Section(anchor="counts", short="Counts", title="Counts", body=f'<ul class="tiles">{body}</ul>')


def _suite(
    suite: Suite,
    records: Sequence[CellRecord],
    manager: PluginManager,
    preset: str | None,
    plots: Plots,
    fewest_rows: int,
    findings: list[str],
) -> Section | None:
    """A suite's table, figure and runs; None when too few of its rows have any."""
    name = preset if preset is not None and preset in suite.presets else choose_preset(suite, records)
    chosen = suite.presets[name]
    found, _ = runs_of_suite(suite, chosen, records, manager, seeds=chosen.seeds)
    scores = _shown_scores(suite, found)
    whole = suite_table(suite, records, manager, preset=name, scores=scores, bootstrap=RunBootstrap())
    # Rows may share runs (every sweep of a setting holds the default), and then compare nothing.
    first = {(row, column): entry for (row, column, score), entry in whole.entries.items() if score == scores[0]}
    told_apart = {(column, entry.runs) for (_, column), entry in first.items() if entry.n}
    if max(Counter(column for column, _ in told_apart).values(), default=0) < fewest_rows:
        return None
    table, unused = _only_begun(whole)
    if not findings:  # the first table that compares anything is what a reader came for
        findings += find_sentences(table)
    body = render_html(lay_out(table), titled=False)
    if unused:
        body += f'<p class="soft">Not shown, because there is no run yet: {escape(", ".join(unused))}.</p>\n'
    body += _figure(suite, table, plots)
    body += _behind(suite, table, found)
    return Section(anchor=f"suite-{suite.name}", short=suite.name, title=suite.title, body=body)


def _shown_scores(suite: Suite, found: dict[tuple[str, str], list[CellRecord]]) -> tuple[str, ...]:
    """A suite's scores; with the errors by the map also those by the head, where a run has them."""
    extra = [] if suite.kind == "cost" else ["all"]  # which the figures need
    if set(TERMS) <= set(suite.scores):
        scored = {key for records in found.values() for record in records for key in record.scores}
        extra += [term for term in HEAD_TERMS if term in scored]
    return tuple(dict.fromkeys([*suite.scores, *extra]))


def _only_begun(table: ResultTable) -> tuple[ResultTable, list[str]]:
    """The table without columns that have no run at all, and the titles of those."""
    begun = {column for (_, column, _), entry in table.entries.items() if entry.n}
    shown = tuple(column for column in table.columns if column.key in begun)
    unused = [column.title for column in table.columns if column.key not in begun]
    if not unused or not shown:
        return table, []
    entries = {place: entry for place, entry in table.entries.items() if place[1] in begun}
    return replace(table, columns=shown, entries=entries), unused


def _figure(suite: Suite, table: ResultTable, plots: Plots) -> str:
    from gcdbench.reporting.figures.sources import bar_figure, curve_figure, error_figure

    if suite.kind == "curve":
        return plots.embed(partial(curve_figure, table, suite), f"Curves: {suite.title}")
    if suite.kind == "decomposition":
        return plots.embed(partial(error_figure, table), f"Error decomposition: {suite.title}")
    if suite.kind == "cost":
        return ""
    return plots.embed(partial(bar_figure, table), f"Accuracies: {suite.title}")


def _behind(suite: Suite, table: ResultTable, found: dict[tuple[str, str], list[CellRecord]]) -> str:
    titles = {row.key: row.title for row in suite.rows}
    lines = []
    for column in table.columns:
        for row in table.rows:
            done = finished(found.get((row.key, column.key), ()))
            links = ", ".join(
                f'<a href="#{card_anchor(record)}">seed {seed}</a>' for seed, record in sorted(done.items())
            )
            missing = table.entry(row.key, column.key, table.scores[0]).missing
            gap = f' <span class="bad">missing seeds: {", ".join(map(str, missing))}</span>' if missing else ""
            lines.append(f"<li>{escape(titles[row.key])}, {escape(column.title)}: {links or '—'}{gap}</li>")
    return f"<details><summary>Runs behind the cells</summary><div><ul>{''.join(lines)}</ul></div></details>\n"


def _problems(records: Sequence[CellRecord], without_runs: Sequence[str]) -> Section:
    odd = [record for record in records if record.status != DONE]
    lines = "".join(
        f'<li><span class="bad">{escape(r.status)}</span> <a href="#{card_anchor(r)}">{escape(r.method)} on '
        f"{escape(r.dataset)}, seed {r.seed}</a> {escape(r.problem)}</li>"
        for r in odd
    )
    body = f"<ul>{lines}</ul>" if odd else "<p>Every run that was begun is finished.</p>"
    body += "".join(f'<p class="bad">No run yet of the suite "{escape(title)}".</p>' for title in without_runs)
    return Section(anchor="problems", short="Unfinished", title="Failed or unfinished", body=body)


def _cards(
    records: Sequence[CellRecord],
    catalogue: ScoreCatalogue,
    pictures: Path | None,
    most: int,
    settings: Mapping[str, str],
) -> Section:
    odd = [record for record in records if record.status != DONE]
    done = [record for record in records if record.status == DONE]
    chosen = [*odd, *done][:most]
    left = len(records) - len(chosen)
    note = f"<p>{left} more run(s) have no card here; 'gcdbench show RUN' shows them.</p>" if left else ""
    tools = '<p class="tools"><label>Filter <input id="filter" type="search" autocomplete="off"></label></p>'
    body = tools + "".join(run_card(r, catalogue, pictures, settings.get(r.settings, "")) for r in chosen) + note
    return Section(anchor="runs", short="Run cards", title="Runs", body=body)

"""What a table says, in sentences: who has the highest mean, and whether a test supports it."""

from __future__ import annotations

from gcdbench.reporting.tables.model import Entry, ResultTable, RowHead

HEADLINE = "all"
MOST = 6


def find_sentences(table: ResultTable) -> list[str]:
    """One sentence for each column and block of rows that compete, at most MOST of them."""
    if HEADLINE not in table.scores:
        return []
    sentences = []
    for column in table.columns:
        for block in dict.fromkeys(row.block for row in table.rows):
            rows = [row for row in table.rows if row.block == block]
            found = [(row, entry) for row in rows if (entry := table.entry(row.key, column.key, HEADLINE)).n]
            if len(found) > 1:
                sentences.append(_sentence(table, column.title or block, found))
    left = len(sentences) - MOST
    return [*sentences[:MOST], *([f"{left} more comparisons are in the tables below."] if left > 0 else [])]


def _sentence(table: ResultTable, where: str, found: list[tuple[RowHead, Entry]]) -> str:
    score = table.catalogue[HEADLINE]
    (best, entry), (second, runner) = sorted(found, key=lambda item: -(item[1].mean or 0.0))[:2]
    said = f"{where}: {_name(table, best)} has the highest mean of {score.title}, {score.written(entry.mean or 0.0)} %"
    said += (
        f" (n = {entry.n}), ahead of {_name(table, second)} with {score.written(runner.mean or 0.0)} % (n = {runner.n})"
    )
    verdict = (
        "a paired test over shared seeds sets it apart from every other row"
        if entry.bold
        else "the runs do not show that it is better than all others"
    )
    return f"{said}; {verdict}."


def _name(table: ResultTable, row: RowHead) -> str:
    """A row of a suite by its title; one of all runs by its method."""
    place = table.label_titles.index("method") if "method" in table.label_titles else 0
    return " ".join(filter(None, (row.labels[place], row.remark)))

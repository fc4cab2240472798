"""Runs as tables see them: entries of the list of runs, on one evaluation set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gcdbench.runs.record import TRANSDUCTIVE
from gcdbench.runs.run_entry import RunEntry

CellRecord = RunEntry


def cell_records(entries: Sequence[RunEntry], evaluation: str = TRANSDUCTIVE) -> list[RunEntry]:
    """All runs, including those that failed or are still running, with their scores on one evaluation set."""
    return [entry if entry.evaluation == evaluation else replace(entry, evaluation=evaluation) for entry in entries]

"""Intervals over the images of one run, from its stored predictions."""

from __future__ import annotations

import numpy as np

from gcdbench.core.errors import GCDBenchError
from gcdbench.metrics.assignment import contingency, match
from gcdbench.reporting.records import CellRecord
from gcdbench.reporting.statistics import Interval, bootstrap_interval
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.predictions import ScoredSet, load_predictions
from gcdbench.runs.record import TRANSDUCTIVE

ACCURACIES = ("all", "old", "new")


def accuracy_interval(scored: ScoredSet, score: str) -> Interval | None:
    """Bootstrap interval of All, Old or New with the run's Hungarian map held fixed and groups kept together."""
    if score not in ACCURACIES:
        return None
    table = contingency(scored.y_true, scored.cluster, len(scored.is_old))
    class_of = match(table.counts)
    assigned = class_of[np.searchsorted(table.cluster_ids, scored.cluster)]
    old = scored.is_old[scored.y_true]
    chosen = {"all": np.ones_like(old), "old": old, "new": ~old}[score]
    if not chosen.any():
        return None
    groups = scored.group[chosen]
    independent = len(np.unique(groups)) == len(groups)
    return bootstrap_interval((assigned == scored.y_true)[chosen], None if independent else groups)


class RunBootstrap:
    """Intervals of runs by their records; predictions are read once per run."""

    def __init__(self, evaluation: str = TRANSDUCTIVE) -> None:
        self._evaluation = evaluation
        self._loaded: dict[str, ScoredSet | None] = {}

    def __call__(self, record: CellRecord, score: str) -> Interval | None:
        """The interval, or None where the predictions are not here (an import without them) or damaged."""
        if record.run_id not in self._loaded:
            self._loaded[record.run_id] = self._load(record)
        scored = self._loaded[record.run_id]
        return None if scored is None else accuracy_interval(scored, score)

    def _load(self, record: CellRecord) -> ScoredSet | None:
        try:
            stored = RunDirectory(record.path).record()
            return load_predictions(stored, self._evaluation)
        except GCDBenchError:
            return None

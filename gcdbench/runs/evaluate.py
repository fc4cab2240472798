"""Scores from stored predictions. This is the only place where hidden labels and predictions meet."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from gcdbench.core.errors import GCDBenchError, PluginError, StoreError
from gcdbench.core.files import write_json
from gcdbench.metrics.accuracy import assert_identity, old_share
from gcdbench.metrics.assignment import confusion_matrix
from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.predictions import ScoredSet, load_scored_set
from gcdbench.splits.manifest import SplitManifest
from gcdbench.training.method import Prediction

SCORES_SCHEMA = 1
TRANSDUCTIVE, INDUCTIVE = "transductive", "inductive"
"""Evaluation sets: the unlabelled training images D_u, and the dataset's untouched test part."""


def attach_truth(prediction: Prediction, split: SplitManifest) -> ScoredSet:
    """Join predictions with the hidden labels by sample id."""
    return ScoredSet(
        ids=prediction.ids,
        cluster=prediction.cluster,
        y_true=split.labels[prediction.ids],
        group=split.groups[prediction.ids],
        is_old=split.is_old,
        anchored=prediction.anchored,
        k_hat=prediction.k_hat,
        confidence=prediction.confidence,
    )


def score_set(scored: ScoredSet, manager: PluginManager) -> tuple[dict[str, float], dict[str, str]]:
    """All registered metrics on one evaluation set, and the errors of those that failed.

    A stranger's metric that raises is reported beside the scores; one of ours that raises is a bug and propagates.
    """
    scores: dict[str, float] = {}
    errors: dict[str, str] = {}
    ours = {spec.name: manager.provider("metrics", spec.name)[0] == "gcdbench" for spec in manager.specs("metrics")}
    # Ours first: a stranger's key that clashes is the stranger's fault.
    for spec in sorted(manager.specs("metrics"), key=lambda spec: not ours[spec.name]):
        try:
            values = _checked(spec.name, spec.load()(scored.y_true, scored.cluster, scored.is_old, scored.anchored))
            clash = sorted(set(values) & set(scores))
            if clash:
                raise PluginError(f"the key '{clash[0]}' is taken by another metric")
        except Exception as error:
            if ours[spec.name]:
                raise
            errors[spec.name] = f"{type(error).__name__}: {error}"
            continue
        scores.update(values)
    w = old_share(scored.y_true, scored.is_old)
    assert_identity(scores["all"], scores.get("old"), scores.get("new"), w)
    scores["k_hat"] = float(scored.k_hat)
    scores["k_hat_error"] = float(scored.k_hat - len(scored.is_old))
    return scores, errors


def _checked(name: str, values: object) -> dict[str, float]:
    if not isinstance(values, Mapping):
        raise PluginError(f"metric '{name}' returned {type(values).__name__}, expected a dictionary of numbers")
    checked = {str(key): float(value) for key, value in values.items()}
    for key, value in checked.items():
        if not math.isfinite(value):
            raise PluginError(f"metric '{name}' returned {value} for '{key}'; leave undefined values out")
    return checked


def score_run(directory: RunDirectory, manager: PluginManager) -> dict[str, Any]:
    """Scores of every stored evaluation set of a run; a pure function of the stored predictions and the metrics."""
    files: Mapping[str, Mapping[str, Any]] = directory.record().get("predictions") or {}
    if TRANSDUCTIVE not in files:
        raise StoreError(f"The run '{directory.path.name}' has no stored predictions to score.")
    sets: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for name, entry in files.items():
        scored = load_scored_set(directory.path / entry["file"], entry["sha256"])
        scores, errors = score_set(scored, manager)
        problems.update(errors)
        sets[name] = {
            "n": len(scored.ids),
            "old_share": old_share(scored.y_true, scored.is_old),
            "scores": scores,
            "confusion": confusion_matrix(scored.y_true, scored.cluster, len(scored.is_old)).tolist(),
            "k_old": int(scored.is_old.sum()),
        }
    return {
        "schema": SCORES_SCHEMA,
        "sets": sets,
        "metrics": {
            spec.name: f"{manager.provider('metrics', spec.name)[0]}/{getattr(spec, 'version', '1')}"
            for spec in manager.specs("metrics")
            if spec.name not in problems
        },
        "metric_errors": problems,
    }


def rescore(directory: RunDirectory, manager: PluginManager) -> tuple[list[str], list[str]]:
    """Recompute a run's scores from its predictions; returns the keys that changed or went, and the new ones."""
    fresh = score_run(directory, manager)
    try:
        before = directory.scores()
    except GCDBenchError:
        before = {}
    changed, added = [], []
    for name, entry in fresh["sets"].items():
        old_scores = ((before.get("sets") or {}).get(name) or {}).get("scores") or {}
        for key, value in entry["scores"].items():
            if key not in old_scores:
                added.append(f"{name}.{key}")
            elif old_scores[key] != value:
                changed.append(f"{name}.{key}")
        changed += [f"{name}.{key} (gone)" for key in old_scores if key not in entry["scores"]]
    if fresh != before:
        with directory.writing():
            write_json(directory.scores_path, fresh)
    return changed, added

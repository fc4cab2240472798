"""Scores from stored predictions. This is the only place where hidden labels and predictions meet."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from gcdbench.core.errors import PluginError, StoreError
from gcdbench.metrics.accuracy import assert_identity, old_share
from gcdbench.metrics.assignment import confusion_matrix
from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.predictions import ScoredSet, load_predictions
from gcdbench.runs.reader import SCORES, read_scores
from gcdbench.runs.record import DONE, TRANSDUCTIVE, Record, Scores, SetScores
from gcdbench.runs.recovery import recover
from gcdbench.runs.strict_json import write_sealed
from gcdbench.splits.manifest import SplitManifest
from gcdbench.training.method import Prediction


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

    A plugin's metric that raises is reported with the scores; one of ours that raises is a bug and propagates.
    """
    scores, _, errors = _score_by_metric(scored, manager)
    return scores, errors


def _score_by_metric(
    scored: ScoredSet, manager: PluginManager
) -> tuple[dict[str, float], dict[str, str], dict[str, str]]:
    """Scores by key, the metric that each key comes from, and errors by metric."""
    scores: dict[str, float] = {}
    owners: dict[str, str] = {}
    errors: dict[str, str] = {}
    ours = {spec.name: manager.provider("metrics", spec.name)[0] == "gcdbench" for spec in manager.specs("metrics")}
    # Ours first: a key of a plugin's metric that clashes is the plugin's fault.
    for spec in sorted(manager.specs("metrics"), key=lambda spec: not ours[spec.name]):
        try:
            values = _checked(spec.name, spec.load()(scored.y_true, scored.cluster, scored.is_old, scored.anchored))
            clash = sorted(set(values) & set(scores))
            if clash:
                raise PluginError(f"the key '{clash[0]}' is taken by another metric")
        except Exception as error:
            if ours[spec.name]:
                raise
            errors[spec.name] = manager.explain(error)
            continue
        scores.update(values)
        owners.update(dict.fromkeys(values, spec.name))
    w = old_share(scored.y_true, scored.is_old)
    assert_identity(scores["all"], scores.get("old"), scores.get("new"), w)
    scores["k_hat"] = float(scored.k_hat)
    scores["k_hat_error"] = float(scored.k_hat - len(scored.is_old))
    return scores, owners, errors


def _checked(name: str, values: object) -> dict[str, float]:
    if not isinstance(values, Mapping):
        raise PluginError(f"metric '{name}' returned {type(values).__name__}, expected a dictionary of numbers")
    checked = {str(key): float(value) for key, value in values.items()}
    for key, value in checked.items():
        if not math.isfinite(value):
            raise PluginError(f"metric '{name}' returned {value} for '{key}'; leave undefined values out")
    return checked


def score_run(record: Record, manager: PluginManager) -> Scores:
    """Scores of every stored evaluation set of a run; a pure function of the stored predictions and the metrics.

    A set whose true classes nobody knows has none.
    """
    if TRANSDUCTIVE not in record.predictions:
        raise StoreError(f"The run '{record.run_id}' has no stored predictions to score.")
    return score_sets({name: load_predictions(record, name) for name in record.predictions}, manager)[0]


def score_sets(found: Mapping[str, ScoredSet], manager: PluginManager) -> tuple[Scores, dict[str, str]]:
    """Scores of evaluation sets by name, and the metric that each key of a score comes from."""
    sets: dict[str, SetScores] = {}
    problems: dict[str, str] = {}
    owners: dict[str, str] = {}
    for name, scored in found.items():
        if not scored.has_truth:
            continue
        scores, owned, errors = _score_by_metric(scored, manager)
        problems.update(errors)
        owners.update(owned)
        counts = confusion_matrix(scored.y_true, scored.cluster, len(scored.is_old))
        sets[name] = SetScores(
            n=len(scored.ids),
            old_share=old_share(scored.y_true, scored.is_old),
            k_old=int(scored.is_old.sum()),
            scores=scores,
            confusion=tuple(map(tuple, counts.tolist())),
        )
    metrics = {
        spec.name: f"{manager.provider('metrics', spec.name)[0]}/{getattr(spec, 'version', '1')}"
        for spec in manager.specs("metrics")
        if spec.name not in problems
    }
    return Scores(sets=sets, metrics=metrics, metric_errors=problems), owners


@dataclass(frozen=True, kw_only=True)
class Rescored:
    """What computing the scores again has changed. restored: the stored ones were lost or damaged."""

    scores: Scores
    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    restored: bool = False


def rescore(directory: RunDirectory, manager: PluginManager) -> Rescored:
    """Compute a finished run's scores again from its predictions, and store them where they are not what is stored."""
    record = directory.record()
    if record.status != DONE or record.folder:
        with directory.writing():
            recover(directory)
        record = directory.record()
    if record.status != DONE:
        raise StoreError(f"The run '{directory.path.name}' is not done: it is {directory.state_of(record)}.")
    fresh = score_run(record, manager)
    try:
        before = read_scores(record.home)
    except StoreError:
        before = None
    if fresh != before:
        with directory.writing():
            write_sealed(record.home / SCORES, fresh.to_table())
    if before is None:
        return Rescored(scores=fresh, restored=True)
    changed, added = [], []
    for name, entry in fresh.sets.items():
        known = before.sets[name].scores if name in before.sets else {}
        for key, value in entry.scores.items():
            if key not in known:
                added.append(f"{name}.{key}")
            elif known[key] != value:
                changed.append(f"{name}.{key}")
        changed += [f"{name}.{key} (gone)" for key in known if key not in entry.scores]
    return Rescored(scores=fresh, changed=tuple(changed), added=tuple(added))

"""Scores of an archived run, computed again: what somebody else says about predictions is compared, never believed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gcdbench.core.errors import GCDBenchError
from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.archive.layout import refuse
from gcdbench.runs.evaluate import score_sets
from gcdbench.runs.predictions import ScoredSet
from gcdbench.runs.record import Scores, SetScores

TOLERANCE = 1e-6
"""Percent by which the same metric may differ on another machine: sums of floats in another order."""
MOST_CLASSES = 5_000
"""Classes of an archived run; a confusion matrix of more would fill the memory of the machine that imports it."""


@dataclass(frozen=True, kw_only=True)
class Recomputed:
    """Scores by the metrics installed here.

    dropped: keys that no metric installed here computes; replaced: keys whose metric has another version here and
    says something else.
    """

    scores: Scores
    dropped: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()


def recompute(
    prefix: str, predictions: Mapping[str, Mapping[str, Any]], claimed: Scores, classes: int, manager: PluginManager
) -> Recomputed:
    """Score the predictions (arrays by evaluation set); refuse the run where the same metric says something else.

    classes: how many the run says its split has; 0 where it does not say.
    """
    found = {name: _scored_set(prefix, arrays, classes) for name, arrays in predictions.items()}
    known = {name for name, scored in found.items() if scored.has_truth}
    if set(claimed.sets) != known:
        odd = min(set(claimed.sets) ^ known)
        raise refuse(f"run '{prefix}' has no {'predictions' if odd in claimed.sets else 'scores'} for '{odd}'")
    try:
        scores, owners = score_sets(found, manager)
    except Exception as error:  # whatever a metric does with arrays that somebody has made up
        raise refuse(f"run '{prefix}' has predictions that cannot be scored ({error})") from None
    # Without a version a metric is taken at its word: what it says must be what it says here.
    same = {name for name, version in scores.metrics.items() if claimed.metrics.get(name, version) == version}
    dropped: set[str] = set()
    replaced: set[str] = set()
    for name, fresh in scores.sets.items():
        _check_counts(prefix, name, claimed.sets[name], fresh)
        for key, value in claimed.sets[name].scores.items():
            if key not in fresh.scores:
                dropped.add(key)
            elif not math.isclose(value, fresh.scores[key], rel_tol=0.0, abs_tol=TOLERANCE):
                if key not in owners or owners[key] in same:
                    raise refuse(
                        f"the scores of run '{prefix}' do not follow from its predictions: '{key}' on '{name}' is "
                        f"{fresh.scores[key]:.6g}, not {value:.6g}"
                    )
                replaced.add(key)
    return Recomputed(scores=scores, dropped=tuple(sorted(dropped)), replaced=tuple(sorted(replaced)))


def _check_counts(prefix: str, name: str, claimed: SetScores, fresh: SetScores) -> None:
    """What no metric has a version for: numbers of images and classes, and the confusion matrix where there is one."""
    agree = {
        "n": claimed.n == fresh.n,
        "old_share": abs(claimed.old_share - fresh.old_share) <= TOLERANCE,
        "k_old": claimed.k_old == fresh.k_old,
        "confusion": not claimed.confusion or claimed.confusion == fresh.confusion,
    }
    for key, right in agree.items():
        if not right:
            raise refuse(f"the scores of run '{prefix}' do not follow from its predictions: '{key}' on '{name}'")


def _scored_set(prefix: str, arrays: Mapping[str, Any], classes: int) -> ScoredSet:
    """Predictions from arrays that may be anything: shapes and kinds are checked before a metric sees them."""
    try:
        rows = {name: arrays[name] for name in ("ids", "cluster", "y_true", "group")}
        scored = ScoredSet(
            **rows,
            is_old=arrays["is_old"],
            anchored=bool(arrays["anchored"]),
            k_hat=int(arrays["k_hat"]),
            confidence=arrays.get("confidence"),
        )
        shape = scored.ids.shape
        if len(shape) != 1 or any(array.shape != shape or array.dtype.kind not in "iu" for array in rows.values()):
            raise ValueError("its arrays do not fit together")
        if scored.is_old.ndim != 1 or scored.is_old.dtype.kind != "b" or len(scored.is_old) > MOST_CLASSES:
            raise ValueError("'is_old' is not one flag per class")
        if classes and len(scored.is_old) != classes:
            raise ValueError(f"there are {len(scored.is_old)} classes, its split has {classes}")
    except GCDBenchError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise refuse(f"run '{prefix}' has predictions that cannot be scored ({error})") from None
    return scored

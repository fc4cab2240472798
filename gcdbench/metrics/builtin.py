"""The built-in metrics, registered through the same hook as anybody else's. Listing them imports no numpy."""

from __future__ import annotations

from gcdbench.plugins.hookspecs import hookimpl
from gcdbench.plugins.specs import MetricSpec


@hookimpl
def gcdbench_metrics() -> list[MetricSpec]:
    """Headline accuracy first; the keys of different metrics never collide."""
    room = "gcdbench.metrics"
    return [
        MetricSpec(
            name="accuracy",
            factory=f"{room}.accuracy:accuracy",
            summary="Headline (v2): All/Old/New under one Hungarian map over all of D_u, percent.",
            tags=("headline",),
        ),
        MetricSpec(
            name="error-decomposition",
            factory=f"{room}.decomposition:error_decomposition",
            summary="Wrong samples in four groups, percent of D_u; All + the four = 100.",
        ),
        MetricSpec(
            name="accuracy-v1",
            factory=f"{room}.accuracy:accuracy_v1",
            summary="All/Old/New with old and new matched separately (flatters old-class bias), percent.",
        ),
        MetricSpec(
            name="accuracy-balanced",
            factory=f"{room}.accuracy:accuracy_balanced",
            summary="Mean of per-class accuracies under the v2 map, percent.",
        ),
        MetricSpec(
            name="accuracy-anchored",
            factory=f"{room}.accuracy:accuracy_anchored",
            summary="Plain accuracy on old classes, Hungarian among new clusters only; anchored methods, percent.",
        ),
        MetricSpec(
            name="nmi",
            factory=f"{room}.clustering:nmi",
            summary="Normalised mutual information, percent.",
        ),
        MetricSpec(
            name="ari",
            factory=f"{room}.clustering:ari",
            summary="Adjusted Rand index, percent.",
        ),
        MetricSpec(
            name="cluster-count",
            factory=f"{room}.clustering:cluster_count",
            summary="Clusters in use, and their number minus the number of classes.",
        ),
        MetricSpec(
            name="chance-level",
            factory=f"{room}.clustering:chance_level",
            summary="v2 accuracy expected from the same clusters shuffled over the samples, percent.",
        ),
    ]

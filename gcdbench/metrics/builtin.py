"""The built-in metrics, registered through the same hook as anybody else's. Listing them imports no numpy."""

from __future__ import annotations

from gcdbench.plugins.hookspecs import hookimpl
from gcdbench.plugins.specs import MetricSpec


@hookimpl
def gcdbench_metrics() -> list[MetricSpec]:
    """Headline accuracy first; the keys of different metrics never collide."""
    return [
        _metric(
            "accuracy",
            "accuracy:accuracy",
            "Headline (v2): All/Old/New under one Hungarian map over all of D_u, percent.",
            tags=("headline",),
        ),
        _metric(
            "error-decomposition",
            "decomposition:error_decomposition",
            "Wrong samples in four groups, percent of D_u; All + the four = 100.",
        ),
        _metric(
            "error-decomposition-head",
            "decomposition_head:error_decomposition_head",
            "The same with cluster j held to be old class j; anchored All + the four = 100; anchored methods.",
        ),
        _metric(
            "ties",
            "ties:ties",
            "Whether other maps are as good as the headline's, and the range of Old and New over all of them.",
        ),
        _metric(
            "accuracy-v1",
            "accuracy_v1:accuracy_v1",
            "All/Old/New with old and new matched separately (flatters old-class bias), percent.",
        ),
        _metric(
            "accuracy-balanced",
            "accuracy_balanced:accuracy_balanced",
            "Mean of per-class accuracies under the v2 map, percent.",
        ),
        _metric(
            "accuracy-anchored",
            "accuracy_anchored:accuracy_anchored",
            "Plain accuracy on old classes, Hungarian among new clusters only; anchored methods, percent.",
        ),
        _metric("nmi", "nmi:nmi", "Normalised mutual information, percent."),
        _metric("ari", "ari:ari", "Adjusted Rand index, percent."),
        _metric(
            "cluster-count",
            "cluster_count:cluster_count",
            "Clusters in use, and their number minus the number of classes.",
        ),
        _metric(
            "chance-level",
            "chance_level:chance_level",
            "v2 accuracy expected from the same clusters shuffled over the samples, percent.",
        ),
    ]


def _metric(name: str, place: str, summary: str, *, tags: tuple[str, ...] = ()) -> MetricSpec:
    """A metric of this room: its function, and the descriptions of its scores next to it."""
    module, _, _ = place.partition(":")
    return MetricSpec(
        name=name,
        factory=f"gcdbench.metrics.{place}",
        scores=f"gcdbench.metrics.{module}:SCORES",
        summary=summary,
        tags=tags,
    )

"""How one run's scores are shown in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gcdbench.core.printable import one_line
from gcdbench.metrics.error_terms import BY_MAP, HEAD_TERMS
from gcdbench.runs.record import TRANSDUCTIVE

if TYPE_CHECKING:
    from gcdbench.runs.record import Record, Scores

SHOWN_ISSUES = 2
"""Accepted data issues that are named where a run is one thing among others; a folder may have thousands."""
SET_TITLES = {TRANSDUCTIVE: "D_u, the unlabelled images", "inductive": "the untouched test part"}


def score_lines(record: Record, scores: Scores, *, all_issues: bool = False) -> list[str]:
    """All/Old/New and the error decomposition of every evaluation set, in percent.

    all_issues: name every data issue that was accepted, not the first ones only.
    """
    from gcdbench.models.weight_notes import note_on_weights

    lines: list[str] = [] if scores.sets else ["Nobody knows the true classes of these images, so there are no scores."]
    for name, entry in sorted(scores.sets.items(), key=lambda item: item[0] != TRANSDUCTIVE):
        values = entry.scores
        lines.append(
            f"On {SET_TITLES.get(name, name)} (n = {entry.n}, w = {entry.old_share:.3f}, {record.protocol}, "
            f"K {record.k_policy}):"
        )
        lines.append(
            "  " + "   ".join(f"{key.capitalize()} {_percent(values.get(key))}" for key in ("all", "old", "new"))
        )
        lines += tie_lines(values)
        lines += error_lines(values)
        extras = [f"NMI {_percent(values.get('nmi'))}", f"ARI {_percent(values.get('ari'))}"]
        if "chance_all" in values:
            extras.append(f"chance level {_percent(values['chance_all'])}")
        if record.k_policy == "estimated" and "k_hat_error" in values:
            extras.append(f"K estimated as {values['k_hat']:.0f} ({values['k_hat_error']:+.0f})")
        lines.append("  " + "   ".join(extras))
    for metric, error in scores.metric_errors.items():
        lines.append(f"The metric '{metric}' failed: {error}")
    lines += issue_lines(record.accepted_data_issues, most=None if all_issues else SHOWN_ISSUES)
    if note := note_on_weights(record.weights_sha256):
        lines.append(note)
    return [one_line(line) for line in lines]


def issue_lines(issues: Sequence[str], *, most: int | None = SHOWN_ISSUES) -> list[str]:
    """Accepted data issues: how many, and the first ``most`` of them by name."""
    if not issues:
        return []
    left = 0 if most is None else len(issues) - most
    lines = [f"Accepted data issues: {len(issues)}", *(f"  {issue}" for issue in issues[:most])]
    return [*lines, f"  and {left} more; 'gcdbench show' lists all"] if left > 0 else lines


def error_lines(values: Mapping[str, float]) -> list[str]:
    """The four groups of wrong images: by the map, and next to it by the head where the clusters are anchored."""
    titles = [f"{score.title} ({score.meaning})" for score in BY_MAP]
    by_map = [_percent(values.get(score.key)) for score in BY_MAP]
    if not all(key in values for key in HEAD_TERMS):
        return [f"  {share}  {title}" for share, title in zip(by_map, titles, strict=True)]
    by_head = [_percent(values[key]) for key in HEAD_TERMS]
    return [
        f"  {'map':>5}  {'head':>5}  errors by the one-to-one map, and by the clusters tied to old classes:",
        *(f"  {a}  {b}  {title}" for a, b, title in zip(by_map, by_head, titles, strict=True)),
    ]


def tie_lines(values: Mapping[str, float]) -> list[str]:
    """A sentence where other maps are as good as the one that Old and New were counted under."""
    if not values.get("ties"):
        return []
    ranges = [
        f"{part.capitalize()} {values[f'{part}_low']:.1f} to {values[f'{part}_high']:.1f}"
        for part in ("old", "new")
        if values.get(f"{part}_low", 0.0) < values.get(f"{part}_high", 0.0)
    ]
    what = ", ".join(ranges) if ranges else "Old and New are the same under all of them"
    return [f"  Several maps are equally good: {what}."]


def _percent(value: float | None) -> str:
    return "    —" if value is None else f"{value:5.1f}"

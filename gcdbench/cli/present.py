"""How one run's scores are said in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TRANSDUCTIVE = "transductive"

ERRORS = (
    ("true_old_confusion", "true-old confusion (old taken for another old)"),
    ("false_new", "false-new (old taken for new)"),
    ("false_old", "false-old (new taken for old)"),
    ("true_new_confusion", "true-new confusion (new taken for another new)"),
)
SET_TITLES = {TRANSDUCTIVE: "D_u, the unlabelled images", "inductive": "the untouched test part"}


def score_lines(record: Mapping[str, Any], scores: Mapping[str, Any]) -> list[str]:
    """All/Old/New and the error decomposition of every evaluation set, in percent."""
    from gcdbench.models.weight_notes import note_on_weights

    lines: list[str] = []
    for name, entry in sorted(scores["sets"].items(), key=lambda item: item[0] != TRANSDUCTIVE):
        values = entry["scores"]
        lines.append(
            f"On {SET_TITLES.get(name, name)} (n = {entry['n']}, w = {entry['old_share']:.3f}, "
            f"{record['protocol']}, K {record['identity']['protocol']['k_policy']}):"
        )
        lines.append(
            "  " + "   ".join(f"{key.capitalize()} {_percent(values.get(key))}" for key in ("all", "old", "new"))
        )
        lines += [f"  {_percent(values.get(key))}  {title}" for key, title in ERRORS]
        extras = [f"NMI {_percent(values.get('nmi'))}", f"ARI {_percent(values.get('ari'))}"]
        if "chance_all" in values:
            extras.append(f"chance level {_percent(values['chance_all'])}")
        if record["identity"]["protocol"]["k_policy"] == "estimated" and "k_hat_error" in values:
            extras.append(f"K estimated as {values['k_hat']:.0f} ({values['k_hat_error']:+.0f})")
        lines.append("  " + "   ".join(extras))
    for metric, error in scores.get("metric_errors", {}).items():
        lines.append(f"The metric '{metric}' failed: {error}")
    for issue in record.get("accepted_data_issues", []):
        lines.append(f"Accepted data issue: {issue}")
    if note := note_on_weights(record["identity"].get("weights_sha256", "")):
        lines.append(note)
    return lines


def _percent(value: float | None) -> str:
    return "    —" if value is None else f"{value:5.1f}"

"""One card for each run: scores, errors, confusion matrix, provenance, and pictures where there are any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from gcdbench.core.errors import GCDBenchError
from gcdbench.core.files import read_json
from gcdbench.metrics.score import ScoreCatalogue
from gcdbench.reporting.report.plots import picture
from gcdbench.reporting.tables.records import CellRecord
from gcdbench.runs.directory import DONE, RunDirectory

SUMMARY_SCORES = ("all", "old", "new")
PICTURE_FOLDERS = ("attention", "explain")
MOST_PICTURES = 24


def card_anchor(record: CellRecord) -> str:
    """The anchor of a run's card."""
    return f"run-{escape(record.run_id)}"


def run_card(record: CellRecord, catalogue: ScoreCatalogue, pictures: Path | None = None) -> str:
    """The card of one run; ``pictures`` is a folder with a sub-folder for each run id."""
    scores = " / ".join(f"{record.scores[key]:.1f}" for key in SUMMARY_SCORES if key in record.scores)
    name = f"{record.method}:{record.variant}" if record.variant else record.method
    status = "" if record.status == DONE else f' <strong class="bad">{escape(record.status)}</strong>'
    title = f"{escape(name)} on {escape(record.dataset)}, seed {record.seed}"
    summary = f'{title} <span class="soft">{escape(record.preset)} {escape(record.run_id)}</span> {scores}{status}'
    try:
        body = _body(record, catalogue, pictures)
    except GCDBenchError as error:
        body = f'<p class="bad">{escape(error.message)}</p>'
    return f'<details class="card" id="{card_anchor(record)}"><summary>{summary}</summary><div>{body}</div></details>\n'


def _body(record: CellRecord, catalogue: ScoreCatalogue, pictures: Path | None) -> str:
    directory = RunDirectory(record.path)
    stored = directory.record()
    parts = []
    if record.problem:
        parts.append(f'<p class="bad">{escape(record.problem)}</p>')
    parts.append(_facts(stored, _optional(record.path / "env.json"), _optional(record.path / "imported.json")))
    if record.status == DONE:
        for name, scored in directory.scores().get("sets", {}).items():
            parts.append(_scores(name, scored, catalogue))
            parts.append(_confusion(name, scored, stored))
    parts.append(_pictures(record, pictures))
    config = record.path / "config.toml"
    if config.is_file():
        text = config.read_text(encoding="utf-8", errors="replace")
        parts.append(f"<details><summary>config.toml</summary><div><pre>{escape(text)}</pre></div></details>")
    if stored.get("traceback"):
        trace = escape(str(stored["traceback"]))
        parts.append(f"<details><summary>Traceback</summary><div><pre>{trace}</pre></div></details>")
    return "\n".join(filter(None, parts))


def _optional(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    value = read_json(path)
    return value if isinstance(value, dict) else {}


def _facts(stored: Mapping[str, Any], env: Mapping[str, Any], imported: Mapping[str, Any]) -> str:
    identity, git = stored.get("identity") or {}, env.get("git") or {}
    packages = env.get("packages") or {}
    times = stored.get("seconds") or {}
    facts = {
        "run": stored.get("run_id"),
        "protocol": f"{stored.get('protocol')}, K {(identity.get('protocol') or {}).get('k_policy', '?')}",
        "split sha256": identity.get("manifest_sha256"),
        "backbone": f"{stored.get('backbone')} at {stored.get('image_size')} px, views {stored.get('views')}",
        "weights sha256": identity.get("weights_sha256"),
        "method version": identity.get("method_version"),
        "time": ", ".join(f"{name} {seconds:.1f} s" for name, seconds in times.items()),
        "started": stored.get("started"),
        "machine": ", ".join(str(env[key]) for key in ("cpu", "gpu", "platform") if env.get(key)),
        "threads": env.get("threads"),
        "versions": ", ".join(f"{name} {version}" for name, version in packages.items() if version),
        "source": f"{git.get('commit', '')[:12]}{' (changed)' if git.get('dirty') else ''}" if git else "",
        "accepted data issues": "; ".join(map(str, stored.get("accepted_data_issues") or ())),
        "imported from archive": imported.get("archive_sha256"),
    }
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>"
        for name, value in facts.items()
        if value not in ("", None)
    )
    return f"<dl>{rows}</dl>"


def _scores(name: str, scored: Mapping[str, Any], catalogue: ScoreCatalogue) -> str:
    values: Mapping[str, float] = scored.get("scores") or {}
    head = "".join(f"<th scope='col'>{escape(catalogue[key].title)}</th>" for key in values)
    cells = "".join(f"<td>{value:.2f}</td>" for value in values.values())
    caption = f"<caption>{escape(name)}, n = {scored.get('n')}, w = {scored.get('old_share', 0):.3f}</caption>"
    table = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody><tr>{cells}</tr></tbody></table>"
    return f'<div class="scroll" tabindex="0" role="region" aria-label="Scores">{table}</div>'


def _confusion(name: str, scored: Mapping[str, Any], stored: Mapping[str, Any]) -> str:
    matrix: Sequence[Sequence[int]] = scored.get("confusion") or []
    if not matrix or len(matrix) > 30:
        return ""
    split, k_old = stored.get("split") or {}, int(scored.get("k_old", 0))
    names = [*split.get("old_classes", ()), *split.get("new_classes", ())] or [str(i) for i in range(len(matrix))]
    unmapped = any(row[-1] for row in matrix)
    width = len(matrix[0]) if unmapped else len(matrix[0]) - 1
    lines = []
    for i, row in enumerate(matrix):
        total = max(1, sum(row))
        cells = "".join(
            f'<td class="{"edge-right" if j == k_old - 1 else ""}"{_shade(row[j] / total)}>{row[j] or ""}</td>'
            for j in range(width)
        )
        edge = ' class="edge-bottom"' if i == k_old - 1 else ""
        lines.append(f'<tr{edge}><th scope="row" class="label">{escape(str(names[i]))}</th>{cells}</tr>')
    order = "rows are true classes, columns the same order; lines part old from new"
    caption = f"<caption>Confusion on {escape(name)}: {order}</caption>"
    table = f'<table class="confusion">{caption}<tbody>{"".join(lines)}</tbody></table>'
    return f'<div class="scroll" tabindex="0" role="region" aria-label="Confusion matrix">{table}</div>'


def _shade(share: float) -> str:
    return f' style="background:rgba(59,111,182,{0.75 * share:.2f})"' if share > 0.004 else ""


def _pictures(record: CellRecord, pictures: Path | None) -> str:
    folders = [record.path / name for name in PICTURE_FOLDERS]
    if pictures is not None:
        folders.append(pictures / record.run_id)
    found = [path for folder in folders if folder.is_dir() for path in sorted(folder.iterdir()) if path.is_file()]
    images = [html for path in found[:MOST_PICTURES] if (html := picture(path))]
    return f'<div class="maps">{"".join(images)}</div>' if images else ""

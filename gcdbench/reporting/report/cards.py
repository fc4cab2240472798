"""One card for each run: scores, errors, confusion matrix, provenance, and pictures where there are any."""

from __future__ import annotations

from html import escape
from pathlib import Path

from gcdbench.core.errors import GCDBenchError
from gcdbench.metrics.error_terms import HEAD_TERMS, TERMS
from gcdbench.metrics.score import ScoreCatalogue
from gcdbench.reporting.records import CellRecord
from gcdbench.reporting.report.plots import picture
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.numerics import NOT_RECORDED
from gcdbench.runs.reader import CONFIG, read_checked, read_origin
from gcdbench.runs.record import DONE, Record, SetScores

SUMMARY_SCORES = ("all", "old", "new")
PICTURE_FOLDERS = ("attention", "explain")
MOST_PICTURES = 24


def card_anchor(record: CellRecord) -> str:
    """The anchor of a run's card."""
    return f"run-{escape(record.run_id)}"


def run_card(record: CellRecord, catalogue: ScoreCatalogue, pictures: Path | None = None, settings: str = "") -> str:
    """The card of one run; ``pictures`` is a folder with a sub-folder for each run id.

    settings: what distinguishes the run from others of its name.
    """
    shown = [key for key in SUMMARY_SCORES if key in record.scores]
    scores = ", ".join(f"{catalogue[key].title} {catalogue[key].written(record.scores[key])}" for key in shown)
    name = f"{record.method}:{record.variant}" if record.variant else record.method
    status = "" if record.status == DONE else f' <strong class="bad">{escape(record.status)}</strong>'
    title = f"{escape(name)} on {escape(record.dataset)}, seed {record.seed}"
    told = " ".join(filter(None, (settings, record.preset, record.run_id)))
    summary = f'{title}{": " if scores else ""}{escape(scores)}{status} <span class="soft">{escape(told)}</span>'
    try:
        body = _body(record, catalogue, pictures)
    except GCDBenchError as error:
        body = f'<p class="bad">{escape(error.message)}</p>'
    return f'<details class="card" id="{card_anchor(record)}"><summary>{summary}</summary><div>{body}</div></details>\n'


def _body(record: CellRecord, catalogue: ScoreCatalogue, pictures: Path | None) -> str:
    stored = RunDirectory(record.path).record()
    parts = []
    if record.problem:
        parts.append(f'<p class="bad">{escape(record.problem)}</p>')
    sets = stored.scores.sets if stored.scores else {}
    parts += [_scores(name, scored, catalogue) for name, scored in sets.items()]
    parts.append(_facts(stored))
    parts += [_confusion(name, scored, stored) for name, scored in sets.items()]
    parts.append(_pictures(record, pictures))
    config = stored.home / CONFIG
    if config.is_file():
        text = read_checked(stored, CONFIG).decode(errors="replace")
        parts.append(f"<details><summary>config.toml</summary><div><pre>{escape(text)}</pre></div></details>")
    if stored.traceback:
        trace = escape(stored.traceback)
        parts.append(f"<details><summary>Traceback</summary><div><pre>{trace}</pre></div></details>")
    return "\n".join(filter(None, parts))


def _facts(stored: Record) -> str:
    env = stored.environment
    facts = {
        "run": stored.run_id,
        "protocol": f"{stored.protocol}, K {stored.k_policy}",
        "split sha256": stored.split_sha256,
        "backbone": f"{stored.backbone} at {stored.image_size} px, views {stored.views}",
        "weights sha256": stored.weights_sha256,
        "method version": stored.method_version,
        "time": ", ".join(f"{name} {seconds:.1f} s" for name, seconds in stored.seconds.items()),
        "started": stored.started,
        "machine": ", ".join(filter(None, (env.cpu, env.gpu, env.platform))),
        "threads": str(env.threads or ""),
        "numerics": str(env.numerics or NOT_RECORDED),
        "versions": ", ".join(f"{name} {version}" for name, version in env.packages.items() if version),
        "source": f"{env.commit[:12]}{' (changed)' if env.dirty else ''}",
        "accepted data issues": "; ".join(stored.accepted_data_issues),
        "imported from archive": read_origin(stored.home),
    }
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items() if value)
    return f"<dl>{rows}</dl>"


def _scores(name: str, scored: SetScores, catalogue: ScoreCatalogue) -> str:
    first = [key for key in (*SUMMARY_SCORES, *TERMS, *HEAD_TERMS) if key in scored.scores]
    values = {key: scored.scores[key] for key in dict.fromkeys([*first, *scored.scores])}
    head = "".join(f"<th scope='col'>{escape(catalogue[key].title)}</th>" for key in values)
    cells = "".join(f"<td>{value:.2f}</td>" for value in values.values())
    caption = f"<caption>{escape(name)}, n = {scored.n}, w = {scored.old_share:.3f}</caption>"
    table = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody><tr>{cells}</tr></tbody></table>"
    return f'<div class="scroll" tabindex="0" role="region" aria-label="Scores">{table}</div>'


def _confusion(name: str, scored: SetScores, stored: Record) -> str:
    matrix, k_old = scored.confusion, scored.k_old
    if not matrix or len(matrix) > 30:
        return ""
    names = stored.split.classes if len(stored.split.classes) == len(matrix) else range(len(matrix))
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
    order = "rows are true classes, columns are in the same order; lines separate old from new"
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

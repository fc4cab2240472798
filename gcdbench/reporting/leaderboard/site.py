"""The pages: an overview, one page per board, one card per run. No page holds a path, a file name or a picture."""

from __future__ import annotations

import base64
import hashlib
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from gcdbench import __version__
from gcdbench.core.config import flatten
from gcdbench.core.errors import ConfigError, StoreError
from gcdbench.core.printable import printable
from gcdbench.plugins.manager import PluginManager
from gcdbench.reporting.leaderboard.collect import Collected, Submitted
from gcdbench.reporting.leaderboard.standings import ENOUGH, HEADLINE, SHOWN, make_boards
from gcdbench.reporting.report.page import asset
from gcdbench.reporting.scores import score_catalogue
from gcdbench.runs.numerics import NOT_RECORDED

MARK = "leaderboard.txt"
"""Tells a folder that this module wrote, and may replace, from somebody's own."""
CARDS = "runs"


def write_site(collected: Collected, target: Path, manager: PluginManager, title: str) -> int:
    """Write the pages to ``target``, replacing an earlier leaderboard there; returns the number of pages."""
    if target.exists() and not (target / MARK).is_file() and (not target.is_dir() or any(target.iterdir())):
        raise ConfigError(
            f"'{target}' is not empty and holds no leaderboard.", hint="Name a new folder: -o site/ for example."
        )
    pages = render_site(collected, manager, title)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            for name, text in pages.items():
                (fresh / name).parent.mkdir(exist_ok=True)
                (fresh / name).write_text(text, encoding="utf-8")
            fresh.chmod(0o755)
            if target.exists():
                shutil.rmtree(target)
            fresh.rename(target)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    except OSError as error:
        raise StoreError(f"Cannot write to '{target}': {error.strerror or error}.") from error
    return sum(name.endswith(".html") for name in pages)


def render_site(collected: Collected, manager: PluginManager, title: str) -> dict[str, str]:
    """Every file by its name. The same archives give the same bytes."""
    catalogue = score_catalogue(manager)
    boards = make_boards(collected.runs, catalogue, manager)
    script = asset("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    engine = Environment(
        loader=PackageLoader("gcdbench.reporting.leaderboard"),
        autoescape=True,  # whatever an archive holds is text, never markup
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: printable(value) if isinstance(value, str) and type(value) is str else value,
    )
    engine.globals.update(
        site=title,
        version=__version__,
        style=asset("report.css"),
        script=script,
        policy=f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        catalogue=catalogue,
        headline=HEADLINE,
        enough=ENOUGH,
        duration=_duration,
    )
    pages = {MARK: "Written by gcdbench leaderboard, which may replace this folder.\n"}
    pages["index.html"] = engine.get_template("index.html").render(boards=boards, collected=collected, up="")
    for board in boards:
        keys = [key for key in SHOWN if any(key in row.medians for row in board.rows)]
        pages[f"{board.anchor}.html"] = engine.get_template("board.html").render(board=board, keys=keys, up="")
        for row in board.rows:
            for run in row.runs:
                pages[f"{CARDS}/{run.record.run_id}.html"] = engine.get_template("card.html").render(
                    board=board,
                    row=row,
                    run=run,
                    keys=_shown_first(run),
                    facts=_facts(run),
                    settings=_settings(run),
                    up="../",
                )
    return pages


def _shown_first(run: Submitted) -> list[str]:
    """Keys of a run's scores: those of the boards, then the others."""
    found = run.scores.scores
    return list(dict.fromkeys([*(key for key in SHOWN if key in found), *found]))


def _facts(run: Submitted) -> Mapping[str, str]:
    """What a card says of a run; chosen by name, so that nothing else of an archive reaches a page."""
    record, env = run.record, run.environment
    facts = {
        "method": f"{record.name}, version {record.method_version}",
        "reconstruction": "yes: written from a description, not from published code" if record.reconstruction else "",
        "protocol": f"{record.protocol}, K {record.k_policy}",
        "seed": str(record.seed),
        "split sha256": record.split_sha256,
        "backbone": f"{record.backbone} at {record.image_size} px, views {record.views}" if record.backbone else "",
        "weights sha256": record.weights_sha256,
        "preset": record.preset,
        "time": ", ".join(f"{name} {_duration(seconds)}" for name, seconds in record.seconds.items()),
        "processor": ", ".join(filter(None, (env.cpu, env.gpu))),
        "numerics": str(env.numerics or NOT_RECORDED),
        "versions": ", ".join(f"{name} {found}" for name, found in env.packages.items() if found),
        "metrics": ", ".join(f"{name} ({found})" for name, found in sorted(run.metrics.items())),
        "known data issues accepted": str(len(record.accepted_data_issues) or ""),
        "archive sha256": run.archive,
    }
    return {name: text for name, text in facts.items() if text}


def _settings(run: Submitted) -> Mapping[str, str]:
    """The method's and the engine's settings, all but paths, which no identity holds."""
    return {
        key: str(value)
        for key, value in flatten({"method": run.record.config, "training": run.record.training}).items()
    }


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"

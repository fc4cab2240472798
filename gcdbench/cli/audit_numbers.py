"""``gcdbench audit-numbers``: does a published table satisfy its own arithmetic?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from gcdbench.audit.rows import Audit


@click.command(name="audit-numbers")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--expect", multiple=True, metavar="DATASET=W", help="The old classes' share you know to be true there.")
@click.option("--protocol", metavar="NAME", help="The protocol the table says it follows, e.g. paper-stated.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@click.option("--strict", is_flag=True, help="Exit with 1 when there is any finding.")
def command(
    files: tuple[Path, ...], expect: tuple[str, ...], protocol: str | None, as_json: bool, strict: bool
) -> None:
    """Check published All/Old/New numbers (CSV) against All = w*Old + (1-w)*New.

    Each row's rounded numbers allow an interval of w, the old classes' share of the scored images. Rows that no w
    explains, rows that disagree with each other or with a known protocol, and error decompositions that contradict
    the printed Old and New are listed. Columns: method, dataset, and all, old, new or the four error terms.
    """
    import json

    from gcdbench.audit.protocols import expected_shares
    from gcdbench.audit.rows import audit
    from gcdbench.errors import UnknownName
    from gcdbench.protocol import PROTOCOLS
    from gcdbench.reported import read_reported

    if protocol is not None and protocol not in PROTOCOLS:
        raise UnknownName("protocol", protocol, PROTOCOLS)
    rows = [row for file in files for row in read_reported(file)]
    known: dict[str, dict[str, float]] = {name: expected_shares(name) for name in {row.dataset for row in rows}}
    for dataset, share in map(_parse_expectation, expect):
        known.setdefault(dataset, {})["given"] = share
    result = audit(rows, known, protocol or ("given" if expect else None))
    if as_json:
        click.echo(json.dumps(_plain(result), indent=2, ensure_ascii=False))
    else:
        _show(result)
    if strict and result.findings:
        raise SystemExit(1)


def _parse_expectation(text: str) -> tuple[str, float]:
    from gcdbench.config import parse_assignment
    from gcdbench.errors import ConfigError

    dataset, value = parse_assignment(text)
    try:
        share = float(value)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ConfigError(f"The share in '{text}' must be a number from 0 to 1.")
    return dataset, share


def _plain(result: Audit) -> dict[str, Any]:
    def pair(share: Any) -> list[float] | None:
        return None if share is None else [round(share.low, 6), round(share.high, 6)]

    return {
        "rows": [
            {
                "line": v.row.line,
                "table": v.row.table,
                "dataset": v.row.dataset,
                "method": v.row.method,
                "variant": v.row.variant,
                "w": pair(v.share),
                "status": v.status,
                "miss": round(v.miss, 4),
            }
            for v in result.rows
        ],
        "groups": [
            {
                "table": g.table,
                "dataset": g.dataset,
                "w": pair(g.consensus),
                "explains": list(g.explains),
                "rows": g.total,
                "protocols": [
                    {
                        "name": fit.protocol,
                        "w": round(fit.w, 6),
                        "explains": list(fit.explains),
                        "nearest": fit.nearest,
                        "nearest_miss": round(fit.nearest_miss, 4),
                    }
                    for fit in g.protocols
                ],
            }
            for g in result.groups
        ],
        "findings": list(result.findings),
    }


def _show(result: Audit) -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    rows = Table("table", "dataset", "method", "All", "Old", "New", "w allowed", "verdict", box=box.SIMPLE)
    colour = {"impossible": "red", "extreme": "yellow", "off": "yellow", "incomplete": "dim"}
    for v in result.rows:
        printed = [str(v.row.scores[key]) if key in v.row.scores else "—" for key in ("all", "old", "new")]
        verdict = v.status if v.miss < 0.005 else f"{v.status} by {v.miss:.2f}"
        style = colour.get(v.status, "")
        rows.add_row(
            v.row.table, v.row.dataset, escape(v.row.name), *printed, str(v.share) if v.share else "none", verdict,
            style=style,
        )  # fmt: skip
    console.print(rows)
    shares = Table("dataset", "protocol", "w", "rows explained", "nearest other row", box=box.SIMPLE)
    for g in result.groups:
        agreed = f"{len(g.explains)} of {g.total}: {', '.join(g.explains)}" if g.explains else "—"
        shares.add_row(g.name, "most rows agree", str(g.consensus) if g.consensus else "none", escape(agreed), "")
        for fit in g.protocols:
            near = f"{fit.nearest}, off by {fit.nearest_miss:.2f}" if fit.nearest else ""
            explained = f"{len(fit.explains)} of {g.total}: {', '.join(fit.explains)}" if fit.explains else "none"
            shares.add_row("", fit.protocol, f"{fit.w:.3f}", escape(explained), escape(near))
    if result.groups:
        console.print(shares)
    if not result.findings:
        console.print("No finding: every row fits, and the rows of each dataset share one w.")
        return
    console.print(f"{len(result.findings)} findings:")
    for sentence in result.findings:
        console.print(f"  - {escape(sentence)}", soft_wrap=True, highlight=False)

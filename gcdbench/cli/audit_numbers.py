"""``gcdbench audit-numbers``: does a published table satisfy its own arithmetic?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from gcdbench.reporting.published.rows import Audit, GroupVerdict, RowVerdict


@click.command(name="audit-numbers")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--expect", multiple=True, metavar="DATASET=W", help="The old classes' share you know to be true there.")
@click.option("--protocol", metavar="NAME", help="The protocol of the datasets' cards that the table says it follows.")
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

    from gcdbench.core.errors import ConfigError, UnknownName
    from gcdbench.datasets.protocols import require_known
    from gcdbench.plugins.manager import get_manager
    from gcdbench.reporting.published.protocols import expected_shares
    from gcdbench.reporting.published.reported import read_reported
    from gcdbench.reporting.published.rows import audit

    manager = get_manager()
    if protocol and expect:
        raise ConfigError("--protocol and --expect both say what w should be: give one of them.")
    rows = [row for file in files for row in read_reported(file)]
    datasets = {row.dataset for row in rows}
    require_known(protocol, sorted(datasets), manager, "these tables")
    known: dict[str, dict[str, float]] = {name: expected_shares(name, manager) for name in datasets}
    for dataset, share in map(_parse_expectation, expect):
        if dataset not in known:
            raise UnknownName("dataset in these tables", dataset, known)
        known[dataset]["given"] = share
    if protocol and not any(protocol in shares for shares in known.values()):
        raise ConfigError(
            f"What w is under '{protocol}' is known for none of {', '.join(sorted(known))}.",
            hint="Say it yourself with --expect DATASET=W.",
        )
    result = audit(rows, known, protocol or ("given" if expect else None))
    if as_json:
        click.echo(json.dumps(_plain(result), indent=2, ensure_ascii=False))
    else:
        _show(result)
    if strict and result.findings:
        raise SystemExit(1)


def _parse_expectation(text: str) -> tuple[str, float]:
    from gcdbench.core.config import parse_assignment
    from gcdbench.core.errors import ConfigError

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
    """Rows by table and dataset, what explains them, and the findings; lines are wrapped, never cut."""
    for g in dict.fromkeys((v.row.table, v.row.dataset) for v in result.rows):
        members = [v for v in result.rows if (v.row.table, v.row.dataset) == g]
        _show_rows(f"{g[1]} ({g[0]})" if g[0] else g[1], members)
        for group in result.groups:
            if (group.table, group.dataset) == g:
                _show_shares(group)
        click.echo()
    if not result.findings:
        click.echo("No finding: every row fits, and the rows of each dataset share one w.")
        return
    click.echo(f"{len(result.findings)} finding{'' if len(result.findings) == 1 else 's'}:")
    for sentence in result.findings:
        click.echo(f"  - {sentence}")


def _show_rows(title: str, members: list[RowVerdict]) -> None:
    colour = {"impossible": "red", "extreme": "yellow", "off": "yellow", "incomplete": "bright_black"}
    width = max(8, *(len(v.row.name) for v in members))
    click.secho(title, bold=True)
    click.echo(
        f"  {'':<{width}}  {'All':>5}  {'Old':>5}  {'New':>5}  {'w allowed':<14}  verdict (off by points of All)"
    )
    for v in members:
        printed = [str(v.row.scores[key]) if key in v.row.scores else "—" for key in ("all", "old", "new")]
        verdict = v.status if v.miss < 0.005 else f"{v.status} by {v.miss:.2f}"
        cells = "  ".join(f"{text:>5}" for text in printed)
        share = str(v.share) if v.share else "none"
        click.secho(f"  {v.row.name:<{width}}  {cells}  {share:<14}  {verdict}", fg=colour.get(v.status))


def _show_shares(group: GroupVerdict) -> None:
    agreed = ", ".join(group.explains)
    if group.consensus:
        click.echo(f"  w = {group.consensus} explains {len(group.explains)} of {group.total} rows: {agreed}")
    for fit in group.protocols:
        explained = f"{len(fit.explains)} of {group.total} rows" + (
            f": {', '.join(fit.explains)}" if fit.explains else ""
        )
        near = f"; nearest other: {fit.nearest}, off by {fit.nearest_miss:.2f}" if fit.nearest else ""
        click.echo(f"  {fit.protocol}: w = {fit.w:.3f} explains {explained}{near}")

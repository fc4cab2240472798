"""``gcdbench audit-numbers``: does a published table satisfy its own arithmetic?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gcdbench.cli.echo import say, say_styled

if TYPE_CHECKING:
    from gcdbench.reporting.published.counts import CountVerdict, Sizes
    from gcdbench.reporting.published.rows import Audit, GroupVerdict, RowVerdict


@click.command(name="audit-numbers")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--expect", multiple=True, metavar="DATASET=W", help="The share of old classes that you know to be true there."
)
@click.option(
    "--size",
    multiple=True,
    metavar="DATASET=OLD+NEW",
    help="The numbers of images in D_u that you know were scored there.",
)
@click.option("--protocol", metavar="NAME", help="The protocol of the datasets' cards that the table says it follows.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@click.option("--strict", is_flag=True, help="Exit with 1 when there is any finding.")
def command(
    files: tuple[Path, ...],
    expect: tuple[str, ...],
    size: tuple[str, ...],
    protocol: str | None,
    as_json: bool,
    strict: bool,
) -> None:
    """Check published All/Old/New numbers (CSV) against All = w*Old + (1-w)*New, and as counts of images.

    Each row's rounded numbers allow an interval of w, the old classes' share of the scored images. Rows that no w
    explains, rows that disagree with each other or with a known protocol, and error decompositions that contradict
    the printed Old and New are listed. Where the size of D_u is known, from a dataset's card or by --size, rows that
    no whole numbers of images give are listed too, with how many runs a mean would need.
    Columns: method, dataset, and all, old, new or the four error terms.
    """
    import json

    from gcdbench.core.errors import ConfigError, UnknownName
    from gcdbench.datasets.protocols import require_known
    from gcdbench.plugins.manager import get_manager
    from gcdbench.reporting.published.protocols import expected_shares, expected_sizes
    from gcdbench.reporting.published.reported import read_reported
    from gcdbench.reporting.published.rows import audit

    manager = get_manager()
    if protocol and (expect or size):
        raise ConfigError(
            f"--protocol and --{'expect' if expect else 'size'} both say what w should be: give one of them."
        )
    rows = [row for file in files for row in read_reported(file)]
    datasets = {row.dataset for row in rows}
    require_known(protocol, sorted(datasets), manager, "these tables")
    known: dict[str, dict[str, float]] = {name: expected_shares(name, manager) for name in datasets}
    sizes: dict[str, dict[str, tuple[Sizes, ...]]] = {name: expected_sizes(name, manager) for name in datasets}
    given_sizes = dict(map(_parse_size, size))
    given = [*map(_parse_expectation, expect), *((name, s.old / (s.old + s.new)) for name, s in given_sizes.items())]
    for dataset, share in given:
        if dataset not in known:
            raise UnknownName("dataset in these tables", dataset, known)
        if known[dataset].setdefault("given", share) != share:
            raise ConfigError(
                f"What is given for '{dataset}' contradicts itself: w = {known[dataset]['given']:.4f} and {share:.4f}."
            )
        if dataset in given_sizes:
            sizes[dataset]["given"] = (given_sizes[dataset],)
    if protocol and not any(protocol in shares for shares in known.values()):
        raise ConfigError(
            f"What w is under '{protocol}' is known for none of {', '.join(sorted(known))}.",
            hint="Say it yourself with --expect DATASET=W.",
        )
    result = audit(rows, known, protocol or ("given" if given else None), sizes)
    if as_json:
        say(json.dumps(_plain(result), indent=2, ensure_ascii=False))
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


def _parse_size(text: str) -> tuple[str, Sizes]:
    from gcdbench.core.config import parse_assignment
    from gcdbench.core.errors import ConfigError
    from gcdbench.reporting.published.counts import Sizes

    dataset, value = parse_assignment(text)
    old, _, new = value.partition("+")
    if not (old.strip().isdecimal() and new.strip().isdecimal()) or not int(old) + int(new):
        raise ConfigError(
            f"The size in '{text}' must be two numbers of images.", hint="Example: --size kvasir=1000+2000"
        )
    return dataset, Sizes(old=int(old), new=int(new))


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
        "counts": [
            {
                "line": c.row.line,
                "table": c.row.table,
                "dataset": c.row.dataset,
                "method": c.row.method,
                "variant": c.row.variant,
                "protocol": c.protocol,
                "old": c.sizes.old,
                "new": c.sizes.new,
                "w_fits": c.real,
                "single_run": c.single,
                "means_of_runs": [runs for runs in c.runs if runs > 1],
            }
            for c in result.counts
        ],
        "findings": list(result.findings),
    }


def _show(result: Audit) -> None:
    """Rows by table and dataset, what explains them, and the findings; lines are wrapped, never cut."""
    decomposed = [c.row for c in result.counts if "false_old" in c.row.scores]
    for g in dict.fromkeys((row.table, row.dataset) for row in (*(v.row for v in result.rows), *decomposed)):
        members = [v for v in result.rows if (v.row.table, v.row.dataset) == g]
        title = f"{g[1]} ({g[0]})" if g[0] else g[1]
        if members:
            _show_rows(title, members)
        else:
            say_styled(f"{title}: error terms", bold=True)
        for group in result.groups:
            if (group.table, group.dataset) == g:
                _show_shares(group)
        _show_counts([c for c in result.counts if (c.row.table, c.row.dataset) == g])
        say()
    if not result.findings:
        say("No finding: every row fits, and the rows of each dataset share one w.")
        return
    say(f"{len(result.findings)} finding{'' if len(result.findings) == 1 else 's'}:")
    for sentence in result.findings:
        say(f"  - {sentence}")


def _show_rows(title: str, members: list[RowVerdict]) -> None:
    colour = {"impossible": "red", "extreme": "yellow", "off": "yellow", "incomplete": "bright_black"}
    width = max(8, *(len(v.row.name) for v in members))
    say_styled(title, bold=True)
    say(f"  {'':<{width}}  {'All':>5}  {'Old':>5}  {'New':>5}  {'w allowed':<14}  verdict (off by points of All)")
    for v in members:
        printed = [str(v.row.scores[key]) if key in v.row.scores else "—" for key in ("all", "old", "new")]
        verdict = v.status if v.miss < 0.005 else f"{v.status} by {v.miss:.2f}"
        cells = "  ".join(f"{text:>5}" for text in printed)
        share = str(v.share) if v.share else "none"
        say_styled(f"  {v.row.name:<{width}}  {cells}  {share:<14}  {verdict}", fg=colour.get(v.status))


def _show_shares(group: GroupVerdict) -> None:
    agreed = ", ".join(group.explains)
    if group.consensus:
        say(f"  w = {group.consensus} explains {len(group.explains)} of {group.total} rows: {agreed}")
    for fit in group.protocols:
        explained = f"{len(fit.explains)} of {group.total} rows" + (
            f": {', '.join(fit.explains)}" if fit.explains else ""
        )
        near = f"; nearest other: {fit.nearest}, off by {fit.nearest_miss:.2f}" if fit.nearest else ""
        say(f"  {fit.protocol}: w = {fit.w:.3f} explains {explained}{near}")


def _show_counts(verdicts: list[CountVerdict]) -> None:
    """For each size of D_u: the rows that cannot be a single run there, although their w would do."""
    from gcdbench.reporting.published.counts import told_runs

    for size in dict.fromkeys(c.sizes for c in verdicts):
        here = [c for c in verdicts if c.sizes == size]
        protocols = ", ".join(dict.fromkeys(c.protocol for c in here))
        asked = {id(c.row): c for c in here if c.real}.values()
        odd = [f"{c.row.name} ({told_runs(c.runs)})" for c in asked if not c.single]
        if asked:
            fine = f"{len(asked)} row{'' if len(asked) == 1 else 's'} with this w, and none that cannot be one run"
            told = f"cannot be one run: {'; '.join(odd)}" if odd else fine
            say(f"  counts of {size} images ({protocols}): {told}")

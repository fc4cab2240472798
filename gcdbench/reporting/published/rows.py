"""Arithmetic that any published GCD table must satisfy, checked on its rounded numbers.

A row's rounded All, Old and New allow an interval of w, the old classes' share of the scored samples;
an empty interval is an impossible row, and the rows of one table on one dataset must share one w.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gcdbench.metrics.error_terms import TERMS
from gcdbench.reporting.published.counts import CountVerdict, Sizes, count_findings, judge_counts
from gcdbench.reporting.published.reported import ACCURACIES, ReportedRow, Rounded
from gcdbench.reporting.published.shares import SLACK, Share, allowed_share, consensus, miss, share_of_side

EXTREME = 0.05
"""A row that fits only shares this close to 0 or 1 says that hardly any old (or new) sample was scored."""


@dataclass(frozen=True, kw_only=True)
class RowVerdict:
    """What the numbers of one row allow.

    share: allowed w, None when no w explains the row; status: ``impossible``, ``extreme``, ``off``, ``fits``
    (relative to the w that most rows of its table share), or ``incomplete``; miss: points by which it misses that w.
    """

    row: ReportedRow
    share: Share | None
    status: str
    miss: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ProtocolFit:
    """A known protocol against the rows: which it explains, and the row that misses it by least."""

    protocol: str
    w: float
    explains: tuple[str, ...]
    nearest: str = ""
    nearest_miss: float = 0.0


@dataclass(frozen=True, kw_only=True)
class GroupVerdict:
    """The rows of one table on one dataset: the w that most of them share, and what known protocols explain."""

    table: str
    dataset: str
    consensus: Share | None
    explains: tuple[str, ...]
    total: int
    protocols: tuple[ProtocolFit, ...] = ()

    @property
    def name(self) -> str:
        """Dataset, and table where there are several."""
        return f"{self.dataset} ({self.table})" if self.table else self.dataset


@dataclass(frozen=True, kw_only=True)
class Audit:
    """All verdicts, and the findings as sentences; counts: rows against the D_u that protocols allow."""

    rows: tuple[RowVerdict, ...]
    groups: tuple[GroupVerdict, ...]
    findings: tuple[str, ...]
    counts: tuple[CountVerdict, ...] = ()


def audit(
    rows: Iterable[ReportedRow],
    expected: Mapping[str, Mapping[str, float]] | None = None,
    claimed: str | None = None,
    sizes: Mapping[str, Mapping[str, Sequence[Sizes]]] | None = None,
) -> Audit:
    """Check published rows.

    expected: dataset -> protocol name -> w, where known; sizes: the same with the D_u that it allows;
    claimed: the protocol that the table says it follows.
    """
    rows, expected = list(rows), expected or {}
    scored = [row for row in rows if row.has(ACCURACIES)]
    verdicts: list[RowVerdict] = [
        RowVerdict(row=row, share=None, status="incomplete")
        for row in rows
        if not row.has(ACCURACIES) and not row.has(TERMS)
    ]
    groups: list[GroupVerdict] = []
    findings: list[str] = []
    for table, dataset in dict.fromkeys((row.table, row.dataset) for row in scored):
        members = [row for row in scored if (row.table, row.dataset) == (table, dataset)]
        found, group, sentences = _audit_group(table, dataset, members, expected.get(dataset, {}))
        verdicts += found
        groups.append(group)
        findings += sentences + _against_claim(group, claimed)
    findings += _tables_that_disagree(groups)
    findings += _rows_printed_twice(scored)
    findings += [sentence for row in rows if row.has(TERMS) for sentence in _audit_errors(row, scored)]
    counts = judge_counts(rows, sizes or {})
    findings += count_findings(counts, claimed)
    findings += [
        f"line {v.row.line}: {v.row.name} on {v.row.dataset} lacks one of All, Old, New and cannot be checked"
        for v in verdicts
        if v.status == "incomplete"
    ]
    return Audit(rows=tuple(verdicts), groups=tuple(groups), findings=tuple(findings), counts=tuple(counts))


def _printed(row: ReportedRow) -> tuple[Rounded, Rounded, Rounded]:
    return row.scores["all"], row.scores["old"], row.scores["new"]


def _audit_group(
    table: str, dataset: str, rows: list[ReportedRow], expected: Mapping[str, float]
) -> tuple[list[RowVerdict], GroupVerdict, list[str]]:
    shares = [allowed_share(*_printed(row)) for row in rows]
    # A row that repeats another one's three numbers is not a second witness.
    distinct = {tuple(printed.value for printed in _printed(row)): s for row, s in zip(rows, shares, strict=True)}
    agreed, votes = consensus([share for share in distinct.values() if share])
    if votes < 2:
        agreed = None
    group = GroupVerdict(
        table=table,
        dataset=dataset,
        consensus=agreed,
        explains=tuple(r.name for r, s in zip(rows, shares, strict=True) if s and agreed and s.overlaps(agreed)),
        total=len(rows),
        protocols=tuple(_protocol_fit(name, w, rows) for name, w in expected.items()),
    )
    judged = [_judge(row, share, group) for row, share in zip(rows, shares, strict=True)]
    findings = [sentence for _, sentence in judged if sentence]
    if agreed and group.protocols and max(len(fit.explains) for fit in group.protocols) < 2:
        known = ", ".join(f"{fit.protocol} {fit.w:.3f}" for fit in group.protocols)
        findings.append(f"{group.name}: rows that agree share w = {agreed}, which no known protocol has ({known})")
    return [verdict for verdict, _ in judged], group, findings


def _against_claim(group: GroupVerdict, claimed: str | None) -> list[str]:
    """A sentence where the claimed w explains fewer rows than the w on which rows agree, or fewer than all."""
    best = len(group.explains) if group.consensus else group.total
    instead = f"; w = {group.consensus} explains {len(group.explains)}" if group.consensus else ""
    return [
        f"{group.name}: the claimed protocol {fit.protocol} has w = {fit.w:.3f}, which explains {len(fit.explains)} of "
        f"{group.total} rows{instead}"
        for fit in group.protocols
        if fit.protocol == claimed and len(fit.explains) < best
    ]


def _judge(row: ReportedRow, share: Share | None, group: GroupVerdict) -> tuple[RowVerdict, str]:
    """The verdict on one row and the sentence about it, empty when there is nothing to say."""
    verdict, agreed = RowVerdict(row=row, share=share, status="fits"), group.consensus
    a, o, n = (printed.value for printed in _printed(row))
    numbers = "{} on {}: All {}, Old {}, New {}".format(row.name, group.name, *_printed(row))
    if share is None:
        side = "above" if a > max(o, n) else "below"
        gap = min(miss(*_printed(row), 0.0), miss(*_printed(row), 1.0))
        return (
            replace(verdict, status="impossible", miss=gap),
            f"{numbers}: impossible, All lies {side} both Old and New whatever the share w",
        )
    gap = min(miss(*_printed(row), agreed.low), miss(*_printed(row), agreed.high)) if agreed else 0.0
    if share.high <= EXTREME or share.low >= 1 - EXTREME:
        side = "old" if share.high <= EXTREME else "new"
        return (
            replace(verdict, status="extreme", miss=gap),
            f"{numbers}: fits only w = {share}, as if hardly any {side} sample had been scored",
        )
    if agreed and not share.overlaps(agreed):
        return (
            replace(verdict, status="off", miss=gap),
            f"{numbers}: needs w = {share}, but {len(group.explains)} other rows there share w = {agreed}",
        )
    return verdict, ""


def _protocol_fit(name: str, w: float, rows: Sequence[ReportedRow]) -> ProtocolFit:
    misses = [(miss(*_printed(row), w), row.name) for row in rows]  # a name may stand there twice
    gap, nearest = min((found for found in misses if found[0] > SLACK), default=(0.0, ""))
    explains = tuple(row for found, row in misses if found <= SLACK)
    return ProtocolFit(protocol=name, w=w, explains=explains, nearest=nearest, nearest_miss=gap)


def _tables_that_disagree(groups: Sequence[GroupVerdict]) -> list[str]:
    findings = []
    for i, first in enumerate(groups):
        for second in groups[i + 1 :]:
            if first.dataset != second.dataset or not first.consensus or not second.consensus:
                continue
            if not first.consensus.overlaps(second.consensus):
                findings.append(
                    f"{first.dataset}: table '{first.table}' wants w = {first.consensus}, "
                    f"table '{second.table}' wants w = {second.consensus}"
                )
    return findings


def _rows_printed_twice(rows: Sequence[ReportedRow]) -> list[str]:
    seen: dict[tuple[str, str, str], ReportedRow] = {}
    findings = []
    for row in rows:
        first = seen.setdefault((row.method, row.variant, row.dataset), row)
        differing = [key for key in ACCURACIES if first.scores[key] != row.scores[key]]
        if differing:
            key = differing[0]
            findings.append(
                f"{row.name} on {row.dataset} is printed twice with different numbers: {key.title()} "
                f"{first.scores[key]} (line {first.line}) and {row.scores[key]} (line {row.line})"
            )
    return findings


def _audit_errors(row: ReportedRow, scored: Sequence[ReportedRow]) -> list[str]:
    """A decomposition against its own sum, and against the Old and New printed for the same method."""
    terms = [row.scores[key] for key in TERMS]
    twins = [r for r in scored if (r.method, r.variant, r.dataset) == (row.method, row.variant, row.dataset)]
    if not twins:
        return [f"{row.name} on {row.dataset}: the error decomposition has no row with All, Old, New to compare with"]
    all_, old, new = _printed(twins[0])
    findings = []
    total = all_.value + sum(term.value for term in terms)
    reach = all_.half + sum(term.half for term in terms)
    if abs(total - 100) > reach + SLACK:
        findings.append(f"{row.name} on {row.dataset}: All and the four error terms sum to {total:.2f}, not to 100")
    old_side, new_side = share_of_side(terms[:2], old), share_of_side(terms[2:], new)
    by_new = Share(low=1 - new_side.high, high=1 - new_side.low)
    identity = allowed_share(all_, old, new)
    if not old_side.overlaps(by_new):
        findings.append(
            f"{row.name} on {row.dataset}: the error decomposition contradicts the printed Old and New: "
            f"old-side errors want w = {old_side}, new-side errors w = {by_new}"
            + (f", All/Old/New w = {identity}" if identity else "")
        )
    elif identity and not (identity.overlaps(old_side) and identity.overlaps(by_new)):
        findings.append(
            f"{row.name} on {row.dataset}: the error decomposition wants w = {old_side} (old side) and {by_new} "
            f"(new side), All/Old/New want w = {identity}"
        )
    return findings

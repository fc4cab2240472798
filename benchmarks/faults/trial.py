"""One trial and what became of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

OK, LOST, SILENT, CRASH, HANG = "ok", "lost result", "silent change", "crash", "hang"
VERDICTS = (OK, LOST, SILENT, CRASH, HANG)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """section: what was done to the tool; case: exactly what; detail: what was seen."""

    section: str
    group: str
    case: str
    verdict: str
    detail: str = ""


def count(trials: Iterable[Trial]) -> dict[tuple[str, str], dict[str, int]]:
    """Trials by section, group and verdict."""
    table: dict[tuple[str, str], dict[str, int]] = {}
    for trial in trials:
        row = table.setdefault((trial.section, trial.group), dict.fromkeys(VERDICTS, 0))
        row[trial.verdict] += 1
    return table


def markdown(trials: Iterable[Trial]) -> str:
    """The counts as a table."""
    lines = ["| what was done | to | trials | " + " | ".join(VERDICTS[1:]) + " |", "|---|---|---:|" + "---:|" * 4]
    for (section, group), row in count(trials).items():
        cells = " | ".join(str(row[verdict]) for verdict in VERDICTS[1:])
        lines.append(f"| {section} | {group} | {sum(row.values())} | {cells} |")
    return "\n".join(lines) + "\n"


def plain(trial: Trial) -> dict[str, str]:
    """A trial for JSON."""
    return asdict(trial)

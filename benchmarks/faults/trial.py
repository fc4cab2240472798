"""One trial and what became of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

OK, LOST, SILENT, CRASH, HANG = "ok", "lost result", "silent change", "crash", "hang"
VERDICTS = (OK, LOST, SILENT, CRASH, HANG)
_FOLDERS = re.compile(r"(?<![\w.…/])/(?!proc/|dev/)(?:[^\s/'\":,]+/)+")
"""The folders of an absolute path; those of the system that a case is about are left."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """verdict: one of VERDICTS; detail: what was seen; met: whether the fault met its target (a kill may come late)."""

    verdict: str
    detail: str = ""
    met: bool = True


@dataclass(frozen=True, kw_only=True)
class Case:
    """Something to try. ``run`` gets an empty folder of its own and may be called in any process, in any order."""

    section: str
    group: str
    name: str
    run: Callable[[Path], Outcome]

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from the others, the same in every campaign."""
        return self.section, self.group, self.name


@dataclass(frozen=True, kw_only=True)
class Trial:
    """section: what was done to the tool; case: exactly what; detail: what was seen."""

    section: str
    group: str
    case: str
    verdict: str
    detail: str = ""
    met: bool = True
    seconds: float = 0.0

    @property
    def key(self) -> tuple[str, str, str]:
        """The key of its case."""
        return self.section, self.group, self.case


def without_places(detail: str) -> str:
    """``detail`` without the folders of this machine; a message may have been cut in the middle of a path."""
    return _FOLDERS.sub("…/", detail)


def count(trials: Iterable[Trial]) -> dict[tuple[str, str], dict[str, int]]:
    """Trials that met their target by section, group and verdict."""
    table: dict[tuple[str, str], dict[str, int]] = {}
    for trial in trials:
        row = table.setdefault((trial.section, trial.group), dict.fromkeys(VERDICTS, 0))
        row[trial.verdict] += trial.met or trial.verdict != OK
    return table


def markdown(trials: Iterable[Trial]) -> str:
    """The counts as a table, with a sum for each section."""
    lines = ["| what was done | to | trials | " + " | ".join(VERDICTS[1:]) + " |", "|---|---|---:|" + "---:|" * 4]
    table = count(trials)
    for section in dict.fromkeys(section for section, _ in table):
        groups = {group: row for (place, group), row in table.items() if place == section}
        total = {verdict: sum(row[verdict] for row in groups.values()) for verdict in VERDICTS}
        for group, row in groups.items():
            lines.append(_line(section, group, row))
        lines.append(_line(f"**{section}**", "**all of these**", total))
    return "\n".join(lines) + "\n"


def _line(section: str, group: str, row: dict[str, int]) -> str:
    cells = " | ".join(str(row[verdict]) for verdict in VERDICTS[1:])
    return f"| {section} | {group} | {sum(row.values())} | {cells} |"


def plain(trial: Trial) -> dict[str, str | bool | float]:
    """A trial for JSON."""
    return asdict(trial)

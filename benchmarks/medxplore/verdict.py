"""The confirmatory comparison: apply the rule that was committed before the runs to the stored ones.

python -m benchmarks.medxplore.verdict
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.medxplore.groups import PRESET
from benchmarks.medxplore.outcomes import (
    BETTER,
    BETTER_IN_ONE,
    MIXED,
    PRIMARY,
    UNDECIDED,
    WORSE,
    WORSE_IN_ONE,
    Decision,
    decide,
    overall,
)
from benchmarks.medxplore.places import RUNS
from benchmarks.medxplore.seed_tables import STUDY, read_rows
from gcdbench.api import CellRecord, cell_records, get_manager, load_runs, load_suite

SUITE = "confirmation"
REFERENCE = "simgcd"
TITLES = {"all": "All", "false_old": "false-old"}


ANSWERS = {
    BETTER: "Yes.",
    BETTER_IN_ONE: "In one of two respects; the other is undecided.",
    MIXED: "In one of two respects; in the other it is worse.",
    UNDECIDED: "It is not shown to.",
    WORSE_IN_ONE: "No.",
    WORSE: "No.",
}
"""Does the method beat the reference? By the verdict's words."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A row of the comparison against SimGCD: its title, and every primary outcome over the splits that are there."""

    title: str
    decisions: Mapping[str, Decision]
    planned: int

    @property
    def verdict(self) -> str:
        """In words."""
        return overall(self.decisions, self.planned)

    @property
    def complete(self) -> bool:
        """Whether every planned split is there."""
        return self.verdict in ANSWERS

    @property
    def answer(self) -> str:
        """Does it beat SimGCD?"""
        return ANSWERS[self.verdict]


def findings(records: Sequence[CellRecord]) -> dict[str, Finding]:
    """Each row of the suite but SimGCD's."""
    suite = load_suite(f"{STUDY}/{SUITE}", get_manager())
    planned = len(suite.preset(PRESET).seeds)
    rows = read_rows(SUITE, PRESET, "kvasir", None, records)
    return {
        key: Finding(title=title, decisions=decide(rows.values[key], rows.values[REFERENCE]), planned=planned)
        for key, title in rows.titles.items()
        if key != REFERENCE
    }


def verdict_lines(records: Sequence[CellRecord]) -> list[str]:
    """One sentence for each row against SimGCD, and one line per primary outcome."""
    lines = []
    for finding in findings(records).values():
        lines.append(f"{finding.title} against SimGCD: {finding.verdict}.")
        lines += [outcome_line(finding.decisions[outcome]) for outcome in PRIMARY if outcome in finding.decisions]
    return lines


def outcome_line(decision: Decision) -> str:
    """The differences in numbers."""
    return (
        f"  {TITLES[decision.outcome]}: median {decision.median:+.2f}, above in {decision.above} of {decision.n} "
        f"splits; p = {decision.flip:.2g} (sign-flip) and {decision.sign:.2g} (sign test), Holm over both outcomes"
    )


def main() -> None:
    """Write the verdict to the terminal."""
    sys.stdout.write("\n".join(verdict_lines(cell_records(load_runs(RUNS)))) + "\n")


if __name__ == "__main__":
    main()

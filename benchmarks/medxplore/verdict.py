"""The confirmatory comparison: apply the rule that was committed before the runs to the stored ones.

python -m benchmarks.medxplore.verdict
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from benchmarks.medxplore.groups import PRESET
from benchmarks.medxplore.outcomes import PRIMARY, Decision, decide, overall
from benchmarks.medxplore.places import RUNS
from benchmarks.medxplore.seed_tables import STUDY, read_rows
from gcdbench.api import CellRecord, cell_records, get_manager, load_runs, load_suite

SUITE = "confirmation"
REFERENCE = "simgcd"
TITLES = {"all": "All", "false_old": "false-old"}


def verdict_lines(records: Sequence[CellRecord]) -> list[str]:
    """One line per primary outcome and one sentence, for each row against SimGCD."""
    suite = load_suite(f"{STUDY}/{SUITE}", get_manager())
    planned = suite.preset(PRESET).seeds
    rows = read_rows(SUITE, PRESET, "kvasir", None, records)
    lines = []
    for key, title in rows.titles.items():
        if key == REFERENCE:
            continue
        found = decide(rows.values[key], rows.values[REFERENCE])
        lines.append(f"{title} against {rows.titles[REFERENCE]}: {overall(found, len(planned))}.")
        lines += [outcome_line(found[outcome]) for outcome in PRIMARY if outcome in found]
    return lines


def outcome_line(decision: Decision) -> str:
    """The differences in numbers."""
    above = sum(value > 0 for value in decision.differences)
    return (
        f"  {TITLES[decision.outcome]}: median {decision.median:+.2f}, above in {above} of {len(decision.differences)} "
        f"splits; p = {decision.flip:.2g} (sign-flip) and {decision.sign:.2g} (sign test), Holm over both outcomes"
    )


def main() -> None:
    """Write the verdict to the terminal."""
    sys.stdout.write("\n".join(verdict_lines(cell_records(load_runs(RUNS)))) + "\n")


if __name__ == "__main__":
    main()

"""Try to break a version of gcdbench by its command line, and count what broke.

    python -m benchmarks.faults [--tool "python -m gcdbench"] [--only killed,damaged,…] [--minutes 90] [--output FILE]

Without ``--output`` the counts go into docs/reliability.md, between its markers, and the trials beside this file.
Needs about an hour on two quiet cores. ``--share 0.02`` shows in a few minutes that everything works.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from benchmarks.faults.damage import cache_trials, checkpoint_trials, index_trials, store_trials
from benchmarks.faults.disk import disk_trials
from benchmarks.faults.hostile import archive_trials, file_trials
from benchmarks.faults.kills import force_trials, kill_trials, victims
from benchmarks.faults.trial import OK, Trial, markdown, plain
from benchmarks.faults.world import make_worlds

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reliability.md"
TRIALS = Path(__file__).with_name("trials.json")
SECTIONS = ("killed", "damaged", "crafted", "no-room")
BEGIN, END = "<!-- faults: begin -->", "<!-- faults: end -->"


def sections(command: list[str], scratch: Path, share: float) -> dict[str, Iterator[Trial]]:
    """Every section's trials, made one by one when asked for."""
    empty, prepared, finished = make_worlds(command, scratch)
    archive = scratch / "all.zip"
    finished.call("export", str(archive), "--weights")
    everybody = victims(empty, prepared, finished, archive, share)
    [forced] = [victim for victim in everybody if victim.name == "run --force"]
    return {
        "killed": chain(*(kill_trials(victim, scratch) for victim in everybody), force_trials(forced, scratch)),
        "damaged": chain(
            store_trials(finished, scratch),
            index_trials(finished, scratch),
            checkpoint_trials(prepared, scratch),
            cache_trials(finished, scratch),
        ),
        "crafted": chain(archive_trials(empty, finished, scratch), file_trials(empty, scratch)),
        "no-room": disk_trials(prepared, scratch),
    }


def write_page(trials: list[Trial]) -> None:
    """Put the counts between the markers of docs/reliability.md."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{markdown(trials)}{END}{after}")


def main() -> int:
    """Run the campaign; the exit code is 1 when anything broke."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__.splitlines()[0])
    parser.add_argument("--tool", default=f"{shlex.quote(sys.executable)} -m gcdbench", help="command to drive")
    parser.add_argument("--only", default=",".join(SECTIONS), help=f"sections, separated by commas: {SECTIONS}")
    parser.add_argument("--minutes", type=float, default=90.0, help="stop after this time")
    parser.add_argument("--share", type=float, default=1.0, help="share of the kills")
    parser.add_argument("--output", type=Path, help="file for the trials; the page is then left alone")
    options = parser.parse_args()
    wanted = options.only.split(",")
    if unknown := set(wanted) - set(SECTIONS):
        parser.error(f"no such section: {', '.join(sorted(unknown))}")
    trials: list[Trial] = []
    deadline = time.monotonic() + 60 * options.minutes
    complete = True
    with tempfile.TemporaryDirectory(prefix="gcdbench-faults-") as scratch:
        for name, made in sections(shlex.split(options.tool), Path(scratch), options.share).items():
            for trial in made if name in wanted else ():
                trials.append(trial)
                if trial.verdict != OK:
                    print(f"{trial.verdict}: {trial.section} {trial.group}, {trial.case}. {trial.detail}", flush=True)
                if time.monotonic() > deadline:
                    print(f"stopped after {options.minutes:g} minutes, in section '{name}'")
                    complete = False
                    break
    print(markdown(trials))
    target = options.output or TRIALS
    target.write_text(json.dumps([plain(trial) for trial in trials], indent=1) + "\n")
    if options.output is None and complete and set(wanted) == set(SECTIONS) and options.share >= 1:
        write_page(trials)
    return int(any(trial.verdict != OK for trial in trials))


if __name__ == "__main__":
    sys.exit(main())

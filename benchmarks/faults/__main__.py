"""Try to break a version of gcdbench by its command line, and count what broke.

    python -m benchmarks.faults [--only killed,damaged,…] [--minutes 90] [--jobs 2] [--log FILE] [--output FILE]

Without ``--output`` the counts go into docs/reliability.md, between its markers, and the trials next to this file.
``--log FILE`` keeps every trial as soon as it is over; a second campaign with the same file tries only what is not
in it. ``--share 0.05`` shows in a few minutes that everything works. By default the commands of the gcdbench that this
Python imports are started in forks of a process with the third-party libraries loaded; ``--tool "gcdbench"`` starts
a new process for each, of whatever version.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from benchmarks.faults import operations
from benchmarks.faults.campaign import carry_out, read_trials
from benchmarks.faults.damage import cache_cases, checkpoint_cases, index_cases, store_cases
from benchmarks.faults.disk import disk_cases
from benchmarks.faults.hostile import hostile_archives, hostile_files
from benchmarks.faults.kills import kill_cases, victims
from benchmarks.faults.launch import load_libraries
from benchmarks.faults.trial import OK, Case, Trial, markdown, plain
from benchmarks.faults.world import make_worlds

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reliability.md"
TRIALS = Path(__file__).with_name("trials.json")
SECTIONS = ("killed", "damaged", "crafted", "no-room")
BEGIN, END = "<!-- faults: begin -->", "<!-- faults: end -->"


def all_cases(
    command: list[str] | None, scratch: Path, share: float, wanted: list[str], killed: list[str]
) -> Iterator[Case]:
    """The cases of the wanted sections; what they are compared with is made here. ``killed``: commands, [] for all."""
    empty, prepared, finished = make_worlds(command, scratch)
    archive = scratch / "all.zip"
    finished.call("export", str(archive), "--method", "ss-kmeans", "--weights")
    if "crafted" in wanted:
        yield from chain(hostile_archives(empty, finished), hostile_files(empty, scratch))
    if "damaged" in wanted:
        yield from store_cases(finished)
        yield from index_cases(finished)
        yield from checkpoint_cases(prepared, scratch)
        yield from cache_cases(finished, scratch)
    if "no-room" in wanted:
        yield from disk_cases(prepared, finished, archive, scratch)
    if "killed" in wanted:
        for victim in victims(empty, prepared, finished, share):
            if not killed or victim.name in killed:
                yield from kill_cases(victim, scratch)


def write_page(trials: list[Trial], version: str) -> None:
    """Put the counts between the markers of docs/reliability.md."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    late = sum(not trial.met for trial in trials)
    system = f"{platform.system()}, Python {platform.python_version()}"
    lines = [
        f"{len(trials) - late} trials of gcdbench {version} on {system}.",
        f"{late} more came too late to meet a running command, or met nothing to damage; they are not counted.\n",
    ]
    PAGE.write_text(f"{before}{BEGIN}\n" + " ".join(lines) + "\n" + markdown(trials) + f"{END}{after}")


def preload() -> None:
    """Start this program again with the library that counts changes of files, where it can be built."""
    if operations.preloaded() or "FAULTS_FOLDER" in os.environ:
        return
    folder = Path(tempfile.mkdtemp(prefix="gcdbench-faults-library-"))
    library = operations.build(folder)
    environment = os.environ | {"FAULTS_FOLDER": str(folder), "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    if library:
        environment["LD_PRELOAD"] = str(library)
    os.execve(sys.executable, [sys.executable, "-m", "benchmarks.faults", *sys.argv[1:]], environment)


def main() -> int:
    """Run the campaign; the exit code is 1 when anything broke."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__.splitlines()[0])
    parser.add_argument("--tool", help="command to drive (default: the gcdbench of this Python)")
    parser.add_argument("--only", default=",".join(SECTIONS), help=f"sections, separated by commas: {SECTIONS}")
    parser.add_argument("--victims", default="", help="commands to be killed, separated by commas (default: all)")
    parser.add_argument("--minutes", type=float, default=90.0, help="stop after this time")
    parser.add_argument("--share", type=float, default=1.0, help="share of the kills")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="trials at a time")
    parser.add_argument("--log", type=Path, help="file of the trials that are over, one in a line")
    parser.add_argument("--output", type=Path, help="file for the trials; the page is then left alone")
    options = parser.parse_args()
    wanted = options.only.split(",")
    if unknown := set(wanted) - set(SECTIONS):
        parser.error(f"no such section: {', '.join(sorted(unknown))}")
    preload()
    command = shlex.split(options.tool) if options.tool else None
    if command is None:
        load_libraries()
    deadline = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory(prefix="gcdbench-faults-", ignore_cleanup_errors=True) as name:
        scratch = Path(name)
        log = (options.log or scratch / "log.jsonl").resolve()
        known = read_trials(log)
        killed = options.victims.split(",") if options.victims else []
        cases = list(all_cases(command, scratch, options.share, wanted, killed))
        carry_out([case for case in cases if case.key not in known], scratch, log, jobs=options.jobs, deadline=deadline)
        found = read_trials(log)
    trials = [found[case.key] for case in cases if case.key in found]
    print(markdown(trials))
    if missing := len(cases) - len(trials):
        print(f"stopped after {options.minutes:g} minutes: {missing} of {len(cases)} cases were not tried")
    target = options.output or TRIALS
    target.write_text(json.dumps([plain(trial) for trial in trials], indent=1) + "\n")
    if options.output is None and not missing and set(wanted) == set(SECTIONS) and options.share >= 1 and not killed:
        from gcdbench import __version__

        write_page(trials, __version__)
    return int(bool(missing) or any(trial.verdict != OK for trial in trials))


if __name__ == "__main__":
    sys.exit(main())

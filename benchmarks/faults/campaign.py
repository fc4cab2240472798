"""Carries out cases in several processes; trials are kept, so that a campaign can be stopped and continued."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import sys
import time
import traceback
from collections.abc import Sequence
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from benchmarks.faults.trial import CRASH, OK, Case, Outcome, Trial, plain, without_places


def read_trials(file: Path) -> dict[tuple[str, str, str], Trial]:
    """What was tried before, by key; the last line of a killed campaign may be half a line."""
    found = {}
    for line in file.read_text().splitlines() if file.is_file() else ():
        try:
            trial = Trial(**json.loads(line))
        except (ValueError, TypeError):
            continue
        found[trial.key] = trial
    return found


def carry_out(cases: Sequence[Case], scratch: Path, log: Path, *, jobs: int, deadline: float) -> None:
    """Try each case once; every trial is a line of ``log``. ``deadline``: a value of ``time.monotonic``."""
    context = multiprocessing.get_context("fork")
    following = context.Value("l", 0)
    workers = [
        context.Process(target=_work, args=(cases, following, scratch / f"worker-{number}", log, deadline))
        for number in range(jobs)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def _work(cases: Sequence[Case], following: Synchronized[int], folder: Path, log: Path, deadline: float) -> None:
    while time.monotonic() < deadline:
        with following.get_lock():
            number = following.value
            following.value += 1
        if number >= len(cases):
            return
        trial = _try(cases[number], folder)
        with log.open("a") as file:  # one write of one line: lines of several processes do not mix
            file.write(json.dumps(plain(trial)) + "\n")
        if trial.verdict != OK:
            print(f"{trial.verdict}: {trial.section} {trial.group}, {trial.case}. {trial.detail}", flush=True)


def _try(case: Case, folder: Path) -> Trial:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    began = time.monotonic()
    try:
        outcome = case.run(folder)
    except Exception:  # a fault of the campaign itself is shown like one of the tool
        outcome = Outcome(verdict=CRASH, detail=traceback.format_exc()[-600:])
    finally:
        sys.stdout.flush()
    shutil.rmtree(folder, ignore_errors=True)
    return Trial(
        section=case.section,
        group=case.group,
        case=case.name,
        verdict=outcome.verdict,
        detail=without_places(outcome.detail),
        met=outcome.met,
        seconds=round(time.monotonic() - began, 2),
    )

"""SIGKILL at moments spread over a command's life: what was finished stays, and the same command ends the work.

Half of the moments are spread over the changes that the command makes in the file system, the other half over time. A
command that is over in a moment would mostly be missed by time: its second half is spread over its changes and writes.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.faults.operations import Counter, preloaded
from benchmarks.faults.tool import PATIENCE, Answer, Tool, left_behind, lost
from benchmarks.faults.trial import CRASH, HANG, LOST, OK, SILENT, Case, Outcome
from benchmarks.faults.world import KMEANS, PREPARE, SIMGCD, suite_file

QUICK = 2.0
"""Seconds from the first change to the end, below which a moment in time mostly comes too late."""


@dataclass(frozen=True, kw_only=True)
class Victim:
    """A command to be killed: its arguments, what it starts from, and how often."""

    name: str
    arguments: tuple[str, ...]
    start: Tool
    kills: int
    look: tuple[str, ...] = ("status", "--json")
    """The command that looks at what is there right after the kill."""
    word: str = ""
    """What that command must say."""
    check: Callable[[Tool], str] = lambda tool: ""
    """Says what is wrong after the command was repeated to its end, or nothing."""


@dataclass(frozen=True, kw_only=True)
class Undisturbed:
    """results, scores: at the end; first: when the first file was written; whole: seconds; changes: of files;
    writes: changes of files and calls that write into one."""

    results: dict[str, str]
    scores: dict[str, Any]
    first: float
    whole: float
    changes: int
    writes: int


def victims(empty: Tool, prepared: Tool, finished: Tool, share: float) -> list[Victim]:
    """Every verb that writes. ``share`` scales the number of kills."""
    what = ("--method", "ss-kmeans", "--weights")
    many = with_more_runs(finished, finished.home.with_name("many"))
    many.call("export", archive := str(finished.home.with_name("many.zip")), *what)
    out = "out.zip"

    def times(wanted: int) -> int:
        return max(2, round(wanted * share))

    suite = suite_file(prepared.home)
    expected = finished.results()
    misscored = with_other_scores(many, finished.home.with_name("misscored"))

    def clustered(tool: Tool) -> str:
        tool.call(*KMEANS)
        found = tool.results()
        return "" if found and lost(found, expected) == [] else "other predictions from what was prepared"

    def whole(tool: Tool) -> str:
        return "" if tool.call("import", out, "--check").code == 0 else "the archive is not whole"

    training = (*SIMGCD, "--force")
    return [
        Victim(name="prepare", arguments=PREPARE, start=empty, kills=times(24), check=clustered),
        Victim(name="run (clustering)", arguments=KMEANS, start=prepared, kills=times(28)),
        Victim(name="run (training)", arguments=SIMGCD, start=prepared, kills=times(44)),
        Victim(name="run --force", arguments=training, start=finished, kills=times(52), look=SIMGCD, word="Reused"),
        Victim(
            name="sweep", arguments=("sweep", suite, "--preset", "smoke", "-j", "2"), start=prepared, kills=times(26)
        ),
        Victim(name="import", arguments=("import", archive), start=prepared, kills=times(28)),
        Victim(name="export", arguments=("export", out, *what), start=many, kills=times(28), check=whole),
        Victim(name="rescore", arguments=("rescore",), start=misscored, kills=times(28)),
    ]


def with_more_runs(finished: Tool, home: Path) -> Tool:
    """A store of some more runs, so that importing, exporting and scoring them takes a while."""
    tool = finished.copy(home)
    for seed in range(2, 6):
        tool.call(*KMEANS, "--seed", str(seed))
    return tool


def with_other_scores(finished: Tool, home: Path) -> Tool:
    """A store in which every run's scores say something else, so that scoring again has something to write."""
    tool = finished.copy(home)
    for file in tool.runs.glob("*/*/*/scores.json"):
        content = json.loads(file.read_text())
        for entry in content["sets"].values():
            entry["scores"]["nmi"] = 12.34
        file.write_text(json.dumps(content))
    return tool


def undisturbed(victim: Victim, scratch: Path) -> Undisturbed | str:
    """What happens without a kill, or why it does not work."""
    tool = victim.start.copy(scratch / "reference")
    counter = Counter(scratch / "reference-count", tool.home)
    began = time.monotonic()
    process = tool.start(*victim.arguments, counter=counter)
    first = 0.0
    while process.poll() is None:
        if not first and counter.count() > 0:
            first = time.monotonic() - began
        time.sleep(0.005)
    whole = time.monotonic() - began
    _, err = process.output()
    if process.returncode != 0:
        return err.strip()
    results, scores, changes, writes = tool.results(), tool.scores(), counter.count(), 0
    if preloaded() and whole - first < QUICK:
        tool = victim.start.copy(scratch / "reference")
        counter = Counter(scratch / "reference-count", tool.home, writes=True)
        process = tool.start(*victim.arguments, counter=counter)
        process.wait(PATIENCE)
        process.output()
        writes = counter.count()
    return Undisturbed(results=results, scores=scores, first=first, whole=whole, changes=changes, writes=writes)


def kill_cases(victim: Victim, scratch: Path) -> Iterator[Case]:
    """Kill a command at ``victim.kills`` moments, each time from the same start."""
    expected = undisturbed(victim, scratch)
    if isinstance(expected, str):
        reason = expected
        yield _case(victim, "undisturbed", lambda folder: Outcome(verdict=CRASH, detail=reason))
        return
    counted = min(victim.kills // 2, expected.changes) if preloaded() else 0
    for number, last in enumerate(_spread(counted, expected.changes), 1):
        name = f"before change {number} of {counted} among its changes of files"
        yield _case(victim, name, partial(_kill, victim, expected, last=last, moment=None))
    written = min(victim.kills - counted, expected.writes)
    for number, last in enumerate(_spread(written, expected.writes), 1):
        name = f"before call {number} of {written} among its changes and writes"
        yield _case(victim, name, partial(_kill, victim, expected, last=last, moment=None, writes=True))
    for number in range(timed := victim.kills - counted - written):
        begin = 0.0 if preloaded() else expected.first  # counted from the first change, where that can be seen
        moment = begin + (expected.whole - expected.first) * (number + 0.5) / timed
        yield _case(victim, f"moment {number + 1} of {timed}", partial(_kill, victim, expected, last=0, moment=moment))


def _spread(wanted: int, calls: int) -> list[int]:
    """``wanted`` numbers from the first to the last of ``calls``, evenly."""
    return [1 + round((calls - 1) * number / max(1, wanted - 1)) for number in range(wanted)]


def _case(victim: Victim, name: str, run: Callable[[Path], Outcome]) -> Case:
    return Case(section="killed", group=victim.name, name=name, run=run)


def _kill(
    victim: Victim, expected: Undisturbed, folder: Path, *, last: int, moment: float | None, writes: bool = False
) -> Outcome:
    for _ in range(4):
        tool = victim.start.copy(folder / "home")
        before = tool.results()
        counter = Counter(folder / "count", tool.home, last, writes=writes)
        process = tool.start(*victim.arguments, counter=counter)
        if moment is None:
            process.wait(600.0)
            break
        while preloaded() and process.poll() is None and not counter.count():
            time.sleep(0.002)
        process.wait(moment)
        process.kill()
        if process.returncode == -signal.SIGKILL:
            break
        process.output()
        moment *= 0.5  # the machine has become faster: it had ended already
    met = process.returncode == -signal.SIGKILL
    behind = left_behind(tool)
    process.output()
    gone_at_once = lost(before, tool.results()) if victim.word else []
    called_failed = tool.failed()
    look = tool.call(*victim.look)
    again = tool.call(*victim.arguments)
    where = f"{'call' if writes else 'change'} {last}" if moment is None else f"{moment:.2f} s after its first change"

    def outcome(verdict: str, detail: str = "") -> Outcome:
        return Outcome(verdict=verdict, detail=f"{where}: {detail}" if detail else where, met=met)

    if look.code is None or again.code is None:
        return outcome(HANG)
    if crash := _crash(look, again):
        return outcome(CRASH, crash)
    if gone := lost(before, tool.results()):
        return outcome(LOST, f"run {gone[0]}")
    if gone_at_once and look.code != 0:
        return outcome(LOST, f"run {gone_at_once[0]} right after the kill")
    if victim.word not in look.out:
        return outcome(LOST, "the finished run had to be trained again")
    if behind:
        return outcome(LOST, f"{len(behind)} worker(s) left behind")
    if called_failed:
        return outcome(LOST, "an interrupted run is called failed")
    if tool.results() != expected.results:
        return outcome(SILENT, "other predictions than without a kill")
    if tool.scores() != expected.scores:
        return outcome(SILENT, "other scores than without a kill")
    problem = victim.check(tool)
    return outcome(LOST if problem else OK, problem)


def _crash(look: Answer, again: Answer) -> str:
    for answer in (look, again):
        if answer.crashed or answer.code != 0:
            return f"exit code {answer.code}: {(answer.err or answer.out).strip()[-300:]}"
    return ""

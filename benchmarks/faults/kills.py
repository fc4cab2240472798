"""SIGKILL at moments spread over a command's life: what was finished stays, and the same command ends the work."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.faults.tool import Tool, kill, left_behind, lost
from benchmarks.faults.trial import CRASH, HANG, LOST, OK, SILENT, Trial
from benchmarks.faults.world import KMEANS, PREPARE, SIMGCD, suite_file


@dataclass(frozen=True, kw_only=True)
class Victim:
    """A command to be killed: its arguments, what it starts from, and how often."""

    name: str
    arguments: tuple[str, ...]
    start: Tool
    kills: int
    check: Callable[[Tool], str] = lambda tool: ""
    """Says what is wrong after the command was repeated to its end, or nothing."""


def victims(empty: Tool, prepared: Tool, finished: Tool, archive: Path, share: float) -> list[Victim]:
    """Every verb that writes. ``share`` scales the number of kills."""

    def times(wanted: int) -> int:
        return max(1, round(wanted * share))

    out = "out.zip"
    suite = suite_file(prepared.home)
    return [
        Victim(name="prepare", arguments=PREPARE, start=empty, kills=times(20)),
        Victim(name="run (clustering)", arguments=KMEANS, start=prepared, kills=times(20)),
        Victim(name="run (training)", arguments=SIMGCD, start=prepared, kills=times(40)),
        Victim(name="run --force", arguments=(*SIMGCD, "--force"), start=finished, kills=times(40)),
        Victim(
            name="sweep", arguments=("sweep", suite, "--preset", "smoke", "-j", "2"), start=prepared, kills=times(30)
        ),
        Victim(name="import", arguments=("import", str(archive)), start=prepared, kills=times(20)),
        Victim(
            name="export",
            arguments=("export", out, "--weights"),
            start=finished,
            kills=times(20),
            check=lambda tool: "" if tool.call("import", out, "--check").code == 0 else "the archive is not whole",
        ),
        Victim(name="rescore", arguments=("rescore",), start=finished, kills=times(20)),
    ]


def moments(tool: Tool, victim: Victim) -> tuple[dict[str, str], float, float, str]:
    """Undisturbed: the results, when the first file was written, how long it took, and an error."""
    before = _newest(tool)
    began = time.monotonic()
    process = tool.start(*victim.arguments)
    first = 0.0
    while process.poll() is None:
        if not first and _newest(tool) != before:
            first = time.monotonic() - began
        time.sleep(0.01)
    _, err = process.communicate()
    return tool.results(), first, time.monotonic() - began, "" if process.returncode == 0 else err.strip()


def _newest(tool: Tool) -> float:
    return max((path.stat().st_mtime for path in tool.home.rglob("*")), default=0.0)


def kill_trials(victim: Victim, scratch: Path) -> Iterator[Trial]:
    """Kill a command at ``victim.kills`` moments, each time from the same start."""

    def trial(case: str, verdict: str, detail: str = "") -> Trial:
        return Trial(section="killed", group=victim.name, case=case, verdict=verdict, detail=detail)

    tool = victim.start.copy(scratch / "reference")
    expected, first, whole, error = moments(tool, victim)
    if error:
        yield trial("undisturbed", CRASH, error.splitlines()[-1])
        return
    for number in range(victim.kills):
        moment = first + (whole - first) * (number + 0.5) / victim.kills
        case = f"after {moment:.2f} of {whole:.2f} s"
        tool = victim.start.copy(scratch / "victim")
        before = tool.results()
        process = tool.start(*victim.arguments)
        time.sleep(moment)
        kill(process)
        behind = left_behind(tool)
        process.communicate()
        status = tool.call("status", "--json")
        again = tool.call(*victim.arguments)
        after = tool.results()
        if status.code is None or again.code is None:
            yield trial(case, HANG)
        elif status.crashed or again.crashed or again.code != 0:
            yield trial(case, CRASH, (again.err or status.err).strip()[-300:])
        elif gone := lost(before, after):
            yield trial(case, LOST, f"run {gone[0]}")
        elif behind:
            yield trial(case, LOST, f"{len(behind)} worker(s) left behind")
        elif after != expected:
            yield trial(case, SILENT, "other predictions than without a kill")
        elif problem := victim.check(tool):
            yield trial(case, LOST, problem)
        else:
            yield trial(case, OK)
        shutil.rmtree(tool.home, ignore_errors=True)


def force_trials(victim: Victim, scratch: Path) -> Iterator[Trial]:
    """After a kill of ``--force`` the finished run must be there at once, not only after a repetition."""
    tool = victim.start.copy(scratch / "reference")
    _, first, whole, _ = moments(tool, victim)
    for number in range(victim.kills):
        moment = first + (whole - first) * (number + 0.5) / victim.kills
        tool = victim.start.copy(scratch / "victim")
        before = tool.results()
        process = tool.start(*victim.arguments)
        time.sleep(moment)
        kill(process)
        process.communicate()
        # Reading is what may bring a result back; training again may not be needed for it.
        plain = tuple(argument for argument in victim.arguments if argument != "--force")
        again = tool.call(*plain)
        trained = "Reused" not in again.out
        gone = lost(before, tool.results())
        verdict = LOST if gone or trained else CRASH if again.crashed else OK
        yield Trial(
            section="killed",
            group="run --force, then looked at",
            case=f"after {moment:.2f} of {whole:.2f} s",
            verdict=verdict,
            detail="the finished run had to be trained again" if trained else "",
        )
        shutil.rmtree(tool.home, ignore_errors=True)

"""Files damaged in five ways: what is read back is noticed, rebuilt or refused, never believed."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.faults.tool import Tool, files_below, kill
from benchmarks.faults.trial import CRASH, HANG, LOST, OK, SILENT, Trial
from benchmarks.faults.world import KMEANS, SECOND_SEED, SIMGCD


def _cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def _zero(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2] + bytes(len(content) - len(content) // 2))


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    if content:
        content[len(content) * 2 // 3] ^= 0x10
    path.write_bytes(bytes(content))


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


WAYS: dict[str, Callable[[Path], None]] = {
    "cut in half": _cut,
    "half of it zero": _zero,
    "one bit flipped": _flip,
    "emptied": _empty,
    "a folder in its place": _folder,
}


def _damage(path: Path, way: str) -> None:
    """Damage a file as a disk would: its times stay what they were, unless it becomes a folder."""
    stat = path.stat()
    WAYS[way](path)
    if path.is_file():
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def cache_trials(finished: Tool, scratch: Path) -> Iterator[Trial]:
    """Each file of the cache, each way; then a run that needs the cache must come to the same predictions."""
    for arguments, group in (
        (SECOND_SEED, "cache, before training"),
        ((*KMEANS, "--seed", "2"), "cache, before clustering"),
    ):
        reference = finished.copy(scratch / "reference")
        reference.call(*arguments)
        expected = reference.results()
        for file in files_below(finished.cache):
            name = file.relative_to(finished.home)
            for way in WAYS:
                tool = finished.copy(scratch / "damaged")
                _damage(tool.home / name, way)
                answer = tool.call(*arguments)
                yield _judge(
                    group, f"{name}: {way}", answer.code, answer.crashed, answer.refused, tool.results() == expected
                )


def _judge(group: str, case: str, code: int | None, crashed: bool, refused: bool, same: bool) -> Trial:
    verdict = OK if same or refused else SILENT
    if code is None:
        verdict = HANG
    elif crashed:
        verdict = CRASH
    detail = (
        "refused with a sentence"
        if refused and verdict == OK
        else "other predictions, exit code 0"
        if verdict == SILENT
        else ""
    )
    return Trial(section="damaged", group=group, case=case, verdict=verdict, detail=detail)


def checkpoint_trials(prepared: Tool, scratch: Path) -> Iterator[Trial]:
    """Each checkpoint of an interrupted training, each way; then the run must end as if nothing had happened."""
    reference = prepared.copy(scratch / "reference")
    reference.call(*SIMGCD)
    expected = reference.results()
    interrupted = prepared.copy(scratch / "interrupted")
    process = interrupted.start(*SIMGCD)
    while process.poll() is None and len(list(interrupted.runs.glob("*/*/*/checkpoint/*.pt"))) < 2:
        time.sleep(0.005)
    kill(process)
    process.communicate()
    for file in files_below(*interrupted.runs.glob("*/*/*/checkpoint")):
        name = file.relative_to(interrupted.home)
        for way in WAYS:
            tool = interrupted.copy(scratch / "damaged")
            _damage(tool.home / name, way)
            answer = tool.call(*SIMGCD)
            same = tool.results() == expected
            yield _judge("checkpoint", f"{name.name}: {way}", answer.code, answer.crashed, answer.refused, same)


def store_trials(finished: Tool, scratch: Path) -> Iterator[Trial]:
    """Each file of one run in a store of three, each way: the others stay, and no wrong number passes unnoticed."""
    healthy = finished.numbers()
    if healthy is None:
        yield Trial(section="damaged", group="store", case="undamaged", verdict=CRASH, detail="'table --json' failed")
        return
    target = sorted(finished.runs.glob("*/simgcd/*"))[0]
    for file in files_below(target):
        name = file.relative_to(finished.home)
        for way in WAYS:
            tool = finished.copy(scratch / "damaged")
            _damage(tool.home / name, way)
            yield _look(tool, target.name, healthy, f"{name.relative_to('runs')}: {way}")


def _look(tool: Tool, damaged: str, healthy: dict[str, float], case: str) -> Trial:
    def trial(verdict: str, detail: str = "") -> Trial:
        return Trial(section="damaged", group="store", case=case, verdict=verdict, detail=detail)

    others = {key: value for key, value in healthy.items() if damaged not in key}
    shown = tool.numbers()
    answers = [tool.call(verb) for verb in ("status", "rescore", "verify")]
    if any(answer.code is None for answer in answers):
        return trial(HANG)
    if any(answer.crashed for answer in answers):
        return trial(CRASH, next(answer.err for answer in answers if answer.crashed).strip()[-200:])
    if shown is None or any(shown.get(key) != value for key, value in others.items()):
        return trial(LOST, "the other runs are not shown")
    own = {key: value for key, value in healthy.items() if damaged in key}
    unchanged = all(shown.get(key) == value for key, value in own.items())
    noticed = damaged in "".join(answer.out + answer.err for answer in answers[1:]) or "unreadable" in answers[0].out
    left_out = not any(damaged in key for key in shown)
    if unchanged or noticed or left_out:
        return trial(OK, "noticed" if noticed else "harmless" if unchanged else "left out")
    return trial(SILENT, "another number, and nobody says so")


def index_trials(finished: Tool, scratch: Path) -> Iterator[Trial]:
    """A number changed inside an index of the runs, wherever it lies, must not reach a table."""
    healthy = finished.numbers()
    tool = finished.copy(scratch / "damaged")
    tool.numbers()
    for file in files_below(tool.home):
        if "index" not in str(file.relative_to(tool.home)):
            continue
        content = file.read_bytes()
        for number in sorted({f"{value:.4f}"[:5] for value in (healthy or {}).values() if value}):
            changed = content.replace(number.encode(), b"12.34"[: len(number)])
            if changed == content:
                continue
            copy = finished.copy(scratch / "changed")
            place = copy.home / file.relative_to(tool.home)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(changed)
            verdict = OK if copy.numbers() == healthy else SILENT
            yield Trial(section="damaged", group="index", case=f"{file.name}: {number} changed", verdict=verdict)
            shutil.rmtree(copy.home, ignore_errors=True)
        for way in WAYS:
            copy = tool.copy(scratch / "changed")
            _damage(copy.home / file.relative_to(tool.home), way)
            verdict = OK if copy.numbers() == healthy else SILENT
            yield Trial(section="damaged", group="index", case=f"{file.name}: {way}", verdict=verdict)

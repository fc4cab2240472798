"""Files damaged in five ways: what is read back is noticed, rebuilt or refused, never believed."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.faults.tool import Answer, Tool, files_below
from benchmarks.faults.trial import CRASH, HANG, LOST, OK, SILENT, Case, Outcome
from benchmarks.faults.world import KMEANS, SECOND_SEED, SIMGCD


def _replace(path: Path, content: bytes) -> None:
    """Another content in a file of its own: the file may be linked from elsewhere."""
    path.unlink()
    path.write_bytes(content)


def _cut(path: Path) -> None:
    content = path.read_bytes()
    _replace(path, content[: len(content) // 2])


def _zero(path: Path) -> None:
    content = path.read_bytes()
    _replace(path, content[: len(content) // 2] + bytes(len(content) - len(content) // 2))


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    if content:
        content[len(content) * 2 // 3] ^= 0x10
    _replace(path, bytes(content))


def _empty(path: Path) -> None:
    _replace(path, b"")


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


def damage(path: Path, way: str) -> None:
    """Damage a file as a disk would: its times stay what they were, unless it becomes a folder."""
    stat = path.stat()
    WAYS[way](path)
    if path.is_file():
        os.chmod(path, stat.st_mode)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def _ways(path: Path) -> tuple[str, ...]:
    """An empty file (a lock) can only become a folder; every other way leaves it as it is."""
    return tuple(WAYS) if path.stat().st_size else ("a folder in its place",)


def _damaged_case(group: str, tool: Tool, file: Path, way: str, run: Callable[[Path], Outcome]) -> Case:
    name = file.relative_to(tool.home)
    return Case(section="damaged", group=group, name=f"{name}: {way}", run=run)


def cache_cases(finished: Tool, scratch: Path) -> Iterator[Case]:
    """Each file of the cache, each way; then a run that needs the cache must come to the same predictions."""
    for arguments, group in (
        (SECOND_SEED, "cache, before training"),
        ((*KMEANS, "--seed", "2"), "cache, before clustering"),
    ):
        reference = finished.copy(scratch / "reference")
        reference.call(*arguments)
        expected = reference.results()
        for file in files_below(finished.cache):
            for way in _ways(file):
                name = file.relative_to(finished.home)
                run = partial(_run_on_damage, finished, name, way, arguments, expected)
                yield _damaged_case(group, finished, file, way, run)


def _run_on_damage(
    start: Tool, name: Path, way: str, arguments: tuple[str, ...], expected: dict[str, str], folder: Path
) -> Outcome:
    tool = start.copy(folder / "home")
    damage(tool.home / name, way)
    answer = tool.call(*arguments)
    return _judge(answer, tool.results() == expected)


def _judge(answer: Answer, same: bool) -> Outcome:
    if answer.code is None:
        return Outcome(verdict=HANG)
    if answer.crashed:
        return Outcome(verdict=CRASH, detail=answer.err.strip()[-300:])
    if answer.refused:
        return Outcome(verdict=OK, detail=f"refused: {answer.err.strip()[:300]}")
    if not same:
        return Outcome(verdict=SILENT, detail="other predictions, exit code 0")
    return Outcome(verdict=OK, detail=answer.err.strip()[:200])


def checkpoint_cases(prepared: Tool, scratch: Path) -> Iterator[Case]:
    """Each checkpoint of an interrupted training, each way; then the run must end as if nothing had happened."""
    reference = prepared.copy(scratch / "reference")
    reference.call(*SIMGCD)
    expected = reference.results()
    interrupted = prepared.copy(scratch / "interrupted")
    process = interrupted.start(*SIMGCD)
    while process.poll() is None and len(list(interrupted.runs.glob("*/*/*/checkpoint/*.pt"))) < 2:
        time.sleep(0.002)
    process.kill()
    process.output()
    for file in files_below(*interrupted.runs.glob("*/*/*")):
        for way in _ways(file):
            name = file.relative_to(interrupted.home)
            run = partial(_run_on_damage, interrupted, name, way, SIMGCD, expected)
            yield Case(section="damaged", group="interrupted training", name=f"{_short(name)}: {way}", run=run)


def _short(name: Path) -> str:
    """A file of a run without the folders above the run."""
    return "/".join(name.parts[4:])


def store_cases(finished: Tool) -> Iterator[Case]:
    """Each file of two runs in a store of three, each way: the others stay, no wrong number passes unnoticed."""
    healthy = finished.numbers()
    for method in ("simgcd", "ss-kmeans"):
        target = sorted(finished.runs.glob(f"*/{method}/*"))[0]
        for file in files_below(target):
            for way in _ways(file):
                name = file.relative_to(finished.home)
                run = partial(_look, finished, name, way, target.name, healthy)
                yield Case(section="damaged", group="store", name=f"{method}/{_short(name)}: {way}", run=run)


def _look(
    finished: Tool, name: Path, way: str, damaged: str, healthy: dict[str, float] | None, folder: Path
) -> Outcome:
    tool = finished.copy(folder / "home")
    damage(tool.home / name, way)
    if healthy is None:
        return Outcome(verdict=CRASH, detail="'table --json' failed on the undamaged store")
    others = {key: value for key, value in healthy.items() if damaged not in key}
    shown = tool.numbers()
    answers = [tool.call(verb) for verb in ("status", "verify", "rescore")]
    if any(answer.code is None for answer in answers):
        return Outcome(verdict=HANG)
    if crashed := [answer.err for answer in answers if answer.crashed]:
        return Outcome(verdict=CRASH, detail=crashed[0].strip()[-300:])
    if shown is None or any(shown.get(key) != value for key, value in others.items()):
        return Outcome(verdict=LOST, detail="the other runs are not shown")
    own = {key: value for key, value in healthy.items() if damaged in key}
    unchanged = all(shown.get(key) == value for key, value in own.items())
    noticed = damaged in "".join(answer.out + answer.err for answer in answers[1:]) or "unreadable" in answers[0].out
    left_out = not any(damaged in key for key in shown)
    if unchanged or noticed or left_out:
        return Outcome(verdict=OK, detail="noticed" if noticed else "harmless" if unchanged else "left out")
    return Outcome(verdict=SILENT, detail="another number, and nobody says so")


def index_cases(finished: Tool) -> Iterator[Case]:
    """An index of the runs, wherever it is, with another number in it or damaged, must not reach a table."""
    numbers = sorted({value for value in (finished.numbers() or {}).values() if value and value % 1})
    changes: dict[str, Callable[[Path], None]] = {
        f"{n:.2f} changed": partial(_change_number, number=n) for n in numbers
    }
    changes |= {way: partial(damage, way=way) for way in WAYS}
    for name, change in changes.items():
        yield Case(section="damaged", group="index", name=name, run=partial(_show, finished, change))


def _change_number(path: Path, *, number: float) -> None:
    """Another value in the place of a number, stored as eight bytes of either order or as text."""
    content, other = path.read_bytes(), 12.34
    for kind in (">d", "<d"):
        content = content.replace(struct.pack(kind, number), struct.pack(kind, other))
    for digits in range(17, 3, -1):
        text = repr(number)[:digits].encode()
        content = content.replace(text, f"{other}{'0' * 20}"[: len(text)].encode())
    stat = path.stat()
    _replace(path, content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def _show(finished: Tool, change: Callable[[Path], None], folder: Path) -> Outcome:
    tool = finished.copy(folder / "home")
    time.sleep(2.5)  # what has just been written may not be indexed yet
    healthy = tool.numbers()
    before = {file: file.read_bytes() for file in files_below(tool.home) if "index" in str(file.relative_to(tool.home))}
    for file in before:
        change(file)
    met = any(not file.is_file() or file.read_bytes() != content for file, content in before.items())
    same = healthy is not None and tool.numbers() == healthy
    return Outcome(verdict=OK if same else SILENT, met=met, detail="" if met else "no such index")

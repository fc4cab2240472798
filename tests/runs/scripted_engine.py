"""An engine whose jobs do what a script says, and a sweep through it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.events import Event, JobEnded, encode_event
from gcdbench.runs.executors.base import Job
from gcdbench.runs.executors.engine import EngineBusy, EngineConfig, EngineSilent, EngineState
from gcdbench.runs.executors.queue import read_queued, said_path
from gcdbench.runs.executors.remote import RemoteExecutor
from gcdbench.runs.record import RUNNING
from gcdbench.runs.strict_json import write_sealed
from gcdbench.testing.stored import FakeRun, write_fake_run

Turn = Callable[[Path], EngineState | None]
"""What happens to a job between two looks: it may write events to this file; its state afterwards."""


class ScriptedEngine:
    """An engine whose jobs do what a script says, one turn for each look."""

    name = "scripted"
    poll_seconds = 0.0
    can_be_left = True

    def __init__(self, *attempts: Sequence[Turn], room: Sequence[int] = ()) -> None:
        self.attempts = list(attempts)
        self.room = list(room)
        self.jobs: dict[str, tuple[Path, Iterator[Turn]]] = {}
        self.silent = 0
        self.waits = False

    def check(self, jobs: Sequence[tuple[Job, EngineConfig]]) -> None:
        pass

    def submit(self, files: Sequence[Path], config: EngineConfig, at_once: int | None) -> list[str]:
        room = self.room.pop(0) if self.room else len(files)
        if not room:
            raise EngineBusy("The queue is full.")
        names = []
        for file in files[:room]:
            queued = read_queued(file)
            name = f"job-{len(self.jobs)}"
            script = self.attempts[min(queued.attempt, len(self.attempts)) - 1]
            self.jobs[name] = (said_path(file, queued.attempt), iter(script))
            names.append(name)
        return names

    def states(self, names: Sequence[str]) -> Mapping[str, EngineState]:
        if self.silent:
            self.silent -= 1
            raise EngineSilent("No answer.")
        found: dict[str, EngineState] = {}
        for name in names:
            path, script = self.jobs[name]
            turn = next(script, None)
            if turn is not None and (state := turn(path)) is not None:
                found[name] = state
        return found

    def notes(self) -> Sequence[str]:
        return ["Something is missing."] if self.waits else []

    def last_words(self, name: str) -> str:
        return "NODE_FAIL"

    def stop(self, names: Sequence[str]) -> str:
        return ""

    def close(self) -> None:
        pass


def says(*events: Event, then: EngineState | None = "running") -> Turn:
    def turn(path: Path) -> EngineState | None:
        with path.open("a") as file:
            file.writelines(encode_event(event) + "\n" for event in events)
        return then

    return turn


def vanishes(path: Path) -> None:
    return None


DOES_IT = [says(), says(JobEnded(path="somewhere"), then=None)]


def run(engine: ScriptedEngine, jobs: Sequence[Job], attempts: int = 3) -> tuple[list[Any], list[Event]]:
    heard: list[Event] = []
    executor = RemoteExecutor(engine, EngineConfig(attempts=attempts))
    outcomes = executor.run(jobs, parallel=0, listener=lambda job, event: heard.append(event))
    return outcomes, heard


def unfinished_run(job: Job) -> RunDirectory:
    directory = write_fake_run(job.placement.runs, FakeRun(request=job.request), PluginManager(points=[]))
    write_sealed(directory.record_path, replace(directory.record(), status=RUNNING).to_table())
    return RunDirectory(directory.path)

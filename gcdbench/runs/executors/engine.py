"""What an engine has to offer so that jobs can be left with it: take them, and say which of them it still has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from gcdbench.core.config import Count
from gcdbench.core.errors import GCDBenchError
from gcdbench.runs.executors.base import Job

EngineState = Literal["queued", "running", "cancelled"]
"""``cancelled``: a person has ended the job. A job that an engine does not name is gone, however it ended."""


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    """Settings that every engine has. attempts: how often a run may be begun before it counts as failed."""

    attempts: Count = 3


class EngineBusy(GCDBenchError):
    """An engine that takes no more jobs for now."""


class EngineSilent(GCDBenchError):
    """An engine that does not answer for now: nothing is known about its jobs."""


class Engine(Protocol):
    """Takes files of jobs (see :mod:`gcdbench.runs.executors.queue`) to where their worker runs."""

    name: str
    poll_seconds: float
    can_be_left: bool
    """Whether jobs continue when the process that submitted them ends."""

    def check(self, jobs: Sequence[tuple[Job, EngineConfig]]) -> None:
        """Refuse, in a sentence, what can never run, before anything is queued."""

    def submit(self, files: Sequence[Path], config: EngineConfig, at_once: int | None) -> list[str]:
        """Queue the first of these jobs, as many as there is room for: one name for each that was taken, in order.

        Raises :class:`EngineBusy` where not even one is taken.
        """

    def states(self, names: Sequence[str]) -> Mapping[str, EngineState]:
        """The state of those of these jobs that the engine knows; raises :class:`EngineSilent` where it cannot tell."""

    def notes(self) -> Sequence[str]:
        """Sentences about jobs that wait for what may never come; each is given once."""

    def last_words(self, name: str) -> str:
        """What the engine knows about how a job that it no longer has ended, for the reason of a failure; or ""."""

    def stop(self, names: Sequence[str]) -> str:
        """Whoever waited is going (Ctrl-C): a sentence that says what becomes of these jobs."""

    def close(self) -> None:
        """All is over."""

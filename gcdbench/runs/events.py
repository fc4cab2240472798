"""What a run tells while it runs: types for what gcdbench says itself, one more for what plugins say.

A method logs a mapping with a ``"type"``; the runner makes an event of it. On the disk and between processes an event
is one line of JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar

from gcdbench.core.errors import PluginError
from gcdbench.runs.old_mapping import OldMapping

Losses = Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Event(OldMapping):
    """Something that happened. time: seconds since 1970, or None before it is stored; more: keys of no field."""

    kind: ClassVar[str] = ""

    time: float | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def type(self) -> str:
        """The name of this kind of event."""
        return self.kind

    def to_table(self) -> dict[str, Any]:
        """The event as it is stored."""
        own = {item.name: getattr(self, item.name) for item in fields(self) if item.name not in ("time", "more")}
        stamp = {} if self.time is None else {"time": self.time}
        return {"type": self.type, **stamp, **self.more, **own}


@dataclass(frozen=True, kw_only=True)
class Progress(Event):
    """Work that is neither training nor stored: images decoded, views made."""

    kind: ClassVar[str] = "progress"

    task: str
    done: int
    total: int
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class StepProgress(Event):
    """How far a training is within an epoch; epochs and steps are counted from 0."""

    kind: ClassVar[str] = "progress"

    epoch: int
    epochs: int
    step: int
    steps: int
    losses: Losses
    images_per_s: float
    eta_s: float


@dataclass(frozen=True, kw_only=True)
class EpochEnd(Event):
    """An epoch is over. losses: the mean of each weighted term; step_seconds: time spent in training steps."""

    kind: ClassVar[str] = "epoch"

    epoch: int
    epochs: int
    losses: Losses
    lr: float
    images_per_s: float = 0.0
    eta_s: float = 0.0
    step_seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Note(Event):
    """A sentence for people."""

    kind: ClassVar[str] = "note"

    message: str


@dataclass(frozen=True, kw_only=True)
class Resumed(Event):
    """A training continues from its checkpoint."""

    kind: ClassVar[str] = "resumed"

    epoch: int
    step: int
    total_steps: int


@dataclass(frozen=True, kw_only=True)
class Begun(Event):
    """The directory of a job's run is known. Sent to listeners, never stored."""

    kind: ClassVar[str] = "begun"

    path: str


@dataclass(frozen=True, kw_only=True)
class EngineNote(Event):
    """Something that an engine says about its queue, for people. Sent to listeners, never stored."""

    kind: ClassVar[str] = "engine"

    message: str


@dataclass(frozen=True, kw_only=True)
class JobEnded(Event):
    """The last event of a job: ``error`` is empty when its run is done. Sent to listeners, never stored."""

    kind: ClassVar[str] = "outcome"

    path: str = ""
    error: str = ""
    reused: bool = False


@dataclass(frozen=True, kw_only=True)
class ObserverFailed(Event):
    """A plugin's observer raised; the run continues."""

    kind: ClassVar[str] = "observer-failed"

    error: str


@dataclass(frozen=True, kw_only=True)
class RepetitionFailed(Event):
    """A finished run was to be done again and that failed; the first result counts."""

    kind: ClassVar[str] = "rerun-failed"

    error: str
    traceback: str = ""


@dataclass(frozen=True, kw_only=True)
class OtherEvent(Event):
    """An event of a kind that gcdbench does not know; ``more`` holds all of it."""

    name: str

    @property
    def type(self) -> str:
        """The name that its author gave it."""
        return self.name

    def to_table(self) -> dict[str, Any]:
        """The event as it is stored."""
        return {"type": self.name, **({} if self.time is None else {"time": self.time}), **self.more}


KNOWN: tuple[type[Event], ...] = (
    Progress,
    StepProgress,
    EpochEnd,
    Note,
    Resumed,
    Begun,
    EngineNote,
    JobEnded,
    ObserverFailed,
    RepetitionFailed,
)
Listener = Callable[[Event], None]


def ignore(event: Event) -> None:
    """A listener that does not listen."""


def make_event(said: Mapping[str, Any]) -> Event:
    """The event that a mapping describes; what does not fit a known kind is :class:`OtherEvent` and loses nothing."""
    if isinstance(said, Event):
        return said
    if not isinstance(said, Mapping) or not isinstance(said.get("type"), str):
        raise PluginError(
            f"What was logged is not an event: {type(said).__name__}.",
            hint='An event is a mapping with a "type", as in ctx.log({"type": "note", "message": "…"}).',
        )
    rest = {key: value for key, value in said.items() if key not in ("type", "time")}
    time = float(said["time"]) if _is_number(said.get("time")) else None
    for known in KNOWN:
        if known.kind == said["type"] and (own := _own_values(known, rest)) is not None:
            return known(time=time, more={k: v for k, v in rest.items() if k not in own}, **own)
    return OtherEvent(name=said["type"], time=time, more=rest)


def _own_values(known: type[Event], rest: Mapping[str, Any]) -> dict[str, Any] | None:
    """The fields of a kind of event, or None where one is missing or has another type."""
    own: dict[str, Any] = {}
    for item in fields(known):
        if item.name in ("time", "more"):
            continue
        if item.name in rest:
            if not _FITS[str(item.type)](rest[item.name]):
                return None
            own[item.name] = rest[item.name]
        elif item.default is MISSING:
            return None
    return own


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_FITS: dict[str, Callable[[Any], bool]] = {
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "float": _is_number,
    "str": lambda value: isinstance(value, str),
    "bool": lambda value: isinstance(value, bool),
    "Losses": lambda value: isinstance(value, Mapping) and all(map(_is_number, value.values())),
}


def encode_event(event: Event) -> str:
    """One line of JSON, for another process."""
    return json.dumps(event.to_table())


def decode_event(line: str) -> Event | None:
    """The inverse of :func:`encode_event`; None for a line that is none, which a library may have printed."""
    try:
        return make_event(json.loads(line))
    except (ValueError, RecursionError, PluginError):
        return None

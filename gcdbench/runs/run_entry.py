"""One run in a list of runs: what names it, where it stands and what it scored, without opening its files again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from gcdbench.core.identity import canonical_json
from gcdbench.runs.packed_scores import pack_scores, unpack_set
from gcdbench.runs.record import TRANSDUCTIVE, Identified, Record, SetScores


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that names a run but its seed; runs that differ in the seed only share it."""

    digest: str
    text: str

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """The identity without the seed."""
        found: Mapping[str, Any] = json.loads(self.text)
        return found


UNKNOWN = Settings(
    digest="",
    text='{"config": {}, "images": "", "manifest_sha256": "", "method_version": "", "protocol": {"k_policy": ""}}',
)
"""The settings of a run that cannot be read."""


@dataclass(frozen=True, kw_only=True)
class RunEntry(Identified):
    """One run in a list: what it is, where it stands and, on one evaluation set, what it scored.

    called: the dataset as it was written when the run was made. spent: what the run cost. measured: scores that were
    added to the stored ones. problem: why the run failed, or why it cannot be read.
    """

    place: str
    run_id: str
    status: str
    dataset: str
    method: str
    variant: str = ""
    protocol: str = ""
    preset: str = ""
    backbone: str = ""
    image_size: int = 0
    views: str = ""
    seed: int = 0
    common: Settings = UNKNOWN
    called: str = ""
    dataset_options: Mapping[str, str] = field(default_factory=dict)
    reconstruction: bool = False
    spent: Mapping[str, float] = field(default_factory=dict)
    problem: str = ""
    scored: bytes = b""
    evaluation: str = TRANSDUCTIVE
    measured: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def path(self) -> Path:
        """The run's directory."""
        return Path(self.place)

    @property
    def settings(self) -> str:
        """Digest of everything that names the run but the seed: runs with equal ones may be averaged."""
        return self.common.digest

    @cached_property
    def identity(self) -> Mapping[str, Any]:  # type: ignore[override]
        """Everything that names the run."""
        return {**self.common.identity, "seed": self.seed}

    @property
    def k_policy(self) -> str:
        """``"known"`` or ``"estimated"``: whether the number of classes was given to the method."""
        return str(self.common.identity["protocol"]["k_policy"])

    @cached_property
    def scores(self) -> Mapping[str, float]:
        """Scores on the evaluation set, with what the run cost; empty where it was not scored."""
        found = unpack_set(self.scored, self.evaluation)
        return {**found[1], **self.spent, **self.measured} if found else self.measured

    @property
    def samples(self) -> int:
        """Images of the evaluation set."""
        found = unpack_set(self.scored, self.evaluation)
        return found[0].n if found else 0

    @property
    def old_share(self) -> float | None:
        """Share of the evaluation set's images that are of old classes."""
        found = unpack_set(self.scored, self.evaluation)
        return found[0].old_share if found else None

    @property
    def seconds(self) -> float | None:
        """Time to fit and predict, where it is known."""
        return self.spent.get("seconds")

    @property
    def accepted_data_issues(self) -> tuple[str, ...]:
        """Data issues that the run was made in spite of."""
        return tuple(self.identity.get("accepted_data_issues", ()))


def make_entry(
    record: Record,
    *,
    status: str | None = None,
    problem: str = "",
    called: str = "",
    sets: Mapping[str, SetScores] | None = None,
) -> RunEntry:
    """The entry of one run. sets: its scores by evaluation set, where they are not to be read from its directory."""
    if sets is None:
        sets = record.scores.sets if record.scores is not None else {}
    common = canonical_json({key: value for key, value in record.identity.items() if key != "seed"})
    return RunEntry(
        place=str(record.path),
        run_id=record.path.name,
        status=status or record.status,
        dataset=record.dataset,
        method=record.method,
        variant=record.variant or "",
        protocol=record.protocol,
        preset=record.preset,
        backbone=record.backbone,
        image_size=record.image_size,
        views=record.views,
        seed=record.seed,
        common=Settings(digest=hashlib.sha256(common.encode()).hexdigest(), text=common),
        called=called,
        dataset_options=record.dataset_options,
        reconstruction=record.reconstruction,
        spent=record.spent,
        problem=problem,
        scored=pack_scores(sets),
    )

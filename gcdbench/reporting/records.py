"""Runs as tables see them: what identifies them, what they scored, and which may be averaged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gcdbench.core.identity import digest
from gcdbench.reporting.spent import spent
from gcdbench.runs.index import RunEntry

TRANSDUCTIVE = "transductive"


@dataclass(frozen=True, kw_only=True)
class CellRecord:
    """One run. ``settings`` is a digest of everything that names it but the seed: equal digests may be averaged."""

    run_id: str
    path: Path
    status: str
    dataset: str
    method: str
    variant: str = ""
    protocol: str = ""
    preset: str = ""
    backbone: str = ""
    image_size: int = 0
    k_policy: str = "known"
    seed: int = 0
    settings: str = ""
    scores: Mapping[str, float] = field(default_factory=dict)
    samples: int = 0
    old_share: float | None = None
    seconds: float | None = None
    reconstruction: bool = False
    problem: str = ""
    identity: Mapping[str, Any] = field(default_factory=dict)
    dataset_options: Mapping[str, str] = field(default_factory=dict)


def cell_record(entry: RunEntry, evaluation: str = TRANSDUCTIVE) -> CellRecord:
    """The record of one indexed run; ``evaluation`` chooses the scored set."""
    record = entry.record
    identity: dict[str, Any] = record.get("identity") or {}
    scored: dict[str, Any] = (entry.scores.get("sets") or {}).get(evaluation) or {}
    costs = spent(record)
    return CellRecord(
        run_id=entry.run_id,
        path=entry.path,
        status=entry.status,
        dataset=record.get("dataset") or entry.path.parent.parent.name,
        method=record.get("method") or entry.path.parent.name,
        variant=record.get("variant") or "",
        protocol=record.get("protocol") or "",
        preset=record.get("preset") or "",
        backbone=record.get("backbone") or "",
        image_size=record.get("image_size") or 0,
        k_policy=(identity.get("protocol") or {}).get("k_policy", "known"),
        seed=record.get("seed") or 0,
        settings=digest({key: value for key, value in identity.items() if key != "seed"}),
        scores={**(scored.get("scores") or {}), **(costs if scored else {})},
        samples=scored.get("n") or 0,
        old_share=scored.get("old_share"),
        seconds=costs.get("seconds"),
        reconstruction=bool(record.get("reconstruction")),
        problem=entry.problem,
        identity=identity,
        dataset_options=record.get("dataset_options") or {},
    )


def cell_records(entries: Iterable[RunEntry], evaluation: str = TRANSDUCTIVE) -> list[CellRecord]:
    """Records of all runs, also of those that failed or still run: a table says what is missing."""
    return [cell_record(entry, evaluation) for entry in entries]

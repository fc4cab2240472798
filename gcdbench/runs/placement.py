"""Where a run is executed, as opposed to what it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Where and with what a run is executed. None of this may change a result, so none of it is in the identity."""

    runs: Path = Path("runs")
    cache: Path | None = None
    data_root: Path | None = None
    device: str = "cpu"
    workers: int | None = None
    threads: int | None = None
    resume: bool = True
    force: bool = False
    accept_data_issues: bool = False
    observe: tuple[str, ...] = ()
    disk_budget: str | None = None
    """Room for stored views where ``views = "auto"`` decides ("6GB"); what it decides is in the identity."""

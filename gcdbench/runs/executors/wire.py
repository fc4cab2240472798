"""Jobs and events as JSON, for worker processes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from gcdbench.runs.executors.base import Job
from gcdbench.runs.placement import Placement
from gcdbench.runs.request import Request


def encode_job(job: Job) -> str:
    """A job as one line of JSON."""
    placement = {
        key: str(value) if isinstance(value, Path) else value
        for key, value in dataclasses.asdict(job.placement).items()
    }
    table = {"request": dataclasses.asdict(job.request), "placement": placement}
    return json.dumps({**table, "options": dict(job.options)} if job.options else table)


def decode_job(text: str) -> Job:
    """The inverse of :func:`encode_job`."""
    value: dict[str, dict[str, Any]] = json.loads(text)
    placement: dict[str, Any] = {
        key: Path(item) if key in ("runs", "cache", "data_root") and item is not None else item
        for key, item in value["placement"].items()
    }
    placement["observe"] = tuple(placement.get("observe", ()))
    return Job(request=Request(**value["request"]), placement=Placement(**placement), options=value.get("options", {}))

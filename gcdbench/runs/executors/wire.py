"""Jobs and events as JSON, for worker processes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import cast, get_args

from gcdbench.runs.executors.base import Job
from gcdbench.runs.placement import Placement
from gcdbench.runs.request import Request
from gcdbench.runs.strict_json import Fields, parse_table
from gcdbench.splits.protocol import KPolicy


def encode_job(job: Job) -> str:
    """A job as one line of JSON."""
    placement = {
        key: str(value) if isinstance(value, Path) else value
        for key, value in dataclasses.asdict(job.placement).items()
    }
    table = {"request": dataclasses.asdict(job.request), "placement": placement}
    return json.dumps({**table, "options": dict(job.options)} if job.options else table)


def decode_job(text: str) -> Job:
    """The inverse of :func:`encode_job`; a :class:`StoreError` where the text is something else."""
    return job_of(Fields(parse_table(text.encode(errors="surrogatepass"), "job"), "job"))


def job_of(fields: Fields) -> Job:
    """A job from a table that was read: every field has its type, and there is none that a job does not have."""
    asked, placed = fields.inner("request"), fields.inner("placement")
    for found, kind in ((asked, Request), (placed, Placement)):
        if unknown := sorted(set(found.table) - {field.name for field in dataclasses.fields(kind)}):
            raise found.refuse(f"there is no '{unknown[0]}'")
    k_policy = asked.text("k_policy", "known")
    if k_policy not in get_args(KPolicy):
        raise asked.refuse("'k_policy' is none")
    request = Request(
        method=asked.text("method"),
        dataset=asked.text("dataset"),
        variant=asked.optional_text("variant"),
        preset=asked.optional_text("preset"),
        protocol=asked.optional_text("protocol"),
        k_policy=cast(KPolicy, k_policy),
        seed=asked.whole("seed", 0),
        overrides=asked.inner("overrides", {}).table,
        dataset_options=asked.text_table("dataset_options", {}),
        split=asked.optional_text("split"),
    )
    placement = Placement(
        runs=_path(placed, "runs") or Path("runs"),
        cache=_path(placed, "cache"),
        data_root=_path(placed, "data_root"),
        device=placed.text("device", "cpu"),
        workers=_optional_whole(placed, "workers"),
        threads=_optional_whole(placed, "threads"),
        resume=placed.flag("resume", True),
        force=placed.flag("force", False),
        accept_data_issues=placed.flag("accept_data_issues", False),
        observe=placed.texts("observe", []),
        disk_budget=placed.optional_text("disk_budget"),
    )
    return Job(request=request, placement=placement, options=fields.inner("options", {}).table)


def _path(fields: Fields, key: str) -> Path | None:
    text = fields.optional_text(key)
    if text is not None and "\0" in text:
        raise fields.refuse(f"'{key}' is not a path")
    return None if text is None else Path(text)


def _optional_whole(fields: Fields, key: str) -> int | None:
    return None if fields.table.get(key) is None else fields.whole(key)

"""Files of a cluster's queue: any bytes give a job or a StoreError, and looking at a queue survives all of them."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gcdbench.core.errors import StoreError
from gcdbench.runs.executors.base import Job
from gcdbench.runs.executors.looking import look_at_queue
from gcdbench.runs.executors.queue import Queue, QueuedJob, said_path
from gcdbench.runs.placement import Placement
from gcdbench.runs.request import Request

KEY = "0123456789abcdef"
VALUES = st.sampled_from(
    [None, True, -1, 10**30, 0.5, "", "x", "a\0b", "\x1b[2J", "../..", [], [1], ["a"], {}, {"a": 1}, {"a": {"b": []}}]
)
QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def sound(runs: Path) -> dict[str, Any]:
    request = Request(method="kmeans", dataset="phantom", overrides={"lr": 0.1}, dataset_options={"size": "32"})
    placement = Placement(runs=runs, threads=2, observe=("tensorboard",))
    job = Job(request=request, placement=placement, options={"time": 3})
    return QueuedJob(job=job, engine="slurm", engine_job="12_3", environment={"A": "b"}, version="1").to_table()


def places(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    inner = value.items() if isinstance(value, dict) else ()
    return [place for key, item in inner for place in ((*path, key), *places(item, (*path, key)))]


PLACES = places(sound(Path("runs")))


@pytest.mark.parametrize("place", PLACES, ids="/".join)
@pytest.mark.parametrize("value", ["x", 3, [], {"a": 1}, None], ids=repr)
def test_a_job_has_its_types_or_is_refused(tmp_path: Path, place: tuple[str, ...], value: Any) -> None:
    table = sound(tmp_path)
    inner = table
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    try:
        queued = QueuedJob.of_table(table, "job.json")
    except StoreError:
        return
    asked, placed = queued.job.request, queued.job.placement
    assert isinstance(asked.seed, int)
    assert all(isinstance(text, str) for text in (asked.method, asked.dataset, *asked.dataset_options.values()))
    assert all(text is None or isinstance(text, str) for text in (asked.variant, asked.preset, asked.protocol))
    assert placed.threads is None or isinstance(placed.threads, int)
    assert isinstance(queued.job.options, dict)
    assert len(queued.key) == 16


@QUICK
@given(changes=st.lists(st.tuples(st.sampled_from(PLACES), VALUES), min_size=1, max_size=3), torn=st.integers(0, 5))
def test_looking_survives_every_change(tmp_path: Path, changes: list[tuple[tuple[str, ...], Any]], torn: int) -> None:
    queue = Queue(tmp_path)
    table = sound(tmp_path)
    for place, value in changes:
        inner: Any = table
        for key in place[:-1]:
            inner = inner.get(key) if isinstance(inner, dict) else None
        if isinstance(inner, dict):
            inner[place[-1]] = copy.deepcopy(value)
    content = json.dumps(table).encode()
    queue.folder.mkdir(exist_ok=True)
    queue.file(KEY).write_bytes(content[: len(content) - torn * 7])
    look_at_queue(tmp_path)


@QUICK
@given(
    said=st.lists(
        st.binary(max_size=40)
        | st.builds(
            lambda kind, path, error: json.dumps({"type": kind, "path": path, "error": error}).encode(),
            st.sampled_from(["begun", "outcome", "note", 3]),
            VALUES,
            VALUES,
        ),
        max_size=4,
    )
)
def test_looking_survives_what_a_worker_said(tmp_path: Path, said: list[bytes]) -> None:
    queue = Queue(tmp_path)
    queued = QueuedJob.of_table(sound(tmp_path), "job.json")
    queue.write(queued)
    said_path(queue.file(queued.key), queued.attempt).write_bytes(b"\n".join(said) + b"\n")
    look_at_queue(tmp_path)

"""The executors that come with gcdbench."""

from __future__ import annotations

from collections.abc import Iterable

from gcdbench.plugins.hookspecs import hookimpl
from gcdbench.plugins.specs import ExecutorSpec


@hookimpl
def gcdbench_executors() -> Iterable[ExecutorSpec]:
    """In this process, or one worker process per run."""
    return [
        ExecutorSpec(
            name="inline",
            factory="gcdbench.runs.executors.inline:InlineExecutor",
            summary="one run after another, in this process",
        ),
        ExecutorSpec(
            name="process",
            factory="gcdbench.runs.executors.process:ProcessExecutor",
            summary="one worker process per run, several at a time, threads and GPUs pinned",
        ),
    ]

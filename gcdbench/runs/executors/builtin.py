"""The executors that come with gcdbench."""

from __future__ import annotations

from collections.abc import Iterable

from gcdbench.plugins.hookspecs import hookimpl
from gcdbench.plugins.specs import ExecutorSpec


@hookimpl
def gcdbench_executors() -> Iterable[ExecutorSpec]:
    """In this process, in worker processes, or through an engine."""
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
        ExecutorSpec(
            name="slurm",
            factory="gcdbench.runs.executors.slurm:SlurmExecutor",
            config="gcdbench.runs.executors.slurm:SlurmConfig",
            remote=True,
            summary="one job of SLURM per run, as job arrays",
        ),
        ExecutorSpec(
            name="dask",
            factory="gcdbench.runs.executors.dask:DaskExecutor",
            config="gcdbench.runs.executors.dask:DaskConfig",
            remote=True,
            summary="one task of Dask per run, on a scheduler's workers or a cluster of this machine",
        ),
    ]

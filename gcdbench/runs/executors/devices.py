"""Which GPUs there are for concurrent runs, found without importing torch into a process that only hands out work."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from gcdbench.core.errors import ConfigError
from gcdbench.runs.executors.base import Job

VISIBLE = "CUDA_VISIBLE_DEVICES"
ANY_GPU = "cuda"
"""A job on this device takes whichever GPU is free; one on ``cuda:2`` has said which it wants."""


def wants_any_gpu(job: Job) -> bool:
    """Whether the job takes whichever GPU is free."""
    return job.placement.device == ANY_GPU


def require_gpus(jobs: Sequence[Job]) -> tuple[str, ...]:
    """All GPUs of this machine, where a job asks for one; refuses a job whose GPU is not there, before any begins."""
    wanted = {job.placement.device for job in jobs if job.placement.device.partition(":")[0] == ANY_GPU}
    if not wanted:
        return ()
    found = visible_gpus(os.environ)
    here = {ANY_GPU, *(f"{ANY_GPU}:{index}" for index in range(len(found)))} if found else set()
    if missing := sorted(wanted - here):
        there = f"{len(found)} GPUs" if len(found) > 1 else "one GPU" if found else "no GPU"
        raise ConfigError(
            f"The device '{missing[0]}' was asked for, but there is {there} here that PyTorch can use.",
            hint="Run with --device cpu, or look at CUDA_VISIBLE_DEVICES and at the build of PyTorch.",
        )
    return found


def visible_gpus(environment: Mapping[str, str]) -> tuple[str, ...]:
    """GPUs by the names that ``CUDA_VISIBLE_DEVICES`` has for them.

    Where the variable is set (by a batch system, say), it is trusted; otherwise PyTorch is asked how many there are. A
    GPU that it names twice takes two runs at a time.
    """
    if VISIBLE in environment:
        named = [name.strip() for name in environment[VISIBLE].split(",")]
        # As CUDA does it: what follows an invalid name does not exist.
        end = next((i for i, name in enumerate(named) if not name or name.startswith("-")), len(named))
        return tuple(named[:end])
    return tuple(map(str, range(_count_by_torch())))


def _count_by_torch() -> int:
    """In a process of its own: importing torch takes seconds and memory, and a CUDA context must not be shared."""
    command = [sys.executable, "-c", "import torch; print(torch.cuda.device_count())"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    last = asked.stdout.strip().rpartition("\n")[2]
    return int(last) if last.isdecimal() else 0

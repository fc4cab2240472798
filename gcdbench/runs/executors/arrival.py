"""A job before it leaves and when it arrives: what depends on a machine is decided on the machine of the run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from gcdbench.core.places import cache_dir
from gcdbench.core.work import available_cores
from gcdbench.runs.placement import Placement

AUTO = "auto"
"""The device of a job that takes a GPU where it finds one."""
CORES = "GCDBENCH_CORES"
CPU_VARIABLES = (CORES, "SLURM_CPUS_PER_TASK")
"""Where an engine says how many cores a job has got."""


def before_leaving(placement: Placement) -> Placement:
    """The placement with absolute paths, so that it means the same wherever it arrives."""
    data = placement.data_root or (Path(os.environ["GCDBENCH_DATA"]) if os.environ.get("GCDBENCH_DATA") else None)
    return replace(
        placement,
        runs=placement.runs.absolute(),
        cache=(placement.cache or cache_dir()).absolute(),
        data_root=None if data is None else data.expanduser().absolute(),
    )


def cores_here(environment: Mapping[str, str]) -> int:
    """Cores that this job may use: what the batch system says, else what the process may use."""
    for name in CPU_VARIABLES:
        if environment.get(name, "").isdecimal():
            return max(1, int(environment[name]))
    return available_cores()


def on_arrival(placement: Placement, environment: Mapping[str, str]) -> Placement:
    """The placement with device, threads and workers for the machine this process is on."""
    cores = cores_here(environment)
    return replace(
        placement,
        device=_device_here() if placement.device == AUTO else placement.device,
        threads=placement.threads or cores,
        workers=cores if placement.workers is None else placement.workers,
    )


def _device_here() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"

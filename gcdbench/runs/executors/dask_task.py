"""What happens on a Dask worker: a child process does the run, with its share of the threads and a GPU of its own."""

from __future__ import annotations

import os
import platform
import queue
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from gcdbench.core.errors import StoreError
from gcdbench.core.work import available_cores
from gcdbench.runs.executors.arrival import CORES
from gcdbench.runs.executors.devices import VISIBLE, visible_gpus
from gcdbench.runs.executors.queue import log_file
from gcdbench.runs.plan import detect_gpu

CLUSTER_SIZE = "GCDBENCH_DASK_WORKERS"
"""In the environment of a worker that shares its machine with as many workers of one sweep."""
LOOK_SECONDS = 0.2


def work_on(file: str) -> int:
    """Do the job in this file of a queue; what became of it is in its file of events. The worker's exit code."""
    from distributed import get_worker

    if not Path(file).is_file():
        raise StoreError(f"a Dask worker on {platform.node()} does not see '{file}': all must see the same store")
    worker = get_worker()
    index = int(worker.name) if str(worker.name).isdecimal() else 0
    with _own_gpu(_gpus_of(index)) as gpu:
        return _follow(Path(file), _environment(gpu, side_by_side=worker.state.nthreads))


def probe_here(folder: str) -> str:
    """What :mod:`gcdbench.runs.executors.probe` prints on this worker."""
    command = [sys.executable, "-m", "gcdbench.runs.executors.probe", folder]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _environment(gpu: str | None, *, side_by_side: int) -> dict[str, str]:
    """Cores are shared by what runs here at the same time: tasks of this worker, workers of one local cluster."""
    neighbours = side_by_side * int(os.environ.get(CLUSTER_SIZE, "1"))
    environment = {**os.environ, CORES: str(max(1, available_cores() // neighbours))}
    return environment if gpu is None else {**environment, VISIBLE: gpu}


def _follow(file: Path, environment: Mapping[str, str]) -> int:
    command = [sys.executable, "-m", "gcdbench.runs.executors.queue_worker", str(file), "--watch-input"]
    # The pipe stays open as long as this worker lives: its end tells the child to write a checkpoint and to stop.
    log_file(file).parent.mkdir(exist_ok=True)
    with log_file(file).open("ab") as log:
        child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment, start_new_session=True
        )
    assert child.stdin is not None
    try:
        while child.poll() is None:
            if file.with_suffix(".stop").exists():
                child.stdin.close()
                return child.wait()
            time.sleep(LOOK_SECONDS)
        return child.returncode
    finally:
        child.stdin.close()


@lru_cache(maxsize=1)
def _gpus_of(index: int) -> queue.SimpleQueue[str] | None:
    """The free GPUs of this worker, once for its process; None where it has none."""
    own = own_share(gpus_here(os.environ), index, int(os.environ.get(CLUSTER_SIZE, "1")))
    free: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in own:
        free.put(name)
    return free if own else None


@contextmanager
def _own_gpu(free: queue.SimpleQueue[str] | None) -> Iterator[str | None]:
    """A GPU that no other run of this worker has meanwhile; None where it has none."""
    if free is None:
        yield None
        return
    gpu = free.get()
    try:
        yield gpu
    finally:
        free.put(gpu)


def own_share(gpus: tuple[str, ...], index: int, workers: int) -> tuple[str, ...]:
    """The GPUs of one worker of a local cluster; a worker that was started by hand has all that it sees."""
    return gpus[index % workers :: workers]


def gpus_here(environment: Mapping[str, str]) -> tuple[str, ...]:
    """GPUs that this process may use; PyTorch is asked only where a driver is."""
    return visible_gpus(environment) if VISIBLE in environment or detect_gpu() else ()

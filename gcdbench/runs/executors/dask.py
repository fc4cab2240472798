"""Dask: a scheduler that is there already, or a cluster of this machine for as long as the sweep takes.

Dask's part is to bring the name of a job's file to a worker and to bring it elsewhere when that worker is lost. On the
worker a child process does the run, with threads and a GPU of its own; it ends, with a checkpoint, when the Dask worker
dies.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from gcdbench.core.config import Bounds
from gcdbench.core.errors import ConfigError, PluginError, StoreError
from gcdbench.core.work import available_cores
from gcdbench.runs.directory import this_host
from gcdbench.runs.executors.base import Job
from gcdbench.runs.executors.dask_task import CLUSTER_SIZE, gpus_here, probe_here, work_on
from gcdbench.runs.executors.devices import ANY_GPU
from gcdbench.runs.executors.engine import EngineConfig, EngineSilent, EngineState
from gcdbench.runs.executors.giving_up import last_line
from gcdbench.runs.executors.probe import Probed, parse_probed
from gcdbench.runs.executors.queue import log_file
from gcdbench.runs.executors.remote import RemoteExecutor

STOP_SECONDS = 40.0


@dataclass(frozen=True, kw_only=True)
class DaskConfig(EngineConfig):
    """Where the scheduler is: its address (``tcp://host:8786``) or its file; without either, a cluster of this machine.

    workers: of a cluster of this machine, one run each; 0: as ``-j`` says, or half the cores. poll: seconds between
    looks.
    """

    address: str = ""
    scheduler_file: str = ""
    workers: Annotated[int, Bounds(least=0)] = 0
    poll: Annotated[float, Bounds(above=0)] = 1.0


class DaskEngine:
    """Futures of one client."""

    name = "dask"
    can_be_left = False

    def __init__(self, config: DaskConfig) -> None:
        self.poll_seconds = config.poll
        self._config = config
        self._client: Any = None
        self._cluster: Any = None
        self._futures: dict[str, Any] = {}
        self._files: dict[str, Path] = {}

    @property
    def _is_local(self) -> bool:
        return not (self._config.address or self._config.scheduler_file)

    def check(self, jobs: Sequence[tuple[Job, EngineConfig]]) -> None:
        """Refuse a scheduler that does not answer, and a GPU that no worker has."""
        _distributed()
        if not self._is_local:
            self._connect(None)
        wanted = sorted({job.placement.device for job, _ in jobs if job.placement.device.startswith(ANY_GPU)})
        if wanted and not self._count_gpus():
            raise ConfigError(
                f"The device '{wanted[0]}' was asked for, but no worker of Dask has a GPU.",
                hint="Run with --device cpu, or start workers where GPUs are.",
            )

    def _count_gpus(self) -> int:
        if self._is_local:
            return len(gpus_here(os.environ))
        found: dict[str, int] = self._client.run(_gpus_of_worker)
        return sum(found.values()) if found else 1  # workers that are still to come may have some

    def _connect(self, at_once: int | None) -> None:
        if self._client is not None:
            return
        distributed = _distributed()
        try:
            if self._is_local:
                self._cluster = distributed.LocalCluster(**self._local_cluster(at_once))
                self._client = distributed.Client(self._cluster)
            else:
                where = {"scheduler_file": self._config.scheduler_file} if self._config.scheduler_file else {}
                self._client = distributed.Client(self._config.address or None, timeout=20, **where)
        except (OSError, TimeoutError, ValueError) as error:
            raise ConfigError(
                f"There is no Dask scheduler at '{self._config.address or self._config.scheduler_file or 'this host'}'"
                f" ({error}).",
                hint="Look at --executor-set address=…; without an address the sweep makes a cluster of this machine.",
            ) from error

    def _local_cluster(self, at_once: int | None) -> dict[str, Any]:
        """One run for each worker; nothing listens beyond this machine, and there is no dashboard."""
        size = self._config.workers or at_once or max(1, available_cores() // 2)
        return {
            "n_workers": size,
            "threads_per_worker": 1,
            "processes": True,
            "host": "127.0.0.1",
            "dashboard_address": None,
            "worker_dashboard_address": None,
            "memory_limit": 0,  # the runs are child processes: Dask cannot measure them
            "env": {CLUSTER_SIZE: str(size)},
        }

    def submit(self, files: Sequence[Path], config: EngineConfig, at_once: int | None) -> list[str]:
        """One task for each job; Dask takes as many as there are."""
        self._connect(at_once)
        names = []
        for file in files:
            name = f"{this_host()}/{os.getpid()}/{file.stem}/{len(self._futures)}"
            self._futures[name] = self._client.submit(work_on, str(file), key=f"gcdbench/{name}", pure=False)
            self._files[name] = file
            names.append(name)
        return names

    def states(self, names: Sequence[str]) -> Mapping[str, EngineState]:
        """A future that is neither done nor failed is with Dask, which moves it when its worker is lost."""
        if self._client is not None and self._client.status == "connecting":
            raise EngineSilent("The scheduler of Dask does not answer; it is asked again.")
        if self._client is not None and self._client.status != "running":
            raise StoreError(
                "The scheduler of Dask is gone. Its workers' runs end with a checkpoint, or are done.",
                hint="Start a scheduler and workers, then the same sweep: it continues.",
            )
        return {name: "running" for name in names if name in self._futures and not self._futures[name].done()}

    def notes(self) -> list[str]:
        """A scheduler without workers takes tasks all the same."""
        if self._client is None or self._is_local or self._client.scheduler_info(n_workers=-1).get("workers"):
            return []
        return ["The scheduler of Dask has no worker at the moment; runs begin when there is one."]

    def last_words(self, name: str) -> str:
        """What the task raised, or how its child process ended."""
        future = self._futures.get(name)
        if future is None or not future.done():
            return ""
        if future.status == "error":
            return str(future.exception(timeout=5))
        printed = last_line(log_file(self._files[name]))
        return printed if future.status == "finished" else f"Dask calls it {future.status}"

    def stop(self, names: Sequence[str]) -> str:
        """Runs are asked to end, each with a checkpoint, and waited for."""
        marks = [self._files[name].with_suffix(".stop") for name in names if name in self._files]
        for mark in marks:
            mark.touch()
        running = [future for future in self._futures.values() if not future.done()]
        if running and self._client is not None:
            try:
                _distributed().wait(running, timeout=STOP_SECONDS)
            except TimeoutError:
                return "Some runs did not end in time; they end with their Dask worker, or when they are done."
            finally:
                for mark in marks:
                    mark.unlink(missing_ok=True)
        return ""

    def close(self) -> None:
        """The client goes, and with it a cluster that was made for it."""
        for opened in (self._client, self._cluster):
            if opened is not None:
                opened.close()
        self._client = self._cluster = None


class DaskExecutor(RemoteExecutor):
    """``--executor dask``."""

    def __init__(self, config: DaskConfig) -> None:
        super().__init__(DaskEngine(config), config)


def _gpus_of_worker() -> int:
    return len(gpus_here(os.environ))


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise PluginError(
            "The executor 'dask' needs the package distributed.", hint="pip install 'gcdbench[dask]'"
        ) from None
    return distributed


def ask_workers(folder: Path, config: DaskConfig) -> list[Probed]:
    """The probe on every worker of a scheduler, or on the one worker of a cluster of this machine."""
    engine = DaskEngine(config)
    try:
        engine._connect(1)
        said: dict[str, str] = engine._client.run(probe_here, str(folder))
    finally:
        engine.close()
    return [found for text in said.values() for line in text.splitlines() if (found := parse_probed(line))]

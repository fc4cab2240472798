"""SLURM, through submitit: one job for each run, as job arrays.

submitit writes and submits the batch script. What it starts on a node is replaced at once (``os.execv``) by the worker,
so that the worker is SLURM's task: it gets the signals, and nothing of gcdbench is pickled.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from gcdbench.core.config import Bounds, Count, NotNegative
from gcdbench.core.errors import ConfigError, PluginError
from gcdbench.runs.executors.base import Job
from gcdbench.runs.executors.devices import ANY_GPU
from gcdbench.runs.executors.engine import EngineBusy, EngineConfig, EngineSilent, EngineState
from gcdbench.runs.executors.giving_up import last_line
from gcdbench.runs.executors.probe import Probed, parse_probed
from gcdbench.runs.executors.queue import log_folder
from gcdbench.runs.executors.remote import RemoteExecutor

Whole = Annotated[int, Bounds(least=0)]
JOB_NAME = "gcdbench"
NO_LIMIT = 1_000_000
"""Jobs of one array at a time; submitit has a limit of its own where it is not told one."""
FULL = ("temporarily unable", "temporarily unavailable", "queue is full", "try again")
"""Words by which sbatch says that it may take the job later."""
LIMITED = ("limit", "maximum", "policy")
"""Words of a limit: of the number of jobs, which those in the queue use up, or of what one job may ask for."""
USUAL = ("None", "Priority", "Resources", "JobArrayTaskLimit", "BeginTime", "Cleaning", "Dependency", "Prolog")
"""Why jobs wait that will begin by themselves."""
QUEUED = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT")
RUNNING = ("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT")


@dataclass(frozen=True, kw_only=True)
class SlurmConfig(EngineConfig):
    """What a job asks SLURM for; empty or 0 leaves it to the cluster.

    time: minutes. memory: GB per node. cpus: per task. gpus: per node. nodes, tasks: more than one of them in all makes
    the job one distributed run (tasks are per node). at_once: jobs of one array that may run at the same time.
    warning: seconds before the time limit at which a run writes its checkpoint and ends. setup: shell commands before
    the run. more: further options of sbatch, as in ``reservation=mine,exclusive=user``. poll: seconds between looks.
    """

    partition: str = ""
    account: str = ""
    qos: str = ""
    constraint: str = ""
    time: Count = 240
    cpus: Count = 1
    gpus: Whole = 0
    memory: NotNegative = 0.0
    nodes: Count = 1
    tasks: Count = 1
    at_once: Whole = 0
    warning: Count = 90
    setup: str = ""
    more: tuple[str, ...] = ()
    poll: Annotated[float, Bounds(above=0)] = 10.0

    def parameters(self, at_once: int | None) -> dict[str, Any]:
        """The parameters as submitit names them."""
        named = {
            "partition": self.partition,
            "account": self.account,
            "qos": self.qos,
            "constraint": self.constraint,
            "mem": f"{round(self.memory * 1024)}M" if self.memory else "",
            "gpus_per_node": self.gpus,
            "setup": [self.setup] if self.setup else None,
            "array_parallelism": self.at_once or at_once or NO_LIMIT,
            "additional_parameters": dict(_pair(text) for text in self.more) or None,
        }
        return {
            "job_name": JOB_NAME,
            "time": self.time,
            "nodes": self.nodes,
            "ntasks_per_node": self.tasks,
            "cpus_per_task": self.cpus,
            "signal_delay_s": self.warning,
            **{key: value for key, value in named.items() if value},
        }


def _pair(text: str) -> tuple[str, Any]:
    key, separator, value = text.partition("=")
    return key.strip().lstrip("-"), value.strip() if separator else True


class SlurmEngine:
    """sbatch by submitit, squeue for what became of it."""

    name = "slurm"
    can_be_left = True

    def __init__(self, *, poll_seconds: float = 10.0) -> None:
        self.poll_seconds = poll_seconds
        self._waiting: dict[str, str] = {}
        self._ended: dict[str, str] = {}
        self._logs: dict[str, Path] = {}

    def check(self, jobs: Sequence[tuple[Job, EngineConfig]]) -> None:
        """Refuse what can never run: no SLURM or submitit here, or a GPU asked of a cluster that gives none."""
        for program in ("sbatch", "squeue", "srun"):
            if shutil.which(program) is None:
                raise ConfigError(
                    f"SLURM's command '{program}' is not on this machine.",
                    hint="Start the sweep on a login node of the cluster, or use another --executor.",
                )
        _submitit()
        for job, config in jobs:
            assert isinstance(config, SlurmConfig)
            if job.placement.device.startswith(ANY_GPU) and not config.gpus:
                raise ConfigError(
                    f"The device '{job.placement.device}' was asked for, but the jobs ask SLURM for no GPU.",
                    hint="Add --executor-set gpus=1, or leave --device out.",
                )
        for partition in {config.partition for _, config in jobs if isinstance(config, SlurmConfig) and config.gpus}:
            if not _has_gpus(partition):
                where = f"partition '{partition}'" if partition else "cluster"
                raise ConfigError(
                    f"A GPU was asked for, but no node of this {where} has one.",
                    hint="'sinfo -o \"%P %G\"' shows which partition has GPUs; or leave gpus out.",
                )

    def submit(self, files: Sequence[Path], config: EngineConfig, at_once: int | None) -> list[str]:
        """One job array of as many jobs as there is room for."""
        assert isinstance(config, SlurmConfig)
        count = min(len(files), _room())
        refusal = "it holds as many jobs as allowed"
        while count > 0:
            try:
                names = _sbatch(files[:count], config, at_once)
                self._logs |= dict.fromkeys(names, log_folder(files[0]))
                return names
            except _Refused as refused:
                refusal = str(refused)
                if not _may_pass(refusal, alone=count == 1):
                    raise ConfigError(
                        f"SLURM refuses the jobs: {refusal}.", hint="Look at the --executor-set options of the sweep."
                    ) from None
                count //= 2
        raise EngineBusy(f"SLURM takes no more jobs at the moment ({refusal}).")

    def states(self, names: Sequence[str]) -> Mapping[str, EngineState]:
        """What squeue says about the jobs, another user's and those that ended a moment ago included."""
        found: dict[str, EngineState] = {}
        self._waiting = {}
        asked = set(names)
        command = ["squeue", "--noheader", f"--name={JOB_NAME}", "--array", "--states=all", "--format=%i %T %r"]
        for line in _ask(command).splitlines():
            name, state, reason = [*line.strip().split(" ", 2), "", ""][:3]
            if name not in asked:
                continue
            if state in QUEUED:
                found[name] = "queued"
                self._waiting[name] = reason
            elif state in RUNNING:
                found[name] = "running"
            elif state == "CANCELLED":
                found[name] = "cancelled"
            else:
                self._ended[name] = state
        return found

    def notes(self) -> list[str]:
        """Jobs that wait for something else than their turn."""
        reasons = Counter(reason for reason in self._waiting.values() if reason and reason not in USUAL)
        return [f"SLURM holds jobs back for the reason '{reason}'." for reason in sorted(reasons)]

    def last_words(self, name: str) -> str:
        """The last state that squeue showed, and the last line that the job has printed to its error output."""
        state = self._ended.get(name, "")
        printed = last_line(self._logs[name] / f"{name}_0_log.err") if name in self._logs else ""
        return ", ".join(filter(None, [state if state != "COMPLETED" else "", printed]))

    def stop(self, names: Sequence[str]) -> str:
        """Jobs stay in the queue when nobody watches."""
        arrays = sorted({name.partition("_")[0] for name in names})
        return f"{len(names)} jobs stay with SLURM; 'scancel {' '.join(arrays)}' would end them."

    def close(self) -> None:
        """Nothing is open."""


class SlurmExecutor(RemoteExecutor):
    """``--executor slurm``."""

    def __init__(self, config: SlurmConfig) -> None:
        super().__init__(SlurmEngine(poll_seconds=config.poll), config)


class _Refused(Exception):
    """What sbatch said."""


def _submitit() -> Any:
    try:
        import submitit
    except ImportError:
        raise PluginError(
            "The executor 'slurm' needs the package submitit.", hint="pip install 'gcdbench[slurm]'"
        ) from None
    return submitit


def _sbatch(files: Sequence[Path], config: SlurmConfig, at_once: int | None) -> list[str]:
    from submitit.core.utils import FailedJobError, FailedSubmissionError

    executor = _submitit().SlurmExecutor(folder=log_folder(files[0]))
    executor.update_parameters(**config.parameters(at_once))
    command = [sys.executable, "-u", "-m", "gcdbench.runs.executors.queue_worker"]
    try:
        with executor.batch():
            jobs = [executor.submit(os.execv, sys.executable, [*command, str(file)]) for file in files]
    except (FailedJobError, FailedSubmissionError) as error:
        raise _Refused(_sbatch_error(str(error))) from error
    return [str(job.job_id) for job in jobs]


def _may_pass(refusal: str, *, alone: bool) -> bool:
    """Whether waiting may help: a limit that one job exceeds, with none in the queue, will not change with time."""
    said = refusal.lower()
    if any(word in said for word in FULL):
        return True
    if "invalid" in said or not any(word in said for word in LIMITED):
        return False
    return not alone or bool(_ask(["squeue", "--noheader", "--me", "--format=%i"]).strip())


def _sbatch_error(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if "sbatch: error:" in line] or text.strip().splitlines()[-1:]
    return lines[-1].rpartition("sbatch: error: ")[2].removeprefix("Batch job submission failed: ").rstrip(".")


def _ask(command: list[str]) -> str:
    """What a command of SLURM prints; an error of the controller is silence, not an answer."""
    try:
        asked = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or str(error)
        raise EngineSilent(f"SLURM does not answer ({said.strip().splitlines()[-1]}); it is asked again.") from error
    return asked.stdout


def _room() -> int:
    """Jobs that SLURM takes in one array now: sbatch would wait for minutes before it says that the queue is full."""
    limits = {"MaxJobCount": 10000, "MaxArraySize": 1001}
    for line in _ask(["scontrol", "show", "config"]).splitlines():
        key, _, value = line.partition("=")
        if key.strip() in limits and value.strip().isdecimal():
            limits[key.strip()] = int(value)
    held = len(_ask(["squeue", "--noheader", "--array", "--states=all", "--format=%i"]).splitlines())
    # An array itself takes a place in addition to its jobs.
    return max(0, min(limits["MaxJobCount"] - held - 1, limits["MaxArraySize"] - 1))


def _has_gpus(partition: str) -> bool:
    command = ["sinfo", "--noheader", "--format=%G", *(["--partition", partition] if partition else [])]
    return "gpu" in _ask(command)


def ask_nodes(folder: Path, config: SlurmConfig, *, nodes: int = 2, seconds: float = 120.0) -> list[Probed]:
    """The probe on up to ``nodes`` nodes of the cluster; nothing where none is free in time."""
    nodes = min(nodes, len(set(_ask(["sinfo", "--noheader", "--Node", "--format=%N"]).split())))
    given = {"partition": config.partition, "account": config.account, "qos": config.qos}
    options = [f"--{key}={value}" for key, value in given.items() if value]
    # srun itself would take the variables of a job that this process may be part of.
    command = ["srun", f"--nodes={nodes}", "--ntasks-per-node=1", "--time=5", "--quiet", *options]
    command += [sys.executable, "-m", "gcdbench.runs.executors.probe", str(folder)]
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith("SLURM_") or key == "SLURM_CONF"
    }
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, env=environment)
    except subprocess.TimeoutExpired:
        return []
    return [found for line in asked.stdout.splitlines() if (found := parse_probed(line))]

"""The worker of a queued job: ``python -m gcdbench.runs.executors.queue_worker FILE``.

It reads its job from a file of the queue (see :mod:`gcdbench.runs.executors.queue`), decides device and threads here,
where the run happens, does the run, and appends what happens to the job's file of events, whose last line is the
outcome. A warning of the batch system (SIGUSR2, SIGTERM) makes the run write a checkpoint and end as interrupted. With
``--watch-input`` the end of standard input does the same: whoever started the worker is gone.

As one task of several (SLURM's ``srun`` with more than one) it is one rank of a distributed run.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gcdbench.runs.events import Event
    from gcdbench.runs.executors.base import Job, Outcome
    from gcdbench.runs.executors.queue import QueuedJob

WARNINGS = (signal.SIGUSR2, signal.SIGTERM, signal.SIGINT)
STEP_SECONDS = 10.0
"""A step of a training that is asked to stop may take this long; then the run is interrupted wherever it is."""
GRACE_SECONDS = 20.0
BUSY_SECONDS = 300.0
"""How long a run is waited for that a dying process, perhaps on another host, still holds."""
FIRST_PORT, PORTS = 20000, 20000
EXIT_INTERRUPTED = 130


def main(arguments: list[str]) -> int:
    """Do the job; the exit code is 0 when its run is done."""
    file = Path(arguments[0])
    for number in WARNINGS:
        signal.signal(number, _warn)
    signal.signal(signal.SIGUSR1, _interrupt)
    try:
        _join_ranks(os.environ)
        return _work(file, watched="--watch-input" in arguments)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _work(file: Path, *, watched: bool) -> int:
    from gcdbench.core.errors import GCDBenchError
    from gcdbench.runs.executors.queue import INTERRUPTED, read_queued

    try:
        queued = read_queued(file)
    except GCDBenchError as error:  # there is no file of events to say it in
        sys.stderr.write(f"{error.message}\n")
        return 1
    emit = _writer(file, queued)
    if watched:
        threading.Thread(target=_watch_input, name="watch", daemon=True).start()
    from gcdbench.runs.events import JobEnded
    from gcdbench.runs.executors.arrival import on_arrival

    try:
        if obstacle := _settle_in(queued) or _too_many_starts(file, queued, os.environ):
            emit(JobEnded(error=obstacle))
            return 1
        placement = on_arrival(queued.job.placement, os.environ)
        return 1 if _run_when_free(replace(queued.job, placement=placement), emit).error else 0
    except KeyboardInterrupt:
        emit(JobEnded(error=INTERRUPTED))
        raise


def _settle_in(queued: QueuedJob) -> str:
    """Environment, directory and threads as the job wants them; why it cannot be done here, or ""."""
    import gcdbench

    if queued.version not in ("", gcdbench.__version__):
        return (
            f"its worker has gcdbench {gcdbench.__version__} and the sweep was submitted with {queued.version}; "
            "install the same version on both, and start the sweep again"
        )
    os.environ.update(queued.environment)
    _pin_threads(queued)
    try:
        os.chdir(queued.directory or ".")
    except OSError as error:
        return f"its worker cannot enter the directory of the sweep, '{queued.directory}' ({error.strerror})"
    return ""


def _run_when_free(job: Job, emit: Callable[[Event], None]) -> Outcome:
    """Do the run; where another process still writes it, wait for that process to end, but not for ever."""
    from gcdbench.runs.events import JobEnded
    from gcdbench.runs.executors.job import run_job

    until = time.monotonic() + BUSY_SECONDS

    def tell(event: Event) -> None:
        if not isinstance(event, JobEnded):
            emit(event)

    while (outcome := run_job(job, tell)).busy and time.monotonic() < until:
        time.sleep(2)
    emit(outcome.event())
    return outcome


def _writer(file: Path, queued: QueuedJob) -> Callable[[Event], None]:
    """Appends events to the job's file of events; only the first rank does, the others print what they died of."""
    from gcdbench.runs.events import JobEnded, encode_event
    from gcdbench.runs.executors.queue import said_path

    def complain(event: Event) -> None:
        if isinstance(event, JobEnded) and event.error:
            sys.stderr.write(f"{event.error}\n")

    if not _is_first_rank():
        return complain
    path = said_path(file, queued.attempt)
    path.touch()  # somebody is here

    def write(event: Event) -> None:
        with path.open("a", encoding="utf-8") as said:
            said.write(encode_event(event) + "\n")

    return write


def _is_first_rank() -> bool:
    return os.environ.get("RANK", "0") == "0"


def _too_many_starts(file: Path, queued: QueuedJob, environment: Mapping[str, str]) -> str:
    """Why a run is given up that was begun as often as it may be; its own record says so as well.

    SLURM starts a job again whose node has failed or that made room for another, under the same number: such starts
    count as attempts.
    """
    from gcdbench.runs.executors.giving_up import give_up, times
    from gcdbench.runs.executors.queue import Said, said_path

    text = environment.get("SLURM_RESTART_COUNT", "0")
    starts = queued.attempt + (int(text) if text.isdecimal() else 0)
    if starts <= queued.attempts:
        return ""
    reason = (
        f"the run was begun {times(starts - 1)} and its job was ended each time (a node failed, or other jobs came "
        f"first); 'attempts' allows {queued.attempts}"
    )
    if _is_first_rank():
        for attempt in range(queued.attempt, 0, -1):
            said = Said(said_path(file, attempt))
            said.news()
            if said.run:
                give_up(said.run, reason)
                break
    return reason


def _pin_threads(queued: QueuedJob) -> None:
    """Before anything that computes is imported: it reads these variables once."""
    from gcdbench.runs.executors.arrival import cores_here
    from gcdbench.runs.executors.process import THREAD_VARIABLES

    threads = str(queued.job.placement.threads or cores_here(os.environ))
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, threads))


def _join_ranks(environment: os._Environ[str]) -> None:
    """Several tasks of one SLURM job step are the ranks of one run, as ``torchrun`` would name them."""
    tasks = environment.get("SLURM_STEP_NUM_TASKS", "1")
    if "RANK" in environment or not tasks.isdecimal() or int(tasks) < 2:
        return
    job = environment.get("SLURM_JOB_ID", "0")
    environment.update(
        RANK=environment["SLURM_PROCID"],
        LOCAL_RANK=environment.get("SLURM_LOCALID", "0"),
        WORLD_SIZE=tasks,
        # The step is started on the first node of the job, where its first task runs as well.
        MASTER_ADDR=environment.get("SLURM_LAUNCH_NODE_IPADDR", "127.0.0.1"),
        MASTER_PORT=str(FIRST_PORT + int(job) % PORTS),
    )


def _warn(number: int, frame: FrameType | None) -> None:
    """Ask the training to stop after its step; a second warning changes nothing."""
    for other in WARNINGS:
        signal.signal(other, signal.SIG_IGN)
    threading.Thread(target=_end_softly, name="end", daemon=True).start()


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Only this process sends it to itself, see below."""
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    raise KeyboardInterrupt


def _end_softly() -> None:
    from gcdbench.training.stopping import ask_to_stop

    ask_to_stop()
    time.sleep(STEP_SECONDS)
    _interrupt_main()


def _interrupt_main() -> None:
    """Interrupt the main thread wherever it is, a sleep included; what does not end then no longer has the lock."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
    time.sleep(GRACE_SECONDS)
    os._exit(EXIT_INTERRUPTED)


def _watch_input() -> None:
    """Wait for the end of standard input, then end as by a warning."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    _end_softly()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

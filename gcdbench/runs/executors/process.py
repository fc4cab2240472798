"""One worker process a run, several side by side, each pinned to its share of the threads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from gcdbench.runs.events import Event, JobEnded, decode_event
from gcdbench.runs.executors.base import Job, Outcome
from gcdbench.runs.executors.wire import encode_job

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
GRACE_SECONDS = 20.0


class ProcessExecutor:
    """Worker processes; Ctrl-C ends them in an orderly way, so that each can be resumed."""

    def __init__(self) -> None:
        self._children: set[subprocess.Popen[str]] = set()
        self._guard = threading.Lock()
        self._stopping = False

    def run(self, jobs: Sequence[Job], *, parallel: int, listener: Callable[[Job, Event], None]) -> list[Outcome]:
        """Execute all jobs, at most ``parallel`` at a time."""
        with ThreadPoolExecutor(max_workers=max(1, parallel)) as pool:
            futures = [pool.submit(self._one, job, listener) for job in jobs]
            try:
                return [future.result() for future in futures]
            except KeyboardInterrupt:
                self._stop()
                raise

    def _one(self, job: Job, listener: Callable[[Job, Event], None]) -> Outcome:
        with self._guard:
            if self._stopping:
                return Outcome(job=job, path="", error="not started")
            child = subprocess.Popen(
                [sys.executable, "-m", "gcdbench.runs.executors.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=_environment(job),
                start_new_session=True,  # Ctrl-C reaches the parent, which passes it on
            )
            self._children.add(child)
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        errors: list[str] = []
        drain = threading.Thread(target=lambda stream: errors.append(stream.read()), args=(child.stderr,), daemon=True)
        drain.start()
        child.stdin.write(encode_job(job) + "\n")
        child.stdin.close()
        outcome: JobEnded | None = None
        for line in child.stdout:
            event = decode_event(line)
            if event is None:  # something a library printed
                continue
            if isinstance(event, JobEnded):
                outcome = event
            listener(job, event)
        child.wait()
        drain.join()
        with self._guard:
            self._children.discard(child)
        if outcome is None:
            last = "".join(errors).strip().splitlines()[-1:] or ["no message"]
            outcome = JobEnded(error=f"the worker ended with code {child.returncode}: {last[0]}")
        return Outcome(job=job, path=outcome.path, error=outcome.error)

    def _stop(self) -> None:
        with self._guard:
            self._stopping = True
            children = list(self._children)
        for child in children:
            child.send_signal(signal.SIGINT)
        for child in children:
            try:
                child.wait(timeout=GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()


def _environment(job: Job) -> dict[str, str]:
    environment = dict(os.environ)
    if job.placement.threads is not None:
        environment |= dict.fromkeys(THREAD_VARIABLES, str(job.placement.threads))
    return environment

"""One worker process per run, several side by side, each with its share of the threads and a GPU of its own."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import IO, Any

from gcdbench.runs.executors.base import Job, JobListener, Outcome
from gcdbench.runs.executors.devices import VISIBLE, require_gpus, wants_any_gpu
from gcdbench.runs.executors.wire import encode_job

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
GRACE_SECONDS = 20.0


class ProcessExecutor:
    """Worker processes. Ctrl-C ends them in an orderly way, so that each can be resumed; when this process is killed,
    they notice and end in the same way by themselves."""

    def __init__(self) -> None:
        self._children: set[subprocess.Popen[str]] = set()
        self._guard = threading.Lock()
        self._stopping = False
        self._free_gpus: queue.SimpleQueue[str] = queue.SimpleQueue()

    def run(self, jobs: Sequence[Job], *, parallel: int, listener: JobListener) -> list[Outcome]:
        """Execute all jobs, at most ``parallel`` at a time, and at most one on each GPU."""
        self._free_gpus = queue.SimpleQueue()
        for gpu in require_gpus(jobs):
            self._free_gpus.put(gpu)
        with ThreadPoolExecutor(max_workers=max(1, parallel)) as pool:
            futures = [pool.submit(self._one, job, listener) for job in jobs]
            try:
                return [future.result() for future in futures]
            except KeyboardInterrupt:
                self._stop()
                raise

    def _one(self, job: Job, listener: JobListener) -> Outcome:
        with self._own_gpu(job) as gpu:
            child = self._start(job, gpu)
            if child is None:
                return Outcome(job=job, error="not started")
            try:
                return self._follow(child, job, listener)
            finally:
                with self._guard:
                    self._children.discard(child)

    @contextmanager
    def _own_gpu(self, job: Job) -> Iterator[str | None]:
        """A GPU that no other run has meanwhile; None for a job that wants none, or has named one."""
        if not wants_any_gpu(job):
            yield None
            return
        gpu = self._free_gpus.get()
        try:
            yield gpu
        finally:
            self._free_gpus.put(gpu)

    def _start(self, job: Job, gpu: str | None) -> subprocess.Popen[str] | None:
        with self._guard:
            if self._stopping:
                return None
            child = subprocess.Popen(
                [sys.executable, "-m", "gcdbench.runs.executors.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=_environment(job, gpu),
                start_new_session=True,  # Ctrl-C reaches the parent, which passes it on
            )
            self._children.add(child)
        return child

    def _follow(self, child: subprocess.Popen[str], job: Job, listener: JobListener) -> Outcome:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        errors: list[str] = []
        drain = threading.Thread(target=_read_all, args=(child.stderr, errors), daemon=True)
        drain.start()
        # The pipe stays open as long as this process lives: its end tells the worker that nobody waits any more.
        with suppress(BrokenPipeError):  # a worker that died at once says why by its code and its last words
            child.stdin.write(encode_job(job) + "\n")
            child.stdin.flush()
        outcome: Outcome | None = None
        for line in child.stdout:
            event = _event(line)
            if event is None:
                continue
            if event.get("type") == "outcome":
                outcome = Outcome.of_event(job, event)
            listener(job, event)
        child.wait()
        drain.join()
        with suppress(BrokenPipeError):
            child.stdin.close()
        if outcome is None:
            last = "".join(errors).strip().splitlines()[-1:] or ["no message"]
            outcome = Outcome(job=job, error=f"the worker ended with code {child.returncode}: {last[0]}")
            listener(job, outcome.event())
        return outcome

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


def _read_all(stream: IO[str], into: list[str]) -> None:
    into.append(stream.read())


def _event(line: str) -> dict[str, Any] | None:
    """An event of a worker; None for something that a library printed, which may even read like JSON: a number, say."""
    try:
        value = json.loads(line)
    except json.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _environment(job: Job, gpu: str | None) -> dict[str, str]:
    environment = dict(os.environ)
    if job.placement.threads is not None:
        environment |= dict.fromkeys(THREAD_VARIABLES, str(job.placement.threads))
    if gpu is not None:
        environment[VISIBLE] = gpu
    return environment

"""One job in a worker process: what it says, how it ends when nobody waits for it, and which GPU it sees."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gcdbench.api import Job, Outcome, decode_job, encode_job, run_job
from gcdbench.core.errors import ConfigError
from gcdbench.plugins.manager import get_manager
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.executors.devices import visible_gpus
from gcdbench.runs.executors.inline import InlineExecutor
from gcdbench.runs.executors.process import ProcessExecutor
from gcdbench.runs.placement import Placement
from gcdbench.runs.record import INTERRUPTED
from gcdbench.runs.request import Request

TOY = """
import os, time
from gcdbench.api import Prediction
from gcdbench.core.errors import PeerLost
from gcdbench.plugins import MethodSpec, hookimpl


class Toy:
    def __init__(self, config, task, ctx):
        self.k, self.ctx = task.k, ctx

    def fit(self, data):
        if os.environ.get("TOY") == "fails":
            raise ValueError("toy failure")
        if os.environ.get("TOY") == "is left alone":
            raise PeerLost("nobody answers")
        if os.environ.get("TOY") in ("sleeps", "talks"):
            for _ in range(1200):
                self.ctx.log({"type": "note", "message": "still here"})
                time.sleep(60 if os.environ["TOY"] == "sleeps" else 0.05)

    def predict(self, images):
        return Prediction(ids=images.ids, cluster=images.ids % self.k, k_hat=self.k, anchored=False)


@hookimpl
def gcdbench_methods():
    return [MethodSpec(name="toy", api=2, factory=__name__ + ":Toy", needs_backbone=False)]
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Job]:
    """A job of the toy method on a small phantom."""
    (tmp_path / "toy.py").write_text(TOY)
    monkeypatch.setenv("GCDBENCH_PLUGINS", str(tmp_path / "toy.py"))
    get_manager.cache_clear()
    options = {"n_per_class": "6"}
    request = Request(
        method="toy", dataset="phantom", preset="smoke", overrides={"image_size": 32}, dataset_options=options
    )
    yield Job(request=request, placement=Placement(runs=tmp_path / "runs", workers=0))
    get_manager.cache_clear()


def only_run(job: Job) -> RunDirectory:
    [path] = job.placement.runs.glob("*/*/*")
    return RunDirectory(path)


def test_a_job_tells_its_events_and_at_last_its_outcome(job: Job) -> None:
    events: list[Any] = []
    outcome = run_job(job, events.append)
    assert outcome == Outcome(job=job, path=str(only_run(job).path))
    assert Outcome.of_event(job, events[-1]) == outcome
    again = run_job(decode_job(encode_job(job)))
    assert again.reused
    assert again.path == outcome.path


def test_whatever_a_method_raises_is_the_outcome_of_its_job_with_file_and_line(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = 1 + next(i for i, text in enumerate(TOY.splitlines()) if "raise ValueError" in text)
    monkeypatch.setenv("TOY", "fails")
    heard: list[Any] = []
    [outcome] = InlineExecutor().run([job], parallel=1, listener=lambda job, event: heard.append(event))
    assert outcome.error == f"ValueError: toy failure (toy.py, line {line})"
    assert heard[-1].error == outcome.error
    monkeypatch.delenv("TOY")
    nowhere = dataclasses.replace(job, request=dataclasses.replace(job.request, dataset="nowhere"))
    outcomes = InlineExecutor().run([nowhere, job], parallel=1, listener=lambda job, event: None)
    assert ["There is no dataset named 'nowhere'" in o.error for o in outcomes] == [True, False]
    assert not outcomes[1].error


def test_a_run_that_lost_its_other_processes_is_interrupted_and_not_failed(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY", "is left alone")
    [outcome] = InlineExecutor().run([job], parallel=1, listener=lambda job, event: None)
    assert outcome.error == INTERRUPTED
    assert only_run(job).status() == INTERRUPTED


def vanish(worker: subprocess.Popen[bytes]) -> None:
    """As when the parent is killed: all of its ends of the pipes are closed at once."""
    for stream in (worker.stdin, worker.stdout, worker.stderr):
        assert stream is not None
        stream.close()


@pytest.mark.parametrize(
    ("toy", "end"),
    [("sleeps", vanish), ("talks", vanish), ("sleeps", lambda worker: worker.send_signal(signal.SIGTERM))],
    ids=["silent-parent-gone", "talking-parent-gone", "terminated"],
)
def test_a_worker_that_nobody_waits_for_leaves_an_interrupted_run(
    job: Job, toy: str, end: Callable[[subprocess.Popen[bytes]], None]
) -> None:
    worker = subprocess.Popen(
        [sys.executable, "-m", "gcdbench.runs.executors.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"TOY": toy},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),  # as shells start a job in the background
    )
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(encode_job(job).encode() + b"\n")
    worker.stdin.flush()
    for line in worker.stdout:  # until it is in the middle of fit
        if json.loads(line).get("message") == "still here":
            break
    end(worker)
    assert worker.wait(timeout=30) == 130
    run = only_run(job)
    assert run.record().status == "interrupted"
    assert not run._locked()
    assert not run_job(job).error  # and it can be done


FAKE_GPU = """
import os, pathlib, time

folder, gpu = pathlib.Path(os.environ["GPU_FOLDER"]), os.environ.get("CUDA_VISIBLE_DEVICES", "")
(folder / "seen" / f"{os.getpid()} {gpu}").touch()
try:
    os.close(os.open(folder / f"busy-{gpu}", os.O_CREAT | os.O_EXCL))
except FileExistsError:
    (folder / "seen" / f"{os.getpid()} clash").touch()
deadline = time.monotonic() + 60
while len(list((folder / "seen").iterdir())) < 4 and time.monotonic() < deadline:
    time.sleep(0.05)
(folder / f"busy-{gpu}").unlink(missing_ok=True)
os._exit(3)
"""
"""A plugin file that notes which GPU its process sees, waits for three others, and ends the process."""


def test_each_of_four_concurrent_runs_sees_another_gpu(
    tmp_path: Path, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fake.py").write_text(FAKE_GPU)
    (tmp_path / "seen").mkdir()
    monkeypatch.setenv("GCDBENCH_PLUGINS", str(tmp_path / "fake.py"))
    monkeypatch.setenv("GPU_FOLDER", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")  # as a batch system gives a part of a node
    on_gpu = dataclasses.replace(job, placement=dataclasses.replace(job.placement, device="cuda"))
    outcomes = ProcessExecutor().run([on_gpu] * 6, parallel=6, listener=lambda job, event: None)
    assert all("ended with code 3" in outcome.error for outcome in outcomes)
    seen = [path.name.split()[1] for path in (tmp_path / "seen").iterdir()]
    assert len(seen) == 6
    assert set(seen) == {"4", "5", "6", "7"}


@pytest.mark.parametrize("executor", [InlineExecutor, ProcessExecutor])
@pytest.mark.parametrize(("visible", "device", "there"), [("", "cuda", "no GPU"), ("3", "cuda:1", "one GPU")])
def test_a_gpu_that_is_not_there_is_refused_before_any_job_begins(
    job: Job, monkeypatch: pytest.MonkeyPatch, executor: type[Any], visible: str, device: str, there: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    on_gpu = dataclasses.replace(job, placement=dataclasses.replace(job.placement, device=device))
    with pytest.raises(ConfigError, match=f"'{device}' was asked for, but there is {there}"):
        executor().run([job, on_gpu], parallel=2, listener=lambda job, event: pytest.fail("a job began"))
    assert not job.placement.runs.exists()


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("0,1", ("0", "1")),
        (" 2 , GPU-8a1b ", ("2", "GPU-8a1b")),
        ("", ()),
        ("-1", ()),
        ("0,-1,2", ("0",)),
        ("1,1", ("1", "1")),
    ],
)
def test_gpus_are_named_as_cuda_names_them(text: str, gpus: tuple[str, ...]) -> None:
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": text}) == gpus


def test_without_the_variable_torch_says_how_many_gpus_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert visible_gpus({}) == tuple(map(str, range(torch.cuda.device_count())))

"""One run from plan to scores. Every number that gcdbench prints is computed here.

dataset → image store → split → method.fit → method.predict → stored predictions → evaluation.
"""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import tomli_w

from gcdbench.core.errors import GCDBenchError, PeerLost, StoreError, TrainingError
from gcdbench.core.identity import run_id
from gcdbench.images.image_set import ImageSet
from gcdbench.models.card_file import card_path, change_names
from gcdbench.runs.attempt import EMBEDDINGS, PREDICTIONS, Attempt, attempt_home
from gcdbench.runs.auto_views import decide_auto_views
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.evaluate import attach_truth, score_run
from gcdbench.runs.events import Begun, Event, ObserverFailed, Progress, Resumed, StepProgress, ignore
from gcdbench.runs.execution import Execution, Prepared, evaluation_sets, make_context, prepare_data, task_info
from gcdbench.runs.observers.watch import Watch
from gcdbench.runs.plan import Materials
from gcdbench.runs.predictions import save_arrays
from gcdbench.runs.reader import parse_split
from gcdbench.runs.record import DONE, Record, Scores, StoredFile
from gcdbench.runs.recovery import recover
from gcdbench.runs.strict_json import Fields
from gcdbench.splits.manifest import SplitManifest
from gcdbench.training.method import Method, Prediction, SavesModel


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """Where a run is stored and what came out; ``reused`` when it had been done before."""

    directory: RunDirectory
    scores: Scores
    reused: bool

    @cached_property
    def record(self) -> Record:
        """Everything that was recorded of the run."""
        return self.directory.record()


@dataclass(frozen=True, kw_only=True)
class Computed:
    """A fitted method, what it said about each evaluation set, and how long that took."""

    method: Method
    predictions: Mapping[str, Prediction]
    seconds: Mapping[str, float]


def execute(execution: Execution, prepare: Callable[[Execution], Prepared] = prepare_data) -> RunResult:
    """Do the run, or find that it has been done; ``prepare`` gets its data."""
    plan, placement = execution.plan, execution.placement
    world_size, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    prepared = prepare(execution)
    execution = decide_auto_views(execution, prepared)
    plan = execution.plan
    backbone = execution.manager.get("backbones", plan.settings.backbone) if plan.method.needs_backbone else None
    identity = plan.identity(
        Materials(
            dataset=prepared.source.card.name,
            manifest_sha256=prepared.split.sha,
            images=prepared.store.key,
            weights_sha256=backbone.weights_sha256(plan.settings.weights) if backbone else "",
            world_size=world_size,
            accepted_data_issues=prepared.issues,
        )
    )
    directory = RunDirectory.at(placement.runs, prepared.source.card.name, plan.method.name, run_id(identity))
    if (reused := _reusable(directory, force=placement.force)) is not None:
        return reused
    execution.listener(Begun(path=str(directory.path)))
    from gcdbench.runs.environment import describe_environment, require_device  # torch is not needed until here
    from gcdbench.training.distributed import process_group

    require_device(placement.device)
    with process_group(placement.device):
        if rank != 0:
            compute(replace(execution, listener=ignore), prepared, attempt_home(directory) / "checkpoint")
            return RunResult(directory=directory, scores=Scores(), reused=False)
        with directory.writing():
            recover(directory)
            # Another process may have finished the run since; with several ranks all of them must compute.
            if world_size == 1 and (reused := _reusable(directory, force=placement.force)) is not None:
                return reused
            attempt = Attempt(directory, _new_record(execution, prepared, identity, directory.path, world_size))
            attempt.begin(
                config_toml=tomli_w.dumps(plan.resolved()),
                environment=describe_environment(execution.manager, device=placement.device, threads=placement.threads),
            )
            return _run_and_score(execution, prepared, attempt)


def _reusable(directory: RunDirectory, *, force: bool) -> RunResult | None:
    """The result of a run that is done already, unless it is to be repeated; a damaged one is not passed over."""
    if force or not directory.exists():
        return None
    try:
        record = directory.record()
        if record.status != DONE or record.scores is None:
            return None
        record.require_readable()
    except StoreError as error:
        raise StoreError(
            f"The run '{directory.path.name}' already exists and cannot be used: {error.message}",
            hint="'gcdbench rescore' restores scores from intact predictions; 'gcdbench run --force' makes the "
            "run again.",
        ) from error
    return RunResult(directory=directory, scores=record.scores, reused=True)


def _run_and_score(execution: Execution, prepared: Prepared, attempt: Attempt) -> RunResult:
    """The part of a run whose failure is recorded in its directory."""
    resumed = False
    watch = Watch(execution.placement.observe, execution.manager, attempt.directory.path)

    def notify(hook: str, **arguments: Any) -> None:
        told = {"run": attempt.record, **arguments}
        for failure in (*execution.manager.notify(hook, **told), *watch.notify(hook, **told)):
            attempt.append_event(ObserverFailed(error=failure))

    def log(event: Event) -> None:
        nonlocal resumed
        resumed = resumed or isinstance(event, Resumed)
        execution.listener(event)
        if not isinstance(event, (Progress, StepProgress)):
            attempt.append_event(event)
            notify("gcdbench_run_event", event=event)

    def fail(error: BaseException, message: str) -> None:
        # Where not even this can be written, the first error is the one to report.
        with suppress(StoreError, OSError):
            attempt.fail(message, traceback.format_exc())
            notify("gcdbench_run_failed", error=error)

    notify("gcdbench_run_started")
    try:
        computed = compute(replace(execution, listener=log), prepared, attempt.checkpoint_dir)
        record = replace(
            attempt.record,
            predictions=_save_predictions(attempt.home, computed.predictions, prepared.split),
            # The time of a resumed run's earlier parts is not known; the time of its last part would flatter it.
            seconds={} if resumed else computed.seconds,
            resumed=resumed,
        )
        method = computed.method
        del computed  # the embeddings are stored; a model of many images needs their room
        if isinstance(method, SavesModel):
            method.save_model(attempt.home)
            # A method is not told what its classes are called. One of an earlier version may save something else.
            if card_path(attempt.home).exists():
                change_names(attempt.home, classes=prepared.split.classes[: prepared.split.k_old])
        scores = score_run(record, execution.manager)
        attempt.finish(record, scores)
    except (KeyboardInterrupt, PeerLost):
        attempt.interrupt()
        raise
    except SystemExit as error:  # with the code 0 a run without a result would pass for a success
        message = f"The method '{execution.plan.method.name}' ended the process (exit code {error.code})."
        fail(error, message)
        raise TrainingError(message, hint="A method has to raise an error instead.") from error
    except Exception as error:
        fail(error, error.message if isinstance(error, GCDBenchError) else execution.manager.explain(error))
        raise
    notify("gcdbench_run_finished", scores=scores)
    return RunResult(directory=attempt.directory, scores=scores, reused=False)


def compute(execution: Execution, prepared: Prepared, checkpoint_dir: Path | None) -> Computed:
    """Train and predict. What the method is given holds no hidden label."""
    plan, split, pixels = execution.plan, prepared.split, prepared.store.pixels
    ctx = make_context(execution, prepared, checkpoint_dir=checkpoint_dir)
    method: Method = plan.method.load()(plan.config, task_info(plan, split), ctx)
    started = time.perf_counter()
    method.fit(split.data(pixels))
    fitted = time.perf_counter()
    predictions = {
        name: checked_prediction(method.predict(ImageSet(ids=ids, store=pixels)), ids)
        for name, ids in evaluation_sets(split).items()
    }
    seconds = {"fit": round(fitted - started, 3), "predict": round(time.perf_counter() - fitted, 3)}
    return Computed(method=method, predictions=predictions, seconds=seconds)


def checked_prediction(prediction: Prediction, ids: np.ndarray) -> Prediction:
    """A method must answer for exactly the images it was asked about, in their order."""
    if not isinstance(prediction, Prediction):
        raise GCDBenchError(
            f"The method's predict() returned {type(prediction).__name__}; it must return a Prediction."
        )
    if not np.array_equal(prediction.ids, ids) or len(prediction.cluster) != len(ids):
        raise GCDBenchError("The method did not predict exactly the images it was asked about, in their order.")
    cluster = np.asarray(prediction.cluster)
    if not np.issubdtype(cluster.dtype, np.integer) or (len(cluster) and cluster.min() < 0):
        raise GCDBenchError("The method's clusters must be whole numbers, 0 or above.")
    if len(cluster) and cluster.max() >= prediction.k_hat:
        raise GCDBenchError(
            f"The method says it has {prediction.k_hat} clusters (k_hat) but used cluster {cluster.max()}; "
            "clusters are counted from 0."
        )
    for name, shape in (("confidence", 1), ("embedding", 2)):
        values = getattr(prediction, name)
        if values is not None and (
            np.ndim(values) != shape or len(values) != len(ids) or not np.isfinite(values).all()
        ):
            raise GCDBenchError(f"The method's {name} must be finite numbers, one {'row ' * (shape - 1)}per image.")
    return prediction


def _new_record(
    execution: Execution, prepared: Prepared, identity: Mapping[str, Any], path: Path, world_size: int
) -> Record:
    plan = execution.plan
    return Record(
        path=path,
        run_id=run_id(dict(identity)),
        identity=identity,
        method=plan.method.name,
        variant=plan.variant,
        dataset=prepared.source.card.name,
        dataset_options=dict(plan.dataset_options),
        preset=plan.preset,
        protocol=plan.protocol.name,
        seed=plan.seed,
        backbone=plan.settings.backbone,
        image_size=plan.settings.image_size,
        views=plan.settings.views,
        world_size=world_size,
        split=parse_split(Fields(prepared.split.header(), "split")),
        reconstruction=plan.method.reconstruction,
        accepted_data_issues=prepared.issues,
    )


def _save_predictions(home: Path, predictions: Mapping[str, Prediction], split: SplitManifest) -> dict[str, StoredFile]:
    files: dict[str, StoredFile] = {}
    for name, prediction in predictions.items():
        file = f"{name}.npz"
        sha256 = save_arrays(home / PREDICTIONS / file, attach_truth(prediction, split).arrays())
        files[name] = StoredFile(file=str(PurePosixPath(PREDICTIONS) / file), sha256=sha256)
        if prediction.embedding is not None:
            embedding = prediction.embedding.astype(np.float16)
            save_arrays(home / EMBEDDINGS / file, {"ids": prediction.ids, "embedding": embedding})
    return files

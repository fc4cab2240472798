"""One run from plan to scores. Every number gcdbench prints was made here.

dataset → image store → split → method.fit → method.predict → stored predictions → evaluation.
"""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tomli_w

from gcdbench.core.errors import DataError, GCDBenchError, TrainingError
from gcdbench.core.files import write_json
from gcdbench.core.identity import run_id
from gcdbench.core.places import cache_dir
from gcdbench.core.work import available_cores
from gcdbench.datasets.catalogue import call_factory
from gcdbench.datasets.integrity import blocking_issues
from gcdbench.datasets.roots import data_roots
from gcdbench.datasets.source import DatasetRequest, DatasetSource
from gcdbench.images.image_set import ImageSet
from gcdbench.images.image_store import ImageStore, prepare_store
from gcdbench.models.card_file import card_path, change_names
from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.directory import DONE, RunDirectory
from gcdbench.runs.evaluate import INDUCTIVE, TRANSDUCTIVE, attach_truth, score_run
from gcdbench.runs.plan import Placement, RunPlan, identity_of
from gcdbench.runs.predictions import save_arrays
from gcdbench.splits.manifest import ROLES, TEST, UNLABELLED, SplitManifest, make_split
from gcdbench.splits.split_file import require_same_images
from gcdbench.training.method import Method, Prediction, SavesModel, TaskInfo

if TYPE_CHECKING:
    from gcdbench.training.context import RunContext

Listener = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A dataset ready to be learnt from."""

    source: DatasetSource
    store: ImageStore
    split: SplitManifest
    issues: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """Where a run lies and what came out; ``reused`` when it had been done before."""

    directory: RunDirectory
    scores: dict[str, Any]
    reused: bool


def _ignore(event: Mapping[str, Any]) -> None:
    """Default listener."""


def prepare_data(plan: RunPlan, placement: Placement, listener: Listener = _ignore) -> Prepared:
    """Find the dataset, decode it (or find it decoded), split it, and refuse it where it has faults."""
    request = DatasetRequest(
        name=plan.dataset_name,
        roots=data_roots(placement.data_root),
        argument=plan.dataset_argument,
        image_size=plan.settings.image_size,
        options=dict(plan.dataset_options),
    )
    source = call_factory(plan.dataset, request)
    if source.card.purpose != "classification":
        raise DataError(f"The dataset '{plan.dataset_name}' has no classes to discover: it only serves to score masks.")
    store = prepare_store(
        source,
        plan.settings.image_size,
        placement.cache or cache_dir(),
        workers=_workers(placement),
        progress=lambda task, done, total: listener({"type": "progress", "task": task, "done": done, "total": total}),
    )
    order = store.order
    split = make_split(
        dataset=source.card.name,
        class_names=source.card.classes,
        labels=source.labels[order],
        sha256=store.sha256,
        protocol=plan.protocol,
        partition=None if source.partition is None else source.partition[order],
        groups=None if source.groups is None else source.groups[order],
    )
    if plan.split is not None:
        require_same_images(plan.split, split)
        split = plan.split
    issues = tuple(blocking_issues(source, store, np.asarray(ROLES)[split.roles]))
    if issues and not placement.accept_data_issues:
        raise DataError(
            f"The dataset '{plan.dataset_name}' has {len(issues)} problem(s) that would spoil a score, "
            f"first: {issues[0]}",
            hint=f"See 'gcdbench data audit {plan.dataset_text}'; with --accept-data-issues it goes on, and a run "
            "records them.",
        )
    return Prepared(source=source, store=store, split=split, issues=issues)


def _workers(placement: Placement) -> int:
    return placement.workers if placement.workers is not None else available_cores()


def execute(plan: RunPlan, placement: Placement, manager: PluginManager, listener: Listener = _ignore) -> RunResult:
    """Do the run, or find that it has been done."""
    world_size, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    prepared = prepare_data(plan, placement, listener)
    backbone_spec = manager.get("backbones", plan.settings.backbone) if plan.method.needs_backbone else None
    identity = identity_of(
        plan,
        manifest_sha256=prepared.split.sha,
        store_key=prepared.store.key,
        dataset_id=prepared.source.card.name,
        weights_sha256=backbone_spec.weights_sha256(plan.settings.weights) if backbone_spec else "",
        world_size=world_size,
        accepted_issues=prepared.issues,
    )
    directory = RunDirectory.at(placement.runs, prepared.source.card.name, plan.method.name, run_id(identity))
    if (reused := _reusable(directory, placement)) is not None:
        return reused
    from gcdbench.runs.environment import require_device  # torch is not needed to find a finished run
    from gcdbench.training.distributed import process_group

    require_device(placement.device)
    with process_group(placement.device):
        if rank != 0:
            _compute(plan, placement, manager, prepared, directory, _ignore)
            return RunResult(directory=directory, scores={}, reused=False)
        with directory.writing():
            # Another process may have finished the run since; with several ranks all of them must compute.
            if world_size == 1 and (reused := _reusable(directory, placement)) is not None:
                return reused
            directory.begin(
                _record(plan, prepared, identity, world_size),
                config_toml=_config_toml(plan),
                environment=_environment(placement, manager),
            )
            return _run_and_score(plan, placement, manager, prepared, directory, listener)


def _reusable(directory: RunDirectory, placement: Placement) -> RunResult | None:
    """The result of a run that is done already, unless it shall be done again."""
    if placement.force or not directory.exists() or directory.status() != DONE:
        return None
    return RunResult(directory=directory, scores=directory.scores(), reused=True)


def _run_and_score(
    plan: RunPlan,
    placement: Placement,
    manager: PluginManager,
    prepared: Prepared,
    directory: RunDirectory,
    listener: Listener,
) -> RunResult:
    """The part of a run whose failure is recorded in its directory."""
    record = directory.record()
    resumed = False

    def notify(hook: str, **arguments: Any) -> None:
        for failure in manager.notify(hook, **arguments):
            directory.append_event({"type": "observer-failed", "error": failure})

    def log(event: Mapping[str, Any]) -> None:
        nonlocal resumed
        resumed = resumed or event.get("type") == "resumed"
        listener(event)
        if event.get("type") != "progress":
            directory.append_event(event)
            notify("gcdbench_run_event", run=record, event=event)

    notify("gcdbench_run_started", run=record)
    try:
        method, predictions, times = _compute(plan, placement, manager, prepared, directory, log)
        files = _save_predictions(directory, predictions, prepared.split)
        if isinstance(method, SavesModel):
            method.save_model(directory.path)
            # A method is not told what its classes are called. One of an earlier version may save something else.
            if card_path(directory.path).exists():
                change_names(directory.path, classes=prepared.split.classes[: prepared.split.k_old])
        # The time of a resumed run's earlier parts is not known; the time of its last part would flatter it.
        results = {"predictions": files, "seconds": {} if resumed else times, "resumed": resumed}
        write_json(directory.record_path, {**directory.record(), **results})
        scores = score_run(directory, manager)
        write_json(directory.scores_path, scores)
        directory.finish()
    except KeyboardInterrupt:
        directory.interrupt()
        raise
    except SystemExit as error:  # with the code 0 a run without a result would pass for a success
        message = f"The method '{plan.method.name}' ended the process (exit code {error.code})."
        directory.fail(message, traceback.format_exc())
        notify("gcdbench_run_failed", run=directory.record(), error=error)
        raise TrainingError(message, hint="A method has to raise an error instead.") from error
    except Exception as error:
        directory.fail(
            error.message if isinstance(error, GCDBenchError) else f"{type(error).__name__}: {error}",
            traceback.format_exc(),
        )
        notify("gcdbench_run_failed", run=directory.record(), error=error)
        raise
    notify("gcdbench_run_finished", run=directory.record(), scores=scores)
    return RunResult(directory=directory, scores=scores, reused=False)


def _compute(
    plan: RunPlan,
    placement: Placement,
    manager: PluginManager,
    prepared: Prepared,
    directory: RunDirectory,
    log: Listener,
) -> tuple[Method, dict[str, Prediction], dict[str, float]]:
    """Train and predict. What the method is given holds no hidden label."""
    ctx = make_context(plan, placement, manager, prepared, log, checkpoint_dir=directory.checkpoint_dir)
    split, pixels = prepared.split, prepared.store.pixels
    task = TaskInfo(
        k_old=split.k_old,
        k=len(split.classes) if plan.protocol.k_policy == "known" else None,
        image_size=plan.settings.image_size,
    )
    method: Method = plan.method.load()(plan.config, task, ctx)
    started = time.perf_counter()
    method.fit(split.data(pixels))
    fitted = time.perf_counter()
    sets = {TRANSDUCTIVE: UNLABELLED, INDUCTIVE: TEST}
    predictions = {
        name: _checked_prediction(method.predict(ImageSet(ids=split.ids(role), store=pixels)), split.ids(role))
        for name, role in sets.items()
        if len(split.ids(role))
    }
    times = {"fit": round(fitted - started, 3), "predict": round(time.perf_counter() - fitted, 3)}
    return method, predictions, times


def _checked_prediction(prediction: Prediction, ids: np.ndarray) -> Prediction:
    """A method must answer for exactly the images it was asked about, in their order."""
    if not isinstance(prediction, Prediction):
        raise GCDBenchError(f"The method's predict() gave {type(prediction).__name__}, it must return a Prediction.")
    if not np.array_equal(prediction.ids, ids) or len(prediction.cluster) != len(ids):
        raise GCDBenchError("The method did not predict exactly the images it was asked about, in their order.")
    cluster = np.asarray(prediction.cluster)
    if not np.issubdtype(cluster.dtype, np.integer) or (len(cluster) and cluster.min() < 0):
        raise GCDBenchError("The method's clusters must be whole numbers, 0 or above.")
    if len(cluster) and cluster.max() >= prediction.k_hat:
        raise GCDBenchError(
            f"The method says it has {prediction.k_hat} clusters (k_hat) and used cluster {cluster.max()}; "
            "clusters are counted from 0."
        )
    for name, shape in (("confidence", 1), ("embedding", 2)):
        values = getattr(prediction, name)
        if values is not None and (
            np.ndim(values) != shape or len(values) != len(ids) or not np.isfinite(values).all()
        ):
            raise GCDBenchError(f"The method's {name} must be finite numbers, one {'row ' * (shape - 1)}an image.")
    return prediction


def make_context(
    plan: RunPlan,
    placement: Placement,
    manager: PluginManager,
    prepared: Prepared,
    log: Listener = _ignore,
    *,
    checkpoint_dir: Path | None = None,
) -> RunContext:
    """What the plan's method is given beside the data; without a folder it keeps no checkpoint."""
    import torch

    from gcdbench.methods.algorithms.estimate_k import estimate_k
    from gcdbench.training.context import RunContext

    if placement.threads is not None:
        torch.set_num_threads(placement.threads)
    spec = manager.get("backbones", plan.settings.backbone) if plan.method.needs_backbone else None
    weights = plan.settings.weights
    return RunContext(
        seed=plan.seed,
        image_size=plan.settings.image_size,
        device=placement.device,
        precision=plan.settings.precision,
        training=plan.training,
        views=plan.settings.views,
        augmentation=plan.settings.augmentation,
        store_key=prepared.store.key,
        cache_dir=placement.cache or cache_dir(),
        checkpoint_dir=checkpoint_dir,
        resume=placement.resume,
        log=log,
        load_backbone=None if spec is None else lambda: spec.load()(weights),
        estimate_k=estimate_k,
    )


def _record(plan: RunPlan, prepared: Prepared, identity: dict[str, Any], world_size: int) -> dict[str, Any]:
    split = prepared.split
    return {
        "run_id": run_id(identity),
        "identity": identity,
        "method": plan.method.name,
        "variant": plan.variant,
        "dataset": prepared.source.card.name,
        "dataset_options": dict(plan.dataset_options),
        "preset": plan.preset,
        "protocol": plan.protocol.name,
        "seed": plan.seed,
        "backbone": plan.settings.backbone,
        "image_size": plan.settings.image_size,
        "views": plan.settings.views,
        "world_size": world_size,
        "split": split.header(),
        "reconstruction": plan.method.reconstruction,
        "accepted_data_issues": list(prepared.issues),
    }


def _config_toml(plan: RunPlan) -> str:
    return tomli_w.dumps(plan.resolved())


def _environment(placement: Placement, manager: PluginManager) -> dict[str, Any]:
    from gcdbench.runs.environment import describe_environment

    return describe_environment(manager, device=placement.device, threads=placement.threads)


def _save_predictions(
    directory: RunDirectory, predictions: Mapping[str, Prediction], split: SplitManifest
) -> dict[str, dict[str, str]]:
    files: dict[str, dict[str, str]] = {}
    for name, prediction in predictions.items():
        path = directory.predictions_dir / f"{name}.npz"
        sha = save_arrays(path, attach_truth(prediction, split).arrays())
        files[name] = {"file": str(Path("predictions") / path.name), "sha256": sha}
        if prediction.embedding is not None:
            embedding = prediction.embedding.astype(np.float16)
            save_arrays(directory.path / "embeddings" / path.name, {"ids": prediction.ids, "embedding": embedding})
    return files

"""Stored runs without training, for tests of whatever reads a store and for timing it with many runs."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from gcdbench.core.identity import digest, run_id
from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.attempt import EMBEDDINGS, PREDICTIONS, append_event, hash_files
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.evaluate import score_sets
from gcdbench.runs.events import EpochEnd
from gcdbench.runs.plan import Materials, Plan, make_plan
from gcdbench.runs.predictions import ScoredSet
from gcdbench.runs.reader import CONFIG, ENVIRONMENT, SCORES, parse_split
from gcdbench.runs.record import DONE, TRANSDUCTIVE, Environment, Record, Scores, StoredFile
from gcdbench.runs.request import Request
from gcdbench.runs.strict_json import SEAL, Fields

CLASSES, OLD_CLASSES = 8, 4


@dataclass(frozen=True, kw_only=True)
class FakeRun:
    """A run to be written: the request it answers, and how good its made-up predictions are.

    accuracy: share of samples put into their class's own cluster; false_old: share of new samples put with old ones.
    extra: what run.json holds in addition to or instead of the usual; environment: the same for what the run ran on.
    """

    request: Request
    accuracy: float = 0.8
    false_old: float = 0.05
    samples: int = 240
    status: str = DONE
    embedding: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)


def fake_predictions(run: FakeRun) -> ScoredSet:
    """Predictions with about the wanted accuracy; groups of three samples; the same for the same seed."""
    rng = np.random.default_rng([run.request.seed, len(run.request.method), int(1000 * run.accuracy)])
    y_true = np.arange(run.samples) % CLASSES
    cluster = np.where(rng.random(run.samples) < run.accuracy, y_true, rng.integers(0, CLASSES, run.samples))
    biased = (y_true >= OLD_CLASSES) & (rng.random(run.samples) < run.false_old)
    return ScoredSet(
        ids=np.arange(run.samples),
        cluster=np.where(biased, y_true - OLD_CLASSES, cluster),
        y_true=y_true,
        group=np.arange(run.samples) // 3,
        is_old=np.arange(CLASSES) < OLD_CLASSES,
        anchored=True,
        k_hat=CLASSES,
        confidence=rng.random(run.samples).astype(np.float32),
    )


def fake_identity(plan: Plan, manager: PluginManager) -> dict[str, Any]:
    """The identity a run of this plan would have on an imaginary split, one for each split seed."""
    backbone = manager.get("backbones", plan.settings.backbone) if plan.method.needs_backbone else None
    return plan.identity(
        Materials(
            dataset=plan.dataset_name,
            manifest_sha256=f"{plan.protocol.split_seed:064x}",
            images="fake",
            weights_sha256=backbone.weights_sha256(plan.settings.weights) if backbone else "",
        )
    )


def fake_scores(scored: ScoredSet, manager: PluginManager) -> Scores:
    """What scores.json holds, computed by the real metrics."""
    return score_sets({TRANSDUCTIVE: scored}, manager)[0]


def fake_record(plan: Plan, identity: Mapping[str, Any], path: Path, status: str = DONE) -> Record:
    """The record of a run of this plan that is stored in ``path``."""
    split = {
        "old_classes": [f"old {c}" for c in range(OLD_CLASSES)],
        "new_classes": [f"new {c}" for c in range(CLASSES - OLD_CLASSES)],
    }
    return Record(
        path=path,
        run_id=run_id(dict(identity)),
        identity=identity,
        method=plan.method.name,
        variant=plan.variant,
        dataset=plan.dataset_name,
        dataset_options=dict(plan.dataset_options),
        preset=plan.preset,
        protocol=plan.protocol.name,
        seed=plan.seed,
        backbone=plan.settings.backbone,
        image_size=plan.settings.image_size,
        views=plan.settings.views,
        split=parse_split(Fields(split, "split")),
        reconstruction=plan.method.reconstruction,
        status=status,
        started="2026-01-01T00:00:00+00:00",
        finished="2026-01-01T00:01:00+00:00",
        host="elsewhere",
        seconds={"fit": 58.0, "predict": 2.0},
    )


def fake_environment(**changes: Any) -> Environment:
    """What an imaginary machine says of itself."""
    made = Environment(python="3.11", packages={"torch": "2"}, cpu="imaginary", threads=1, device="cpu")
    return replace(made, **changes)


def write_fake_run(runs: Path, run: FakeRun, manager: PluginManager) -> RunDirectory:
    """Write one run with real scores of made-up predictions."""
    plan = make_plan(run.request, manager)
    identity = fake_identity(plan, manager)
    directory = RunDirectory.at(runs, plan.dataset_name, plan.method.name, run_id(dict(identity)))
    directory.path.mkdir(parents=True, exist_ok=True)
    record = fake_record(plan, identity, directory.path, run.status)
    if run.status == DONE:
        scored = fake_predictions(run)
        file = f"{PREDICTIONS}/{TRANSDUCTIVE}.npz"
        sha256 = _save(directory.path / file, scored.arrays())
        record = replace(record, predictions={TRANSDUCTIVE: StoredFile(file=file, sha256=sha256)})
        dump_sealed(directory.path / SCORES, fake_scores(scored, manager).to_table())
        if run.embedding:
            centres = np.random.default_rng(1).normal(size=(CLASSES, 16))
            noise = np.random.default_rng(2).normal(size=(run.samples, 16))
            embedding = (3 * centres[scored.y_true] + noise).astype(np.float16)
            _save(directory.path / EMBEDDINGS / f"{TRANSDUCTIVE}.npz", {"ids": scored.ids, "embedding": embedding})
    for epoch in range(3):
        losses = {"cls_s": 1.0 / (epoch + 1), "rep_u": 2.0 / (epoch + 1)}
        append_event(directory.path, EpochEnd(epoch=epoch, epochs=3, lr=0.1, losses=losses))
    (directory.path / CONFIG).write_text(f'method = "{plan.method.name}"\ndataset = "{plan.dataset_text}"\n')
    dump_sealed(directory.path / ENVIRONMENT, fake_environment(**run.environment).to_table())
    record = replace(record, files=hash_files(directory.path)) if run.status == DONE else record
    dump_sealed(directory.record_path, {**record.to_table(), **run.extra})
    return directory


def dump_sealed(path: Path, table: Mapping[str, Any]) -> None:
    """A sealed table without the sync to disk that a real run makes and a test can do without."""
    path.write_text(json.dumps({**table, SEAL: digest(table)}, sort_keys=True))


def edit_sealed(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a sealed table as somebody who can seal it again would; a run is named after its identity."""
    table = {key: value for key, value in json.loads(path.read_text()).items() if key != SEAL}
    change(table)
    if "identity" in table:
        table["run_id"] = run_id(table["identity"])
    dump_sealed(path, table)


def _save(path: Path, arrays: Mapping[str, Any]) -> str:
    """An ``.npz`` and its sha256, without the sync to disk that a real run makes and a test can do without."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(buffer.getvalue())
    return hashlib.sha256(buffer.getvalue()).hexdigest()

"""A planned run on its way: the data it needs, and what its method is given to work with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gcdbench.core.arrays import IntArray
from gcdbench.core.errors import ConfigError, DataError
from gcdbench.core.places import cache_dir
from gcdbench.core.work import available_cores
from gcdbench.datasets.catalogue import call_factory
from gcdbench.datasets.integrity import blocking_issues, find_leak, require_truth
from gcdbench.datasets.roots import data_roots
from gcdbench.datasets.source import DatasetRequest, DatasetSource
from gcdbench.images.image_store import ImageStore, prepare_store
from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.events import Listener, Note, Progress, ignore, make_event
from gcdbench.runs.placement import Placement
from gcdbench.runs.plan import Plan
from gcdbench.runs.record import INDUCTIVE, TRANSDUCTIVE
from gcdbench.splits.data import training_rows
from gcdbench.splits.manifest import ROLES, TEST, UNLABELLED, SplitManifest, make_split
from gcdbench.splits.split_file import require_same_images
from gcdbench.training.method import TaskInfo

if TYPE_CHECKING:
    from gcdbench.models.backbone import Backbone
    from gcdbench.training.context import RunContext


@dataclass(frozen=True, kw_only=True)
class Execution:
    """What is done, where, with which plugins, and who listens to it."""

    plan: Plan
    placement: Placement
    manager: PluginManager
    listener: Listener = ignore


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A dataset ready to be learnt from."""

    source: DatasetSource
    store: ImageStore
    split: SplitManifest
    issues: tuple[str, ...]

    @property
    def training_rows(self) -> IntArray | None:
        """Rows of the store that may be trained on, whatever the split; None means all of them."""
        partition = self.source.partition
        for_test = self.split.roles == ROLES.index(TEST)
        return training_rows(None if partition is None else partition[self.store.order], for_test)


def prepare_data(execution: Execution) -> Prepared:
    """Find the dataset, decode it (or find it decoded), split it, and refuse it where it has faults."""
    plan, placement = execution.plan, execution.placement
    request = DatasetRequest(
        name=plan.dataset_name,
        roots=data_roots(placement.data_root),
        argument=plan.dataset_argument,
        image_size=plan.settings.image_size,
        options=dict(plan.dataset_options),
    )
    source = call_factory(plan.dataset, request)
    if source.card.purpose != "classification":
        raise DataError(f"The dataset '{plan.dataset_name}' has no classes to discover: it is only for scoring masks.")
    for remark in source.remarks:
        execution.listener(Note(message=f"{plan.dataset_text}: {remark.message}"))
    require_truth(source)
    store = prepare_store(
        source,
        plan.settings.image_size,
        placement.cache or cache_dir(),
        workers=placement.workers if placement.workers is not None else available_cores(),
        progress=lambda task, done, total: execution.listener(Progress(task=task, done=done, total=total)),
        note=lambda text: execution.listener(Note(message=text)),
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
    roles = np.asarray(ROLES)[split.roles]
    if leaked := find_leak(store.sha256, roles).sentence([source.keys[i] for i in order]):
        kept = "the score on the test part counts them; --set protocol.test_copies=left-out leaves them out"
        said = "they are left out of the score on the test part" if split.protocol.test_copies == "left-out" else kept
        execution.listener(Note(message=f"{plan.dataset_text}: {leaked} ({said})"))
    issues = tuple(blocking_issues(source, store, roles))
    if issues and not placement.accept_data_issues:
        raise DataError(
            f"The dataset '{plan.dataset_name}' has {len(issues)} problem(s) that would make scores meaningless, "
            f"first: {issues[0]}",
            hint=f"See 'gcdbench data audit {plan.dataset_text}'; with --accept-data-issues the run continues "
            "and records them.",
        )
    return Prepared(source=source, store=store, split=split, issues=(*issues, *source.accepted_issues))


def evaluation_sets(split: SplitManifest) -> dict[str, IntArray]:
    """Ids of the images that are predicted and scored, by evaluation set; sets without an image are not there."""
    test = split.ids(TEST)
    if split.protocol.test_copies == "left-out":
        test = find_leak(split.sha256, np.asarray(ROLES)[split.roles]).leave_out(test)
    sets = {TRANSDUCTIVE: split.ids(UNLABELLED), INDUCTIVE: test}
    return {name: ids for name, ids in sets.items() if len(ids)}


def task_info(plan: Plan, split: SplitManifest) -> TaskInfo:
    """What a method knows of its task: the number of classes only where the protocol tells it."""
    k = (plan.protocol.k or len(split.classes)) if plan.protocol.k_policy == "known" else None
    if k is not None and k < split.k_old:
        raise ConfigError(f"{k} clusters are fewer than the {split.k_old} known classes.")
    return TaskInfo(k_old=split.k_old, k=k, image_size=plan.settings.image_size)


def make_context(execution: Execution, prepared: Prepared, *, checkpoint_dir: Path | None = None) -> RunContext:
    """What the plan's method is given in addition to the data; without a folder it keeps no checkpoint."""
    import torch

    from gcdbench.methods.algorithms.estimate_k import estimate_k
    from gcdbench.runs.numerics import describe_numerics
    from gcdbench.training.context import RunContext

    plan, placement, listener = execution.plan, execution.placement, execution.listener
    if placement.threads is not None:
        torch.set_num_threads(placement.threads)
    spec = execution.manager.get("backbones", plan.settings.backbone) if plan.method.needs_backbone else None

    def load_backbone() -> Backbone:
        assert spec is not None
        backbone: Backbone = spec.load()(plan.settings.weights)
        backbone.check_size(plan.settings.image_size)
        return backbone

    return RunContext(
        seed=plan.seed,
        image_size=plan.settings.image_size,
        device=placement.device,
        precision=plan.settings.precision,
        training=plan.training,
        views=plan.settings.views,
        augmentation=plan.settings.augmentation,
        training_rows=prepared.training_rows,
        store_key=prepared.store.key,
        cache_dir=placement.cache or cache_dir(),
        checkpoint_dir=checkpoint_dir,
        resume=placement.resume,
        numerics=describe_numerics(device=placement.device, threads=placement.threads).to_table(),
        log=lambda said: listener(make_event(said)),
        load_backbone=None if spec is None else load_backbone,
        estimate_k=estimate_k,
    )

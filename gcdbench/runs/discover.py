"""Discovery on a person's own images: a run without truth, which may be scored when somebody has the truth later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from gcdbench.core.arrays import IntArray
from gcdbench.core.errors import ConfigError, DataError
from gcdbench.core.places import cache_dir
from gcdbench.core.work import available_cores
from gcdbench.datasets.integrity.blocking import mixed
from gcdbench.datasets.source import UNKNOWN, DatasetSource
from gcdbench.datasets.sources.sides import DISCOVERY, open_sides
from gcdbench.images.image_store import ImageStore, prepare_store
from gcdbench.plugins.manager import PluginManager
from gcdbench.plugins.specs import DatasetSpec
from gcdbench.runs.events import Listener, Note, Progress, ignore
from gcdbench.runs.execution import Execution, Prepared
from gcdbench.runs.placement import Placement
from gcdbench.runs.plan import OwnData, Plan, make_plan
from gcdbench.runs.request import Request
from gcdbench.runs.runner import RunResult, execute
from gcdbench.splits.manifest import LABELLED, ROLES, UNLABELLED, SplitManifest
from gcdbench.splits.protocol import Protocol

SPEC = DatasetSpec(name=DISCOVERY, factory="gcdbench.datasets.sources.sides:open_sides", summary="your own images")


@dataclass(frozen=True, kw_only=True)
class DiscoveryRequest:
    """What the user wrote. k: number of clusters, known classes included; None to have it estimated."""

    labelled: Path
    unlabelled: Path | None = None
    k: int | None = None
    method: str = "simgcd"
    variant: str | None = None
    preset: str | None = None
    seed: int = 0
    overrides: Mapping[str, object] = field(default_factory=dict)
    dataset_options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Discovery:
    """A discovery that is planned: its images, and what will be done with them."""

    source: DatasetSource
    plan: Plan

    @property
    def known(self) -> tuple[str, ...]:
        """Names of the known classes."""
        return self.source.card.classes

    @cached_property
    def labelled(self) -> int:
        """Number of labelled images."""
        return int(np.sum(self.source.labels != UNKNOWN))


@dataclass(frozen=True, kw_only=True)
class Discovered:
    """A finished discovery: its run, and the images that the run's ids stand for."""

    result: RunResult
    prepared: Prepared

    def paths(self, ids: IntArray) -> list[str]:
        """Paths of the images with these ids; nothing else brings ids and paths together."""
        keys = self.prepared.source.keys
        return [keys[row] for row in self.prepared.store.order[ids].tolist()]


def plan_discovery(request: DiscoveryRequest, manager: PluginManager) -> Discovery:
    """Look at the user's files and settle everything; nothing is decoded or trained yet."""
    source = open_sides(request.labelled, request.unlabelled, request.dataset_options)
    known = source.card.classes
    if request.k is not None and request.k <= len(known):
        raise ConfigError(
            f"--k {request.k} leaves no room for a new class in addition to the {len(known)} known ones.",
            hint="--k counts all clusters, including the known classes; leave it out to have it estimated.",
        )
    if request.k is not None and request.k > len(source):
        raise ConfigError(
            f"--k {request.k} asks for more clusters than there are images ({len(source)}).",
            hint="Leave --k out to have it estimated.",
        )
    protocol = Protocol(name=DISCOVERY, old_rule="named", old_names=known, label_fraction=1.0, k=request.k)
    plan = make_plan(
        Request(
            method=request.method,
            dataset=DISCOVERY,
            variant=request.variant,
            preset=request.preset,
            k_policy="estimated" if request.k is None else "known",
            seed=request.seed,
            overrides=request.overrides,
        ),
        manager,
        own=OwnData(dataset=SPEC, protocol=protocol),
    )
    return Discovery(source=source, plan=plan)


def run_discovery(
    discovery: Discovery, placement: Placement, manager: PluginManager, listener: Listener = ignore
) -> Discovered:
    """Train and predict as any run does, or find that it has been done."""
    kept: list[Prepared] = []

    def prepare(execution: Execution) -> Prepared:
        kept.append(prepare_discovery(discovery.source, execution))
        return kept[-1]

    execution = Execution(plan=discovery.plan, placement=placement, manager=manager, listener=listener)
    return Discovered(result=execute(execution, prepare), prepared=kept[-1])


def prepare_discovery(source: DatasetSource, execution: Execution) -> Prepared:
    """Decode the images and give each its role; a labelled image in two classes is refused."""
    plan, placement, listener = execution.plan, execution.placement, execution.listener
    for remark in source.remarks:
        listener(Note(message=remark.message))
    store = prepare_store(
        source,
        plan.settings.image_size,
        placement.cache or cache_dir(),
        workers=placement.workers if placement.workers is not None else available_cores(),
        progress=lambda task, done, total: listener(Progress(task=task, done=done, total=total)),
        note=lambda text: listener(Note(message=text)),
    )
    split = discovery_split(source, store, plan.protocol)
    issues = _issues(source, store, accept=placement.accept_data_issues)
    if copies := _copies(split):
        listener(Note(message=copies))
    return Prepared(source=source, store=store, split=split, issues=(*issues, *source.accepted_issues))


def discovery_split(source: DatasetSource, store: ImageStore, protocol: Protocol) -> SplitManifest:
    """Every image with a label is labelled, every other one is unlabelled and of unknown class."""
    labels = source.labels[store.order]
    groups = np.arange(len(labels), dtype=np.int64)
    if source.groups is not None:
        # Numbered by first appearance, as in any split, so that the names of patients leave no trace.
        _, first, inverse = np.unique(source.groups[store.order], return_index=True, return_inverse=True)
        groups = np.argsort(np.argsort(first))[inverse].astype(np.int64)
    roles = np.where(labels == UNKNOWN, ROLES.index(UNLABELLED), ROLES.index(LABELLED)).astype(np.int8)
    return SplitManifest(
        dataset=source.card.name,
        protocol=protocol,
        classes=source.card.classes,
        k_old=len(source.card.classes),
        sha256=tuple(store.sha256),
        labels=labels,
        roles=roles,
        groups=groups,
    )


def with_truth(split: SplitManifest, truth: Mapping[int, str]) -> SplitManifest:
    """The split with the classes of its unlabelled images, by id; classes that are not known ones are new."""
    hidden = split.ids(UNLABELLED)
    known = split.classes[: split.k_old]
    new = tuple(sorted(set(truth.values()) - set(known)))
    index = {name: number for number, name in enumerate((*known, *new))}
    labels = split.labels.copy()
    labels[hidden] = [index[truth[i]] for i in hidden.tolist()]
    return replace(split, classes=(*known, *new), labels=labels)


def _copies(split: SplitManifest) -> str:
    """A sentence on unlabelled images whose bytes are those of a labelled one; empty where there are none."""
    told = {split.sha256[i] for i in split.ids(LABELLED).tolist()}
    count = sum(split.sha256[i] in told for i in split.ids(UNLABELLED).tolist())
    if not count:
        return ""
    return f"unlabelled images that are copies of labelled ones: {count:,}; they are predicted like the others"


def _issues(source: DatasetSource, store: ImageStore, *, accept: bool) -> tuple[str, ...]:
    """One labelled image in two classes; the sentence that is recorded names no file, the one that is shown does."""
    labels = source.labels[store.order]
    told = np.flatnonzero(labels != UNKNOWN)
    content = np.unique(np.asarray(store.sha256)[told], return_inverse=True)[1]
    faults = mixed(content, labels[told])
    if not faults:
        return ()
    if not accept:
        where = ", ".join(source.keys[row] for row in store.order[told[faults[0]]][:3].tolist())
        raise DataError(
            f"{len(faults)} labelled image(s) are in several classes, for example {where}.",
            hint="Correct the labels; with --accept-data-issues the run continues and records how many there are.",
        )
    return (f"{len(faults)} labelled image(s) are in several classes",)

"""What came out of a run, as types. :mod:`gcdbench.runs.reader` makes them from files, and nobody else does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcdbench.core.identity import digest
from gcdbench.runs.old_mapping import OldMapping

if TYPE_CHECKING:
    from gcdbench.runs.events import Event
    from gcdbench.runs.numerics import Numerics

SCHEMA = 2
"""Version of run.json, scores.json and env.json as they are written; version 1 is read as well."""
READABLE = (1, 2)

DONE, FAILED, RUNNING, INTERRUPTED, STALE, UNREADABLE = (
    "done",
    "failed",
    "running",
    "interrupted",
    "stale",
    "unreadable",
)
RECORDED = (DONE, FAILED, RUNNING, INTERRUPTED)
"""States that a record can have; the others are found out by looking."""

TRANSDUCTIVE, INDUCTIVE = "transductive", "inductive"
"""Evaluation sets: the unlabelled training images D_u, and the dataset's untouched test part."""


@dataclass(frozen=True, kw_only=True)
class StoredFile:
    """A file of a run: its place in the run's directory, and what it must contain; ``size`` −1 was not recorded."""

    file: str
    sha256: str
    size: int = -1


@dataclass(frozen=True, kw_only=True)
class SplitHeader:
    """What a record keeps of its split: class names, old ones first, and how many images have which role."""

    old_classes: tuple[str, ...] = ()
    new_classes: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    old_share: float | None = None
    content: Mapping[str, Any] = field(default_factory=dict)

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names in the order that stored true classes index."""
        return (*self.old_classes, *self.new_classes)


@dataclass(frozen=True, kw_only=True)
class SetScores:
    """Scores of one evaluation set. confusion: (C, C + 1) counts under the Hungarian map, the last of no class."""

    n: int
    old_share: float
    k_old: int
    scores: Mapping[str, float]
    confusion: tuple[tuple[int, ...], ...] = ()

    def to_table(self) -> dict[str, Any]:
        """What is stored."""
        return {
            "n": self.n,
            "old_share": self.old_share,
            "scores": dict(self.scores),
            "confusion": [list(row) for row in self.confusion],
            "k_old": self.k_old,
        }


@dataclass(frozen=True, kw_only=True)
class Scores(OldMapping):
    """The content of scores.json. metrics: which distribution and version computed; metric_errors: what failed."""

    sets: Mapping[str, SetScores] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    metric_errors: Mapping[str, str] = field(default_factory=dict)

    def to_table(self) -> dict[str, Any]:
        """What is stored."""
        return {
            "schema": SCHEMA,
            "sets": {name: scored.to_table() for name, scored in self.sets.items()},
            "metrics": dict(self.metrics),
            "metric_errors": dict(self.metric_errors),
        }


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The content of env.json: what a run ran on. An empty text is something that was not recorded."""

    python: str
    packages: Mapping[str, str | None]
    platform: str = ""
    plugins: Mapping[str, str] = field(default_factory=dict)
    commit: str = ""
    dirty: bool = False
    cpu: str = ""
    cores: int = 0
    device: str = ""
    gpu: str = ""
    threads: int = 0
    kernels: str = ""
    deterministic_algorithms: bool = False
    numerics: Numerics | None = None

    def numeric_differences(self, other: Environment) -> list[str]:
        """What may explain that two results differ in their last bits.

        Version 0.1 recorded no numerics, but some of what they are made of.
        """
        if self.numerics and other.numerics:
            return self.numerics.differences(other.numerics)
        pairs = {
            "processor": (self.cpu, other.cpu),
            "torch": (self.packages.get("torch"), other.packages.get("torch")),
            "kernels": (self.kernels, other.kernels),
            "threads": (self.threads, other.threads),
            "device": (self.device, other.device),
        }
        return [f"{name}: {a}, {b}" for name, (a, b) in pairs.items() if a and b and a != b]

    def to_table(self) -> dict[str, Any]:
        """What is stored."""
        return {
            "schema": SCHEMA,
            "python": self.python,
            "platform": self.platform,
            "packages": dict(self.packages),
            "plugins": dict(self.plugins),
            "git": {"commit": self.commit, "dirty": self.dirty} if self.commit else None,
            "cpu": self.cpu,
            "cores": self.cores,
            "device": self.device,
            "gpu": self.gpu or None,
            "kernels": self.kernels,
            "threads": self.threads,
            "deterministic_algorithms": self.deterministic_algorithms,
            "numerics": self.numerics.to_table() if self.numerics else None,
        }


class Identified:
    """What the identity of a run says, for whoever must not read it by string."""

    identity: Mapping[str, Any]

    @property
    def k_policy(self) -> str:
        """``"known"`` or ``"estimated"``: whether the number of classes was given to the method."""
        return str(self.identity["protocol"]["k_policy"])

    @property
    def split_sha256(self) -> str:
        """Digest of the split manifest."""
        return str(self.identity["manifest_sha256"])

    @property
    def images(self) -> str:
        """Key of the image store that the run's ids index."""
        return str(self.identity["images"])

    @property
    def weights_sha256(self) -> str:
        """Digest of the weights the run started from; empty without a backbone."""
        return str(self.identity.get("weights_sha256", ""))

    @property
    def rules(self) -> str:
        """Digest of the protocol's rules, but for the seed of the split."""
        return digest({key: value for key, value in self.identity["protocol"].items() if key != "split_seed"})

    @property
    def experiment(self) -> str:
        """Digest of everything that names the run but its seed and its split: runs that share it are replicates."""
        named = {
            key: value for key, value in self.identity.items() if key not in ("seed", "manifest_sha256", "protocol")
        }
        return digest({**named, "rules": self.rules})

    @property
    def method_version(self) -> str:
        """Version of the method."""
        return str(self.identity["method_version"])

    @property
    def config(self) -> Mapping[str, Any]:
        """The method's own settings."""
        found: Mapping[str, Any] = self.identity["config"]
        return found

    @property
    def training(self) -> Mapping[str, Any]:
        """The engine's settings; empty where nothing was trained."""
        found: Mapping[str, Any] = self.identity.get("training") or {}
        return found


@dataclass(frozen=True, kw_only=True)
class Record(Identified, OldMapping):
    """One run: what it is, where it stands, and what came out.

    path: the run's directory. folder: where in it the files are, "" but for the moment in which a repetition takes the
    place of an earlier result. predictions: by evaluation set. files: every file that was there when the run ended, by
    its name. seconds: empty where the run was resumed, because the time of its earlier parts is not known.
    ``scores``, ``environment`` and ``events`` are read from the run's directory when they are first asked for.
    """

    path: Path
    run_id: str
    identity: Mapping[str, Any]
    method: str
    dataset: str
    preset: str
    protocol: str
    seed: int
    backbone: str
    image_size: int
    views: str
    split: SplitHeader
    variant: str | None = None
    dataset_options: Mapping[str, str] = field(default_factory=dict)
    world_size: int = 1
    reconstruction: bool = False
    accepted_data_issues: tuple[str, ...] = ()
    status: str = RUNNING
    started: str = ""
    finished: str = ""
    host: str = ""
    pid: int = 0
    predictions: Mapping[str, StoredFile] = field(default_factory=dict)
    files: Mapping[str, StoredFile] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    resumed: bool = False
    error: str = ""
    traceback: str = ""
    folder: str = ""
    schema: int = SCHEMA

    @property
    def home(self) -> Path:
        """Where the files of the run are."""
        return self.path / self.folder if self.folder else self.path

    @property
    def name(self) -> str:
        """Method and variant, for tables and titles."""
        return f"{self.method}:{self.variant}" if self.variant else self.method

    @property
    def title(self) -> str:
        """The run in a phrase."""
        return f"{self.name} on {self.dataset}, seed {self.seed}"

    @property
    def spent(self) -> dict[str, float]:
        """What the run cost, as far as it is known.

        seconds: fit and predict; not known of a resumed run. images_seen: epochs × whole batches × images per batch,
        each image in two views; 0 without training. What a method looks at outside its batches counts as time only.
        """
        found: dict[str, float] = {}
        if self.seconds:
            found["seconds"] = sum(self.seconds.values())
        images = self.split.counts.get("labelled", 0) + self.split.counts.get("unlabelled", 0)
        if images > 0:
            batch = min(self.training.get("batch_size", 1), images)
            found["images_seen"] = float(self.training.get("epochs", 0) * (images // batch) * batch)
        return found

    @cached_property
    def scores(self) -> Scores | None:
        """What the run scored; None unless it is done."""
        from gcdbench.runs.reader import read_scores

        return read_scores(self.home) if self.status == DONE else None

    @cached_property
    def environment(self) -> Environment:
        """What the run ran on."""
        from gcdbench.runs.reader import read_environment

        return read_environment(self)

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """What the run told while it ran."""
        from gcdbench.runs.reader import read_events

        return read_events(self)

    def require_readable(self) -> None:
        """Read everything that a list, a table or a report relies on; an error where a file is damaged."""
        _ = self.scores, self.environment, self.events

    def to_table(self) -> dict[str, Any]:
        """The content of run.json."""
        table: dict[str, Any] = {
            "schema": SCHEMA,
            "run_id": self.run_id,
            "identity": dict(self.identity),
            "method": self.method,
            "variant": self.variant,
            "dataset": self.dataset,
            "dataset_options": dict(self.dataset_options),
            "preset": self.preset,
            "protocol": self.protocol,
            "seed": self.seed,
            "backbone": self.backbone,
            "image_size": self.image_size,
            "views": self.views,
            "world_size": self.world_size,
            "split": dict(self.split.content),
            "reconstruction": self.reconstruction,
            "accepted_data_issues": list(self.accepted_data_issues),
            "status": self.status,
            "started": self.started,
            "host": self.host,
            "pid": self.pid,
            "resumed": self.resumed,
            "seconds": dict(self.seconds),
            "predictions": {name: {"file": f.file, "sha256": f.sha256} for name, f in self.predictions.items()},
            "files": {name: {"sha256": f.sha256, "size": f.size} for name, f in self.files.items()},
        }
        said = {"finished": self.finished, "error": self.error, "traceback": self.traceback, "folder": self.folder}
        return table | {key: value for key, value in said.items() if value}

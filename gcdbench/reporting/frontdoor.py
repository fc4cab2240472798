"""What ``import gcdbench`` offers: a run, a sweep, results as a DataFrame, tables, scores and saved models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gcdbench.core.config import flatten
from gcdbench.core.errors import ConfigError
from gcdbench.plugins.manager import get_manager
from gcdbench.reporting.records import cell_records
from gcdbench.reporting.tables.model import ResultTable
from gcdbench.runs.events import Listener, ignore
from gcdbench.runs.index import RunEntry, load_runs
from gcdbench.runs.record import INDUCTIVE, TRANSDUCTIVE, Record

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from gcdbench.models.predict import Model
    from gcdbench.reporting.discovery import Written

PathLike = str | Path
NAMED = (
    "run_id",
    "status",
    "dataset",
    "method",
    "variant",
    "protocol",
    "k",
    "preset",
    "backbone",
    "image_size",
    "seed",
)
"""The first columns of a DataFrame of results."""
IDENTITY = ("manifest_sha256", "weights_sha256", "method_version")
"""Parts of an identity that have a column of their own beside a run's settings."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A stored run. ``reused``: it had been done before, and nothing was trained."""

    record: Record
    reused: bool = False

    @property
    def path(self) -> Path:
        """The run's directory."""
        return self.record.path

    @property
    def run_id(self) -> str:
        """The run's name, which follows from what it is."""
        return self.record.run_id

    @property
    def scores(self) -> dict[str, float]:
        """Scores on the unlabelled training images D_u, in percent where they are shares."""
        return self._scores(TRANSDUCTIVE)

    @property
    def test_scores(self) -> dict[str, float]:
        """Scores on the dataset's untouched test part; empty where there is none."""
        return self._scores(INDUCTIVE)

    def _scores(self, evaluation: str) -> dict[str, float]:
        stored = self.record.scores
        return dict(stored.sets[evaluation].scores) if stored is not None and evaluation in stored.sets else {}

    def predictions(self, evaluation: str = TRANSDUCTIVE) -> pd.DataFrame:
        """One row per image: id, cluster, true class, whether that is an old one, and the confidence.

        Where nobody knows the classes, as in a discovery, the class is empty and ``old`` None.
        """
        import pandas as pd

        from gcdbench.runs.predictions import load_predictions

        found = load_predictions(self.record, evaluation)
        names = self.record.split.classes
        return pd.DataFrame(
            {
                "id": found.ids,
                "cluster": found.cluster,
                "class": [names[label] if label >= 0 else "" for label in found.y_true],
                "old": [bool(found.is_old[label]) if label >= 0 else None for label in found.y_true],
                "confidence": found.confidence,
            }
        )

    def __repr__(self) -> str:
        shares = " ".join(f"{key}={value:.1f}" for key, value in self.scores.items() if key in ("all", "old", "new"))
        return f"<gcdbench.Run {self.record.title}: {shares or self.record.status} ({self.path})>"


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of results: ``entries`` as a DataFrame, or rendered as text, Markdown, LaTeX, CSV, JSON or HTML."""

    content: ResultTable

    @property
    def entries(self) -> pd.DataFrame:
        """One row per line, column and score of the table: n, mean, sd, interval, published value, run ids."""
        import pandas as pd

        from gcdbench.reporting.tables.render import plain

        return pd.DataFrame(plain(self.content)["entries"])

    def render(self, format_name: str = "text", layout: Literal["auto", "long", "wide", "tall"] = "auto") -> str:
        """The table in one of the formats of ``gcdbench table --format``."""
        from gcdbench.reporting.tables.render import render

        return render(self.content, format_name, layout)

    def __str__(self) -> str:
        return self.render()

    def _repr_html_(self) -> str:
        return self.render("html")


def run(
    method: str,
    dataset: str,
    seed: int = 0,
    *,
    variant: str | None = None,
    preset: str | None = None,
    protocol: str | None = None,
    k: Literal["known", "estimated"] = "known",
    split: PathLike | None = None,
    dataset_options: Mapping[str, object] | None = None,
    runs: PathLike = "runs",
    cache: PathLike | None = None,
    data_root: PathLike | None = None,
    device: str | None = None,
    threads: int | None = None,
    force: bool = False,
    accept_data_issues: bool = False,
    listener: Listener = ignore,
    **settings: object,
) -> Run:
    """Train a method on a dataset, predict, score, store; a run that is done already is found again.

    ``settings`` are what ``--set`` takes on the command line: ``epochs=5, lr=0.05``; a dotted one is written
    ``**{"faac.k": 8}``. ``listener`` is told the run's events: progress, losses, notes.
    """
    from gcdbench.runs.execution import Execution
    from gcdbench.runs.placement import Placement
    from gcdbench.runs.plan import detect_gpu, make_plan
    from gcdbench.runs.request import Request
    from gcdbench.runs.runner import execute

    manager = get_manager()
    request = Request(
        method=method,
        dataset=dataset,
        variant=variant,
        preset=preset,
        protocol=protocol,
        k_policy=k,
        seed=seed,
        overrides=settings,
        dataset_options={key: str(value) for key, value in (dataset_options or {}).items()},
        split=None if split is None else str(split),
    )
    placement = Placement(
        runs=Path(runs),
        cache=None if cache is None else Path(cache),
        data_root=None if data_root is None else Path(data_root),
        device=device or ("cuda" if detect_gpu() else "cpu"),
        threads=threads,
        force=force,
        accept_data_issues=accept_data_issues,
    )

    plan = make_plan(request, manager)
    result = execute(Execution(plan=plan, placement=placement, manager=manager, listener=listener))
    return Run(record=result.record, reused=result.reused)


@dataclass(frozen=True, kw_only=True)
class Discovery(Run):
    """A discovery: a run whose scores are empty until its truth is known, and what it wrote for people."""

    written: Written

    @property
    def images(self) -> pd.DataFrame:
        """One row per unlabelled image, as in predictions.csv: path, cluster, name, known or new, confidence, …"""
        return self.written.predictions.to_frame()

    @property
    def gallery(self) -> Path | None:
        """The page to look at; it holds images and file names."""
        return self.written.gallery


def discover(
    labelled: PathLike,
    unlabelled: PathLike | None = None,
    *,
    k: int | None = None,
    method: str = "simgcd",
    out: PathLike = "discovered",
    truth: PathLike | None = None,
    variant: str | None = None,
    preset: str | None = None,
    seed: int = 0,
    dataset_options: Mapping[str, object] | None = None,
    runs: PathLike = "runs",
    cache: PathLike | None = None,
    device: str | None = None,
    threads: int | None = None,
    force: bool = False,
    accept_data_issues: bool = False,
    listener: Listener = ignore,
    **settings: object,
) -> Discovery:
    """Sort images that nobody has labelled, beside labelled images of known classes.

    ``labelled`` is a folder of class folders or a CSV file with path and label; ``unlabelled`` a folder or a list.
    Without ``k``, the number of clusters with the known classes, it is estimated. ``out`` gets predictions.csv,
    gallery.html and names.toml; ``truth``, a CSV file with path and label, gives the run its scores.
    """
    from gcdbench.reporting.discovery import prepare_folder, write_discovery
    from gcdbench.runs.discover import DiscoveryRequest, plan_discovery, run_discovery
    from gcdbench.runs.placement import Placement
    from gcdbench.runs.plan import detect_gpu
    from gcdbench.runs.truth import read_truth, score_with_truth

    manager = get_manager()
    where = None if unlabelled is None else Path(unlabelled)
    request = DiscoveryRequest(
        labelled=Path(labelled),
        unlabelled=where,
        k=k,
        method=method,
        variant=variant,
        preset=preset,
        seed=seed,
        overrides=settings,
        dataset_options={key: str(value) for key, value in (dataset_options or {}).items()},
    )
    placement = Placement(
        runs=Path(runs),
        cache=None if cache is None else Path(cache),
        device=device or ("cuda" if detect_gpu() else "cpu"),
        threads=threads,
        force=force,
        accept_data_issues=accept_data_issues,
    )
    discovery = plan_discovery(request, manager)
    prepare_folder(Path(out))
    found = run_discovery(discovery, placement, manager, listener)
    if truth is not None:
        score_with_truth(found, read_truth(Path(truth), found, where), manager)
    written = write_discovery(found, Path(out), device=placement.device)
    return Discovery(record=found.result.directory.record(), reused=found.result.reused, written=written)


def sweep(
    suite: str,
    *,
    preset: str = "laptop",
    seeds: Sequence[int] | None = None,
    rows: Sequence[str] = (),
    datasets: Sequence[str] = (),
    protocol: str | None = None,
    runs: PathLike = "runs",
    data_root: PathLike | None = None,
    executor: str = "process",
    executor_options: Mapping[str, object] | None = None,
    parallel: int | None = None,
    device: str | None = None,
) -> pd.DataFrame:
    """Run what is missing of a suite and return its runs as :func:`results` does, with the errors of those that failed.

    ``suite`` is a name (``gcdbench list suites``) or a TOML file.
    """
    from gcdbench.core.work import available_cores
    from gcdbench.reporting.suites.planning import plan_suite
    from gcdbench.reporting.suites.read import load_suite
    from gcdbench.runs.executors.base import Job
    from gcdbench.runs.executors.making import make_executor
    from gcdbench.runs.placement import Placement
    from gcdbench.runs.plan import detect_gpu

    manager, store = get_manager(), Path(runs)
    root = None if data_root is None else Path(data_root)
    plan = plan_suite(
        load_suite(suite, manager),
        preset,
        manager,
        cell_records(load_runs(store)),
        data_root=root,
        seeds=seeds,
        protocol=protocol,
        rows=rows,
        datasets=datasets,
    )
    side_by_side = parallel or max(1, available_cores() // 2)
    share = max(1, available_cores() // side_by_side)
    placement = Placement(
        runs=store.absolute(),
        data_root=root,
        device=device or ("cuda" if detect_gpu() else "cpu"),
        threads=share,
        workers=share,
    )
    options = {key: str(value) for key, value in (executor_options or {}).items()}
    engine = make_executor(manager.get("executors", executor), options)
    jobs = [Job(request=planned.request, placement=placement) for planned in plan.in_state("missing")]
    outcomes = engine.run(jobs, parallel=side_by_side, listener=lambda job, event: None) if jobs else []
    wanted = {planned.run_id for planned in plan.in_state("done")} | {Path(outcome.path).name for outcome in outcomes}
    found = results(store)
    frame = found[found["run_id"].isin(wanted)].reset_index(drop=True)
    frame.attrs["errors"] = [outcome.error for outcome in outcomes if outcome.error]
    return frame


def results(runs: PathLike = "runs", evaluation: str = TRANSDUCTIVE) -> pd.DataFrame:
    """Every run of a store, one row each: what names it, its settings, its scores, and how long it took."""
    import pandas as pd

    if not Path(runs).is_dir():
        raise ConfigError(f"There is no store '{runs}'.", hint="Name the directory of the runs: results('runs').")
    rows = [_row(entry) for entry in cell_records(load_runs(Path(runs)), evaluation)]
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=list(NAMED))


def _row(entry: RunEntry) -> dict[str, Any]:
    known = entry.identity if entry.status != "unreadable" else {}
    settings = {key: known.get(key) for key in ("config", "training") if known.get(key)}
    return {
        **{name: getattr(entry, name) for name in NAMED if name != "k"},
        "k": entry.k_policy if known else "",
        **entry.scores,
        **{key: known.get(key, "") for key in IDENTITY},
        **flatten(settings),
        "problem": entry.problem,
        "path": str(entry.path),
    }


def table(
    suite: str | None = None,
    *,
    runs: PathLike = "runs",
    preset: str | None = None,
    protocol: str | None = None,
    seeds: Sequence[int] | None = None,
    scores: Sequence[str] | None = None,
    evaluation: str = TRANSDUCTIVE,
    against: str | None = None,
) -> Table:
    """A suite's table, or, without one, all runs; ``against`` a row, the paired differences to it."""
    from gcdbench.reporting.suites.read import load_suite
    from gcdbench.reporting.tables.bootstrap import RunBootstrap
    from gcdbench.reporting.tables.plain import plain_table
    from gcdbench.reporting.tables.suite_table import suite_table

    manager = get_manager()
    records = cell_records(load_runs(Path(runs)), evaluation)
    if suite is None:
        if against is not None:
            raise ConfigError("Differences to a row need a suite.", hint="For example table('main', against='simgcd').")
        return Table(content=plain_table(records, manager, tuple(scores or ("all", "old", "new"))))
    content = suite_table(
        load_suite(suite, manager),
        records,
        manager,
        preset=preset,
        seeds=seeds,
        protocol=protocol,
        scores=scores,
        evaluation=evaluation,
        bootstrap=RunBootstrap(evaluation),
        against=against,
    )
    return Table(content=content)


def score(y_true: ArrayLike, cluster: ArrayLike, is_old: ArrayLike, *, anchored: bool = False) -> dict[str, float]:
    """Every installed metric on predictions of your own.

    y_true, cluster: (N,) classes from 0 and clusters; is_old: (C,) one flag per class; anchored: cluster c is the c-th
    old class, for as many as there are old classes.

    >>> found = score([0, 0, 1, 1], [1, 1, 0, 0], [True, False])
    >>> found["all"], found["old"], found["new"]
    (100.0, 100.0, 100.0)
    """
    import numpy as np

    from gcdbench.runs.evaluate import score_set
    from gcdbench.runs.predictions import ScoredSet

    truth, found = np.asarray(y_true, dtype=np.int64), np.asarray(cluster, dtype=np.int64)
    if truth.ndim != 1 or truth.shape != found.shape or not len(truth):
        raise ConfigError(f"y_true and cluster must be lists of one length, not {truth.shape} and {found.shape}.")
    positions = np.arange(len(truth), dtype=np.int64)
    scored = ScoredSet(
        ids=positions,
        cluster=found,
        y_true=truth,
        group=positions,
        is_old=np.asarray(is_old, dtype=np.bool_),
        anchored=anchored,
        k_hat=int(found.max()) + 1,
    )
    return score_set(scored, get_manager())[0]


def load(
    run: Run | PathLike, *, runs: PathLike = "runs", weights: PathLike | None = None, device: str = "cpu"
) -> Model:
    """The model of a run (a :class:`Run`, its id, its directory) or of a folder with ``model.json``."""
    from gcdbench.runs.saved_models import open_model

    name = run.path if isinstance(run, Run) else run
    return open_model(name, Path(runs), weights=None if weights is None else str(weights), device=device)

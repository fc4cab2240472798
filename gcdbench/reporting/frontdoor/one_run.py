"""One run from Python: train it, look at it, load its model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gcdbench.plugins.manager import get_manager
from gcdbench.runs.events import Listener, ignore
from gcdbench.runs.record import INDUCTIVE, TRANSDUCTIVE, Record

if TYPE_CHECKING:
    import pandas as pd

    from gcdbench.models.predict import Model

PathLike = str | Path


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


def load(
    run: Run | PathLike, *, runs: PathLike = "runs", weights: PathLike | None = None, device: str = "cpu"
) -> Model:
    """The model of a run (a :class:`Run`, its id, its directory) or of a folder with ``model.json``."""
    from gcdbench.runs.saved_models import open_model

    name = run.path if isinstance(run, Run) else run
    return open_model(name, Path(runs), weights=None if weights is None else str(weights), device=device)

"""Sorting images that nobody has labelled, from Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gcdbench.plugins.manager import get_manager
from gcdbench.reporting.frontdoor.one_run import PathLike, Run
from gcdbench.runs.events import Listener, ignore

if TYPE_CHECKING:
    import pandas as pd

    from gcdbench.reporting.discovery import Written


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
    """Sort unlabelled images, with the help of labelled images of known classes.

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

"""The runs of a store as a DataFrame."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcdbench.core.config import flatten
from gcdbench.core.errors import ConfigError
from gcdbench.reporting.frontdoor.one_run import PathLike
from gcdbench.reporting.records import cell_records
from gcdbench.runs.index import load_runs
from gcdbench.runs.record import TRANSDUCTIVE
from gcdbench.runs.run_entry import RunEntry

if TYPE_CHECKING:
    import pandas as pd

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
IDENTITY = ("views", "augmentation", "precision", "manifest_sha256", "weights_sha256", "method_version")
"""Parts of an identity that have a column of their own in addition to a run's settings."""


def results(runs: PathLike = "runs", evaluation: str = TRANSDUCTIVE) -> pd.DataFrame:
    """Every run of a store, one row each: what names it, its settings, its scores, and how long it took."""
    import pandas as pd

    if not Path(runs).is_dir():
        raise ConfigError(f"There is no store '{runs}'.", hint="Name the directory of the runs: results('runs').")
    rows = [_row(entry) for entry in cell_records(load_runs(Path(runs)), evaluation)]
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=list(NAMED))


def _row(entry: RunEntry) -> dict[str, Any]:
    known = entry.identity if entry.status != "unreadable" else {}
    settings = {key: known.get(key) for key in ("protocol", "config", "training") if known.get(key)}
    return {
        **{name: getattr(entry, name) for name in NAMED if name != "k"},
        "k": entry.k_policy if known else "",
        **entry.scores,
        **{key: known.get(key, "") for key in IDENTITY},
        **flatten(settings),
        "problem": entry.problem,
        "path": str(entry.path),
    }

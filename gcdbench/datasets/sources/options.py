"""Options of a dataset, given as ``--dataset-set key=value``."""

from __future__ import annotations

from gcdbench.core.errors import DataError
from gcdbench.datasets.source import DatasetRequest


def refuse_unknown_options(request: DatasetRequest, *known: str) -> None:
    """An option that nothing reads would be ignored in silence; refuse it instead."""
    unknown = sorted(set(request.options) - set(known))
    if unknown:
        has = f"its options are {', '.join(known)}" if known else "it has none"
        raise DataError(f"The dataset '{request.name}' has no option '{unknown[0]}'; {has}.")

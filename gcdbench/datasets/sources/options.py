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


def choose_option(request: DatasetRequest, key: str, allowed: tuple[str, ...]) -> str | None:
    """The value of an option that takes one of a few words; None where it was not given."""
    value = request.options.get(key)
    if value is not None and value not in allowed:
        raise DataError(f"The option '{key}' of '{request.name}' must be {' or '.join(allowed)}, not '{value}'.")
    return value

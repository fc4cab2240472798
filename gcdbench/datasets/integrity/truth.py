"""Whether the class of every image is known, which a score needs and a discovery does not."""

from __future__ import annotations

import numpy as np

from gcdbench.core.errors import DataError
from gcdbench.datasets.source import UNKNOWN, DatasetSource


def require_truth(source: DatasetSource) -> None:
    """Refuse a dataset with images of unknown class where scores or the roles of a split depend on it."""
    unknown = int(np.sum(source.labels == UNKNOWN))
    if unknown:
        raise DataError(
            f"{unknown:,} of the {len(source):,} images in {source.location} have no label, so nothing can be scored.",
            hint="To sort images that nobody has labelled use 'gcdbench discover'; for a run label all of them.",
        )

"""Datasets opened by their specs, as the command line does."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from gcdbench.core.errors import DataError
from gcdbench.datasets.builtin import gcdbench_datasets
from gcdbench.datasets.source import DatasetRequest, DatasetSource

SPECS = {spec.name: spec for spec in gcdbench_datasets()}


def opened(text: str, *roots: Path, **options) -> DatasetSource:
    """The dataset called ``text``; its reader survives pickling, since workers get a copy."""
    name, _, argument = text.partition(":")
    request = DatasetRequest(name=name, argument=argument or None, roots=roots, options=options)
    source = SPECS[name].load()(request)
    assert len(source.keys) == len(set(source.keys)) == len(source.labels)
    copy = pickle.loads(pickle.dumps(source.raw))
    assert copy(0) == source.raw(0)
    return source


def refused(text: str, *roots: Path, **options) -> str:
    """What is said when the dataset called ``text`` is opened, which must fail."""
    with pytest.raises(DataError) as caught:
        opened(text, *roots, **options)
    return caught.value.message + " " + (caught.value.hint or "")

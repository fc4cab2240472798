"""The examples in the metrics' docstrings do what they say, and every metric has one."""

from __future__ import annotations

import doctest
import importlib
import inspect

import pytest

from gcdbench.metrics.builtin import gcdbench_metrics

MODULES = sorted({spec.factory.partition(":")[0] for spec in gcdbench_metrics()} | {"gcdbench.metrics.score"})


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0
    assert found.failed == 0


def test_every_metric_has_a_file_of_its_own_with_its_scores() -> None:
    specs = gcdbench_metrics()
    assert len({spec.factory.partition(":")[0] for spec in specs}) == len(specs)
    for spec in specs:
        assert spec.describe() == inspect.getmodule(spec.load()).SCORES

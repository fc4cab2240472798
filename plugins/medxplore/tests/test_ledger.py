"""The ledger names settings and variants; all of them must exist, and every setting must be in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from gcdbench_medxplore.config import MedXploreConfig
from gcdbench_medxplore.variants import VARIANTS

from gcdbench.core.config import field_types
from gcdbench.runs.presets import RunSettings
from gcdbench.training.config import TrainingConfig

LEDGER = Path(__file__).parents[3] / "benchmarks" / "medxplore" / "ledger.md"
pytestmark = pytest.mark.skipif(not LEDGER.exists(), reason="the ledger is part of the repository, not of the wheel")


def text():
    return LEDGER.read_text(encoding="utf-8")


def rows():
    lines = [line for line in text().splitlines() if re.match(r"\| \d+ \|", line)]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_there_is_one_row_for_each_open_point():
    assert [int(row[0]) for row in rows()] == list(range(1, len(rows()) + 1))
    assert len(rows()) >= 25
    assert all(len(row) == 5 and all(row) for row in rows())


def test_every_setting_of_the_plugin_is_in_the_ledger():
    ledger = text()
    missing = [key for key in field_types(MedXploreConfig) if f"`{key}`" not in ledger and key != "lambda_"]
    assert not missing


def test_every_name_in_the_ledger_exists():
    known = {**field_types(MedXploreConfig), **field_types(TrainingConfig), **field_types(RunSettings), **VARIANTS}
    named = {name for row in rows() for name in re.findall(r"`([^`]+)`", row[3])}
    assert named - set(known) == set()

"""Suites: the rows and columns of one table or figure, and the runs they ask for. One TOML file each.

A suite names methods, datasets, protocols and presets; it never trains anything itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from gcdbench.core.errors import UnknownName
from gcdbench.datasets.protocols import card_of, default_protocol, require_known
from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.request import Request

StandIn = Literal["never", "missing", "always"]
Replicate = Literal["split", "seed"]
STAND_IN = "phantom"
"""The dataset that stands in for others unless a suite names another: every machine has it."""
KINDS = ("comparison", "curve", "decomposition", "cost")
SPLIT_SEED = "protocol.split_seed"


@dataclass(frozen=True, kw_only=True)
class SuiteRow:
    """One line: a method with its settings, and the published line it is compared with.

    settings_in adds to the settings under one preset, by its name; settings_on on one dataset, by its name.
    executor: options of an executor for this row's jobs, by the executor's name.
    group and x place the row in a curve: ``group`` names the panel, ``x`` the position.
    """

    key: str
    title: str
    method: str
    variant: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    settings_in: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    settings_on: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    executor: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    reported_method: str = ""
    reported_variant: str = ""
    group: str = ""
    x: float | None = None


@dataclass(frozen=True, kw_only=True)
class SuiteColumn:
    """One dataset, with the protocol to use on it (None: the suite's)."""

    dataset: str
    title: str
    protocol: str | None = None


@dataclass(frozen=True, kw_only=True)
class SuitePreset:
    """How a suite is run under one preset."""

    name: str
    seeds: tuple[int, ...]
    stand_in: StandIn = "never"
    settings: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Suite:
    """One table or figure of a study.

    folder: where its file is; ``reported`` are files below it with published numbers, and ``reported_preset`` is the
        preset under which these were made, where the suite has it.
    stand_in_dataset: the dataset that takes the place of others under presets that allow it, with its own protocol.
    replicate: what a seed repeats. ``"split"``: it draws the split as well, so that the spread over seeds is one over
        splits; ``"seed"``: all seeds train on one split, so the spread is training noise.
    """

    name: str
    title: str
    kind: str
    rows: tuple[SuiteRow, ...]
    columns: tuple[SuiteColumn, ...]
    presets: Mapping[str, SuitePreset]
    scores: tuple[str, ...]
    protocol: str | None = None
    k_policy: Literal["known", "estimated"] = "known"
    folder: Path = Path()
    reported: tuple[str, ...] = ()
    reported_table: str = ""
    reported_preset: str = ""
    stand_in_dataset: str = STAND_IN
    row_title: str = "method"
    notes: tuple[str, ...] = ()
    replicate: Replicate = "split"

    def preset(self, name: str) -> SuitePreset:
        """The preset called ``name``; only those the suite lists are allowed."""
        if name not in self.presets:
            raise UnknownName(f"preset in suite '{self.name}'", name, self.presets)
        return self.presets[name]

    def rows_named(self, names: Sequence[str]) -> tuple[SuiteRow, ...]:
        """The rows with these keys; a name that is not a key means all rows of that method. Without names every row."""
        keys = {row.key for row in self.rows}
        _refuse_unknown(f"row or method in suite '{self.name}'", names, keys | {row.method for row in self.rows})
        methods = set(names) - keys
        return tuple(row for row in self.rows if not names or row.key in names or row.method in methods)

    def columns_named(self, datasets: Sequence[str]) -> tuple[SuiteColumn, ...]:
        """The columns of these datasets; without names every column."""
        _refuse_unknown(f"dataset in suite '{self.name}'", datasets, {column.dataset for column in self.columns})
        return tuple(column for column in self.columns if not datasets or column.dataset in datasets)


def _refuse_unknown(kind: str, names: Sequence[str], known: set[str]) -> None:
    for name in names:
        if name not in known:
            raise UnknownName(kind, name, known)


def request_for(
    suite: Suite, row: SuiteRow, column: SuiteColumn, preset: SuitePreset, seed: int, *, protocol: str | None = None
) -> Request:
    """The run behind one cell and seed; a split seed that preset or row set themselves stays as they have it."""
    drawn: dict[str, object] = {SPLIT_SEED: seed} if suite.replicate == "split" else {}
    return Request(
        method=row.method,
        variant=row.variant,
        dataset=column.dataset,
        preset=preset.name,
        protocol=protocol or column.protocol or suite.protocol,
        k_policy=suite.k_policy,
        seed=seed,
        overrides={
            **drawn,
            **preset.settings,
            **row.settings,
            **row.settings_on.get(column.dataset, {}),
            **row.settings_in.get(preset.name, {}),
        },
    )


def stand_in_column(suite: Suite, column: SuiteColumn, manager: PluginManager) -> SuiteColumn:
    """The suite's stand-in in place of a dataset, with the stand-in's own protocol."""
    protocol = default_protocol(card_of(suite.stand_in_dataset, manager))
    return SuiteColumn(dataset=suite.stand_in_dataset, title=column.title, protocol=protocol)


def require_protocol(suite: Suite, name: str | None, manager: PluginManager) -> None:
    """Refuse a protocol that no dataset of the suite has; None is nobody's."""
    require_known(name, [column.dataset for column in suite.columns], manager, f"suite '{suite.name}'")

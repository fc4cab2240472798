"""Reading suites from TOML; every complaint names the file and the key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gcdbench.core.errors import ConfigError
from gcdbench.core.toml_files import read_toml
from gcdbench.plugins.manager import PluginManager
from gcdbench.plugins.specs import SuiteSpec
from gcdbench.reporting.suites.model import KINDS, STAND_IN, Suite, SuiteColumn, SuitePreset, SuiteRow


def find_suite(name: str, manager: PluginManager) -> Path:
    """The file of an installed suite: ``study/suite``, or ``suite`` where only one study has it."""
    names = manager.names("suites")
    found = [full for full in names if name in (full, full.rpartition("/")[2])]
    if len(found) > 1:
        raise ConfigError(
            f"'{name}' may mean {' or '.join(found)}.", hint="Put the name of the study and a slash in front."
        )
    spec: SuiteSpec = manager.get("suites", found[0] if found else name)
    return Path(spec.file)


def load_suite(name: str | Path, manager: PluginManager) -> Suite:
    """A suite by name or by file."""
    path = Path(name)
    if path.suffix != ".toml":
        path = find_suite(str(name), manager)
    try:
        table = read_toml(path)
    except OSError as error:
        raise ConfigError(f"The suite '{path}' cannot be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise ConfigError(f"The suite '{path}' is not valid TOML: {error}.") from error
    return _Reader(path).suite(table)


class _Reader:
    """Turns TOML into a suite; every complaint names the file and the key."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def refuse(self, what: str) -> ConfigError:
        return ConfigError(f"The suite '{self.path}' is wrong: {what}.")

    def only(self, table: object, known: Sequence[str], where: str) -> dict[str, Any]:
        if not isinstance(table, dict):
            raise self.refuse(f"{where} must be a table")
        unknown = sorted(set(table) - set(known))
        if unknown:
            raise self.refuse(f"{where} has the unknown key '{unknown[0]}'; known: {', '.join(known)}")
        return table

    def text(self, table: Mapping[str, Any], key: str, default: str | None = None) -> str:
        value = table.get(key, default)
        if not isinstance(value, str) or (not value and default is None):
            raise self.refuse(f"'{key}' must be a string")
        return value

    def optional(self, table: Mapping[str, Any], key: str) -> str | None:
        return self.text(table, key) if key in table else None

    def texts(self, table: Mapping[str, Any], key: str, default: Sequence[str] = ()) -> tuple[str, ...]:
        value = table.get(key, list(default))
        value = [value] if isinstance(value, str) else value
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.refuse(f"'{key}' must be a string or a list of strings")
        return tuple(value)

    def suite(self, table: object) -> Suite:
        known = (
            "title", "kind", "protocol", "k", "scores", "reported", "reported_table", "reported_preset",
            "replicate", "stand_in_dataset", "row_title", "notes", "presets", "columns", "rows", "sweeps",
        )  # fmt: skip
        top = self.only(table, known, "the file")
        kind = self.text(top, "kind", "comparison")
        if kind not in KINDS:
            raise self.refuse(f"'kind' must be one of {', '.join(KINDS)}")
        k_policy = self.text(top, "k", "known")
        if k_policy not in ("known", "estimated"):
            raise self.refuse("'k' must be 'known' or 'estimated'")
        replicate = self.text(top, "replicate", "split")
        if replicate not in ("split", "seed"):
            raise self.refuse("'replicate' must be 'split' (each seed draws its split) or 'seed' (one split for all)")
        rows = [self.row(item) for item in self.tables(top, "rows")]
        for item in self.tables(top, "sweeps"):
            rows += self.sweep(item)
        columns = [self.column(item) for item in self.tables(top, "columns")]
        presets = {name: self.preset(name, item) for name, item in self.only_table(top, "presets").items()}
        for row in rows:
            for name in row.settings_in:
                if name not in presets:
                    raise self.refuse(f"row '{row.key}' has 'set_in.{name}', but there is no preset '{name}'")
            for name in row.settings_on:
                if name not in {column.dataset for column in columns}:
                    raise self.refuse(f"row '{row.key}' has 'set_on.{name}', but there is no column '{name}'")
        scores = self.texts(top, "scores", ("all", "old", "new"))
        if not scores:
            raise self.refuse("'scores' must name at least one score")
        keys = [row.key for row in rows]
        if twice := sorted({key for key in keys if keys.count(key) > 1}):
            raise self.refuse(f"two rows have the key '{twice[0]}': give one of them another, key = \"…\"")
        datasets = [column.dataset for column in columns]
        if twice := sorted({name for name in datasets if datasets.count(name) > 1}):
            raise self.refuse(f"two columns have the dataset '{twice[0]}': a suite has one column for each dataset")
        if not rows or not columns or not presets:
            raise self.refuse(
                "it needs at least one of [[rows]] or [[sweeps]], one [[columns]] and one [presets.<name>]"
            )
        return Suite(
            name=self.path.stem,
            title=self.text(top, "title"),
            kind=kind,
            rows=tuple(rows),
            columns=tuple(columns),
            presets=presets,
            scores=scores,
            protocol=self.optional(top, "protocol"),
            k_policy=k_policy,  # type: ignore[arg-type]  # checked above
            folder=self.path.parent,
            reported=self.reported(top),
            reported_table=self.text(top, "reported_table", ""),
            reported_preset=self.text(top, "reported_preset", ""),
            stand_in_dataset=self.text(top, "stand_in_dataset", STAND_IN),
            row_title=self.text(top, "row_title", "method"),
            notes=self.texts(top, "notes"),
            replicate=replicate,  # type: ignore[arg-type]  # checked above
        )

    def reported(self, top: Mapping[str, Any]) -> tuple[str, ...]:
        names = self.texts(top, "reported")
        for name in names:
            inside = not Path(name).is_absolute() and ".." not in Path(name).parts
            if not inside or not (self.path.parent / name).is_file():
                raise self.refuse(f"'reported' names '{name}', which is not next to it")
        return names

    def tables(self, top: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
        value = top.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.refuse(f"'{key}' must be written as [[{key}]]")
        return value

    def only_table(self, top: Mapping[str, Any], key: str) -> dict[str, Any]:
        value = top.get(key, {})
        if not isinstance(value, dict):
            raise self.refuse(f"'{key}' must be a table")
        return value

    def row(self, item: object) -> SuiteRow:
        known = (
            "key",
            "title",
            "method",
            "variant",
            "set",
            "set_in",
            "set_on",
            "executor",
            "reported",
            "reported_variant",
        )
        table = self.only(item, known, "a row")
        method = self.text(table, "method")
        key = self.text(table, "key", method)
        return SuiteRow(
            key=key,
            title=self.text(table, "title", key),
            method=method,
            variant=self.optional(table, "variant"),
            settings=self.only_table(table, "set"),
            settings_in=self.tables_of(table, "set_in"),
            settings_on=self.tables_of(table, "set_on"),
            executor=self.tables_of(table, "executor"),
            reported_method=self.text(table, "reported", ""),
            reported_variant=self.text(table, "reported_variant", ""),
        )

    def tables_of(self, table: Mapping[str, Any], key: str) -> dict[str, dict[str, Any]]:
        """Settings by a second name, as in ``executor.slurm = { time = 600 }``."""
        options = self.only_table(table, key)
        return {name: self.only_table(options, name) for name in options}

    def sweep(self, item: object) -> list[SuiteRow]:
        """One setting over several values: a row for each."""
        known = ("title", "method", "variant", "setting", "values", "set", "executor", "reported", "reported_variants")
        table = self.only(item, known, "a sweep")
        method, setting = self.text(table, "method"), self.text(table, "setting")
        title = self.text(table, "title", setting)
        values = table.get("values")
        if not isinstance(values, list) or not values:
            raise self.refuse(f"the sweep of '{setting}' needs a list of 'values'")
        printed = self.only_table(table, "reported_variants")
        return [
            SuiteRow(
                key=f"{setting}={value}",
                title=f"{title} = {value}",
                method=method,
                variant=self.optional(table, "variant"),
                settings={**self.only_table(table, "set"), setting: value},
                executor=self.tables_of(table, "executor"),
                reported_method=self.text(table, "reported", "") if str(value) in printed else "",
                reported_variant=str(printed.get(str(value), "")),
                group=title,
                x=self.position(setting, value),
            )
            for value in values
        ]

    def position(self, setting: str, value: object) -> float | None:
        """Where a value stands on the axis of a figure; None where it is not a number."""
        try:
            return float(value) if isinstance(value, (int, float)) else None
        except OverflowError:
            raise self.refuse(f"a value of the sweep of '{setting}' is too large") from None

    def column(self, item: object) -> SuiteColumn:
        table = self.only(item, ("dataset", "title", "protocol"), "a column")
        dataset = self.text(table, "dataset")
        return SuiteColumn(
            dataset=dataset, title=self.text(table, "title", dataset), protocol=self.optional(table, "protocol")
        )

    def preset(self, name: str, item: object) -> SuitePreset:
        table = self.only(item, ("seeds", "stand_in", "set"), f"preset '{name}'")
        seeds = table.get("seeds", [0])
        if not isinstance(seeds, list) or not seeds or not all(type(seed) is int for seed in seeds):
            raise self.refuse(f"'presets.{name}.seeds' must be a list of whole numbers")
        stand_in = table.get("stand_in", "never")
        if stand_in not in ("never", "missing", "always"):
            raise self.refuse(f"'presets.{name}.stand_in' must be 'never', 'missing' or 'always'")
        return SuitePreset(name=name, seeds=tuple(seeds), stand_in=stand_in, settings=self.only_table(table, "set"))

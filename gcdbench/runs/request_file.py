"""Run options in a TOML file, so that a run can be written down; the command line wins over the file.

The ``config.toml`` of a stored run is such a file too: given to ``--config`` it describes the same run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gcdbench.core.config import flatten
from gcdbench.core.errors import ConfigError
from gcdbench.core.toml_files import read_toml
from gcdbench.runs.plan import PROTOCOL_PREFIX
from gcdbench.runs.request import Request

TEXT_KEYS = ("method", "dataset", "variant", "preset", "protocol", "split", "k")
TABLES = ("set", "dataset_set")
RESOLVED_TABLES = ("settings", "training", "config")
"""Tables of a stored run's config.toml; each holds settings, as [set] does."""
REPLACES = {
    "preset": ("settings", "training"),
    "method": ("config",),
    "variant": ("config",),
    "protocol": ("rules",),
    "split": ("rules",),
}
"""A stored run's tables that go when the command line names what they followed from."""


def read_request_file(path: Path) -> dict[str, Any]:
    """``method``, ``dataset``, … at the top, any setting in ``[set]``, dataset options in ``[dataset_set]``."""
    try:
        table = read_toml(path)
    except OSError as error:
        raise ConfigError(f"The config file '{path}' cannot be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise ConfigError(f"The config file '{path}' is not valid TOML: {error}.") from error
    unknown = sorted(set(table) - {*TEXT_KEYS, "seed", *TABLES, *RESOLVED_TABLES})
    if unknown:
        raise ConfigError(
            f"The config file '{path}' has the unknown key '{unknown[0]}'.",
            hint=f"Known keys: {', '.join(TEXT_KEYS)}, seed, and the tables [set] and [dataset_set].",
        )
    _spread_protocol(table)
    for key in TEXT_KEYS:
        if not isinstance(table.get(key, ""), str):
            raise ConfigError(f"The config file '{path}': '{key}' must be a string, not '{table[key]}'.")
    for key in (*TABLES, *RESOLVED_TABLES):
        if not isinstance(table.get(key, {}), dict):
            raise ConfigError(f"The config file '{path}': '{key}' must be a table, [{key}].")
    return table


def _spread_protocol(table: dict[str, Any]) -> None:
    """A stored run's ``[protocol]`` as what a user would have written: a name, K, and settings."""
    rules = table.get("protocol")
    if not isinstance(rules, dict):
        return
    del table["protocol"]
    if "k_policy" in rules:
        table.setdefault("k", rules["k_policy"])
    if "split" in table:
        return  # the split brings its protocol
    # What a name has after "+" are changed rules; they follow from the settings.
    table["protocol"] = str(rules.get("name", "")).partition("+")[0]
    table["rules"] = {PROTOCOL_PREFIX + key: rules[key] for key in rules if key not in ("name", "k_policy")}


def _settings(table: Mapping[str, Any]) -> dict[str, object]:
    """Everything the file sets, [set] last."""
    # A stored run says "none" where its method has no use for a setting.
    stored = {
        key: value
        for key, value in table.get("settings", {}).items()
        if not (key in ("backbone", "views", "augmentation") and value == "none")
    }
    return {
        **stored,
        **flatten(table.get("training", {}), "training."),
        **table.get("rules", {}),
        **flatten(table.get("config", {}), "config."),
        **flatten(table.get("set", {})),
    }


def merge_request(
    config_file: Path | None,
    *,
    overrides: Mapping[str, object],
    dataset_options: Mapping[str, str],
    **given: Any,
) -> Request:
    """The request: the file's values, replaced by those ``given`` on the command line (None: not said)."""
    table = read_request_file(config_file) if config_file else {}
    for option, tables in REPLACES.items():
        if given.get(option) not in (None, table.get(option)):
            table = {key: value for key, value in table.items() if key not in tables}
    values: dict[str, Any] = {key: table[key] for key in (*TEXT_KEYS, "seed") if key in table}
    if "k" in values:
        values["k_policy"] = values.pop("k")
    values |= {key: value for key, value in given.items() if value is not None}
    for key in ("method", "dataset"):
        if key not in values:
            raise ConfigError(f"No {key} was given.", hint=f"Add --{key} NAME; 'gcdbench list {key}s' shows the names.")
    if type(values.get("seed", 0)) is not int:
        raise ConfigError(f"'seed' must be a whole number, not '{values['seed']}'.")
    if values.get("k_policy", "known") not in ("known", "estimated"):
        raise ConfigError(f"'k' must be 'known' or 'estimated', not '{values['k_policy']}'.")
    return Request(
        **values,
        overrides={**_settings(table), **overrides},
        dataset_options={**{k: str(v) for k, v in table.get("dataset_set", {}).items()}, **dataset_options},
    )

"""Run options in a TOML file, so that a run can be written down; the command line wins over the file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gcdbench.errors import ConfigError
from gcdbench.plan import RunRequest

KEYS = ("method", "dataset", "variant", "preset", "protocol", "k", "seed")


def read_request_file(path: Path) -> dict[str, Any]:
    """``method``, ``dataset``, … at the top, any setting in ``[set]``, dataset options in ``[dataset_set]``."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"The config file '{path}' cannot be read: {error.strerror or error}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"The config file '{path}' is not valid TOML: {error}.") from error
    unknown = sorted(set(table) - {*KEYS, "set", "dataset_set"})
    if unknown:
        raise ConfigError(
            f"The config file '{path}' has the unknown key '{unknown[0]}'.",
            hint=f"Known keys: {', '.join(KEYS)}, and the tables [set] and [dataset_set].",
        )
    return table


def flatten(table: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    """Nested tables as dotted keys."""
    flat: dict[str, object] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def merge_request(
    config_file: Path | None,
    *,
    overrides: Mapping[str, object],
    dataset_options: Mapping[str, str],
    **given: Any,
) -> RunRequest:
    """The request: the file's values, replaced by those ``given`` on the command line (None: not said)."""
    table = read_request_file(config_file) if config_file else {}
    values: dict[str, Any] = {key: table[key] for key in KEYS if key in table}
    if "k" in values:
        values["k_policy"] = values.pop("k")
    values |= {key: value for key, value in given.items() if value is not None}
    for key in ("method", "dataset"):
        if key not in values:
            raise ConfigError(f"No {key} was given.", hint=f"Add --{key} NAME; 'gcdbench list {key}s' shows the names.")
    if not isinstance(values.get("seed", 0), int):
        raise ConfigError(f"'seed' must be a whole number, not '{values['seed']}'.")
    if values.get("k_policy", "known") not in ("known", "estimated"):
        raise ConfigError(f"'k' must be 'known' or 'estimated', not '{values['k_policy']}'.")
    return RunRequest(
        **values,
        overrides={**flatten(table.get("set", {})), **overrides},
        dataset_options={**{k: str(v) for k, v in table.get("dataset_set", {}).items()}, **dataset_options},
    )

"""The model that a person means: a run, or a folder that holds a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gcdbench.core.errors import StoreError
from gcdbench.core.toml_files import read_toml
from gcdbench.models.card_file import CARD, card_path
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.index import find_run

if TYPE_CHECKING:
    from gcdbench.models.predict import Model


def model_directory(name: str | Path, runs: Path) -> Path:
    """The directory of the model meant by ``name``: its folder, its ``model.json``, a run's path, or its id."""
    given = Path(name).expanduser()
    if given.name == CARD and given.is_file():
        return given.parent
    if card_path(given).is_file():
        return given
    found = find_run(runs, str(name))
    if not card_path(found).is_file():
        directory = RunDirectory(found)
        method, status = directory.record().method, directory.status()
        raise StoreError(
            f"The run '{found.name}' ({method}, {status}) has no saved model.",
            hint="A finished run has one unless its method works without a network or the run was imported without it.",
        )
    return found


def open_model(name: str | Path, runs: Path, *, weights: str | None = None, device: str = "cpu") -> Model:
    """Load the model meant by ``name``; ``weights`` is the backbone's weight file where the run used one of its own.

    A run remembers which file that was; elsewhere it has to be given.
    """
    from gcdbench.models.predict import load_model

    directory = model_directory(name, runs)
    return load_model(directory, weights=weights or _weights_of_run(directory), device=device)


def _weights_of_run(directory: Path) -> str | None:
    try:
        settings = read_toml(directory / "config.toml").get("settings", {})
    except (OSError, ValueError):
        return None
    weights = settings.get("weights") if isinstance(settings, dict) else None
    return weights if isinstance(weights, str) else None

"""Options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gcdbench.cli.echo import say

if TYPE_CHECKING:
    from gcdbench.plugins.manager import PluginManager

F = TypeVar("F", bound=Callable[..., Any])


def runs_option(function: F) -> F:
    """``--runs``: where run directories are."""
    return click.option(
        "--runs",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path("runs"),
        show_default=True,
        envvar="GCDBENCH_RUNS",
        help="Directory of the run directories.",
    )(function)


def json_option(function: F) -> F:
    """``--json``: for programs instead of people."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def data_root_option(function: F) -> F:
    """``--data-root``: the first place to look for datasets."""
    return click.option(
        "--data-root",
        type=click.Path(path_type=Path, file_okay=False),
        default=None,
        help="Where datasets are (default: GCDBENCH_DATA, then the user's data directory).",
    )(function)


def preset_option(function: F) -> F:
    """``--preset`` of a run."""
    return click.option(
        "--preset", help="Settings under one name ('gcdbench list presets'; default: gpu on a GPU, laptop on a CPU)."
    )(function)


def protocol_option(function: F) -> F:
    """``--protocol`` of a run."""
    return click.option(
        "--protocol",
        help="half, by-count, alternate, or one of the dataset's card ('gcdbench data show'; default: the card's).",
    )(function)


def old_option(function: F) -> F:
    """``--old``: which classes are the old ones."""
    return click.option(
        "--old",
        metavar="NAME,NAME…",
        help="The old classes, by name or by number from 0, consecutive or not (default: what the protocol says).",
    )(function)


def old_settings(old: str | None) -> dict[str, object]:
    """What ``--old`` says, as settings of the protocol."""
    from gcdbench.core.errors import ConfigError

    if old is None:
        return {}
    names = tuple(name.strip() for name in old.split(",") if name.strip())
    if not names:
        raise ConfigError("--old names no class.", hint='For example --old "polyps,esophagitis".')
    return {"protocol.old_rule": "named", "protocol.old_names": names}


def observe_option(function: F) -> F:
    """``--observe``: who watches a run; may be repeated."""
    return click.option(
        "--observe",
        multiple=True,
        metavar="NAME[:ARGUMENT]",
        help="Tell an observer what happens, for example tensorboard ('gcdbench list observers'). May be repeated.",
    )(function)


def setting_options(function: F) -> F:
    """``--backbone`` and ``--set``: what :func:`given_settings` reads."""
    assignments = click.option(
        "--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Change any setting. May be repeated."
    )
    return click.option("--backbone", help="Backbone ('gcdbench list backbones').")(assignments(function))


def given_settings(assignments: tuple[str, ...], backbone: str | None) -> dict[str, object]:
    """What ``--set`` and ``--backbone`` say; one setting with two values is refused."""
    from gcdbench.core.config import parse_assignment
    from gcdbench.core.errors import ConfigError

    settings: dict[str, object] = {}
    pairs = [parse_assignment(text) for text in assignments]
    for key, value in pairs if backbone is None else [*pairs, ("backbone", backbone)]:
        if settings.setdefault(key, value) != value:
            raise ConfigError(f"'{key}' is given twice, as '{settings[key]}' and as '{value}': leave one out.")
    return settings


def warn_of_plugins(manager: PluginManager) -> None:
    """Say which plugins do not work: what was asked for may not be what runs."""
    for record in manager.records():
        if not record.ok:
            say(f"Note: the plugin '{record.distribution}' does not work ({record.error}).", err=True)


def require_runs(runs: Path, found: Sized) -> None:
    """Refuse to make something of a store without a run: mostly its name is mistyped."""
    from gcdbench.core.errors import ConfigError

    if not len(found):
        raise ConfigError(
            f"There is no run in '{runs}'.", hint="Name the directory of the runs with --runs, or make a run first."
        )


def echo_json(value: Any) -> None:
    """Print a value as JSON."""
    import json

    say(json.dumps(value, indent=2, ensure_ascii=False, default=str))

"""What the verbs of ``gcdbench data`` share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gcdbench.cli.echo import say
from gcdbench.cli.options import data_root_option

if TYPE_CHECKING:
    from gcdbench.core.work import Progress
    from gcdbench.datasets.source import DatasetSource

F = TypeVar("F", bound=Callable[..., Any])


def common_options(function: F) -> F:
    """The dataset, where it is, its options, and the number of worker processes."""
    function = click.option("--workers", type=click.IntRange(1), default=None, help="Worker processes.")(function)
    function = click.option("--dataset-set", multiple=True, metavar="KEY=VALUE", help="Option of the dataset.")(
        function
    )
    return click.argument("dataset")(data_root_option(function))


def open_named(
    dataset: str, data_root: Path | None, dataset_set: tuple[str, ...] = (), image_size: int | None = None
) -> DatasetSource:
    """Open the dataset that the user named, and say how it was understood."""
    from gcdbench.datasets.catalogue import open_dataset
    from gcdbench.plugins.manager import get_manager

    options = parse_options(dataset_set)
    source = open_dataset(dataset, get_manager(), data_root=data_root, image_size=image_size, options=options)
    for remark in source.remarks:
        say(f"{remark.level.capitalize()}: {remark.message}.", err=True)
    return source


def parse_options(dataset_set: tuple[str, ...]) -> dict[str, str]:
    """The options of a dataset, from the texts of ``--dataset-set``."""
    from gcdbench.core.config import parse_assignment

    return dict(parse_assignment(text) for text in dataset_set)


@contextmanager
def shown_progress(*, quiet: bool) -> Iterator[Progress]:
    """A progress callback that draws on the terminal."""
    from gcdbench.cli.progress import ProgressDisplay
    from gcdbench.runs import events

    with ProgressDisplay(quiet=quiet) as display:
        yield lambda task, done, total: display(events.Progress(task=task, done=done, total=total))

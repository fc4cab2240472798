"""``gcdbench data fetch``."""

from __future__ import annotations

from pathlib import Path

import click

from gcdbench.cli.data_common import shown_progress
from gcdbench.cli.echo import say
from gcdbench.cli.options import data_root_option


@click.command()
@click.argument("dataset")
@data_root_option
@click.option("--size", type=click.Choice(["28", "64", "128", "224"]), help="MedMNIST: side in pixels (default: 224).")
@click.option("--force", is_flag=True, help="Fetch even if the dataset is here.")
def fetch(dataset: str, data_root: Path | None, size: str | None, force: bool) -> None:
    """Download a dataset where that is possible, else say how to get it and where to put it.

    Downloads are resumed where they stopped and checked where a checksum is published.
    """
    from gcdbench.core.errors import ConfigError
    from gcdbench.datasets.builtin import MEDMNIST
    from gcdbench.datasets.catalogue import find_card, find_presence
    from gcdbench.datasets.fetch import fetch_dataset
    from gcdbench.datasets.roots import download_root
    from gcdbench.datasets.sources.medmnist import file_name
    from gcdbench.plugins.manager import get_manager

    manager = get_manager()
    card = find_card(dataset, manager)
    files = (file_name(dataset, int(size or card.image_size)),) if dataset in MEDMNIST else None
    if size and files is None:
        raise ConfigError(f"--size is for MedMNIST's sets; '{dataset}' comes in one size.")
    presence = find_presence(dataset, manager, data_root)
    is_here = presence.state in ("here", "built-in") and (files is None or presence.location.endswith(files))
    if is_here and not force:
        say(f"{dataset} is here: {presence.location}")
        return
    root = download_root(data_root)
    say(f"{card.title}; licence: {card.licence}; cite: {card.citation}", err=True)
    with shown_progress(quiet=False) as progress:
        for path in fetch_dataset(card, root, files=files, progress=progress):
            say(f"{dataset}: {path}")
    say(f"Now check it: gcdbench data verify {dataset}", err=True)

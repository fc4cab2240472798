"""``gcdbench data``: find, fetch, verify, prepare, audit and split datasets."""

from __future__ import annotations

from pathlib import Path

import click

from gcdbench.cli.data_cache import cache
from gcdbench.cli.data_common import common_options, open_named, parse_options, shown_progress
from gcdbench.cli.data_fetch import fetch
from gcdbench.cli.data_split import split
from gcdbench.cli.echo import say
from gcdbench.cli.options import data_root_option, echo_json, json_option


@click.group("data")
def command() -> None:
    """Find, fetch, verify, prepare, audit and split datasets."""


command.add_command(fetch)
command.add_command(split)
command.add_command(cache)


@command.command("list")
@data_root_option
@json_option
def list_(data_root: Path | None, as_json: bool) -> None:
    """List datasets: what is here, what is missing, how large."""
    from dataclasses import asdict

    from gcdbench.core.disk_space import format_bytes
    from gcdbench.datasets.catalogue import list_presence
    from gcdbench.datasets.roots import data_roots
    from gcdbench.plugins.manager import get_manager

    found = list(list_presence(get_manager(), data_root))
    roots = [str(root) for root in data_roots(data_root)]
    if as_json:
        echo_json({"roots": roots, "datasets": [asdict(item) for item in found]})
        return
    width = max(len(item.name) for item in found)
    for item in sorted(found, key=lambda item: (item.state == "missing", item.name)):
        images = "" if item.images is None else f"{item.images:,} images"
        if item.images is not None and item.expected is not None and item.images != item.expected:
            images += f" of {item.expected:,}"
        size = "" if item.bytes is None else format_bytes(item.bytes)
        tail = item.problem or item.location or item.summary
        say(f"{item.name:<{width}}  {item.state:<8}  {images:<24}  {size:>8}  {tail}".rstrip())
    say("Looked in: " + ", ".join(roots))


@command.command()
@common_options
@json_option
def show(
    dataset: str, data_root: Path | None, dataset_set: tuple[str, ...], workers: int | None, as_json: bool
) -> None:
    """Show the card of a dataset; of folder:<path> and csv:<file> one that is made from what is there."""
    from dataclasses import asdict

    from gcdbench.datasets.catalogue import describe
    from gcdbench.datasets.protocols import describe_protocols, with_imported
    from gcdbench.plugins.manager import get_manager

    options = parse_options(dataset_set)
    card = with_imported(describe(dataset, get_manager(), data_root=data_root, options=options))
    contents = _contents(dataset, data_root, options, workers) if ":" in dataset else ""
    if as_json:
        echo_json({**asdict(card), **({"contents": contents} if contents else {})})
        return
    say(f"{card.name}: {card.title}")
    if contents:
        say(f"  {'contents':10}{contents} (the same images in the same classes have the same digits)")
    for name in ("modality", "licence", "citation", "source", "layout", "grouping"):
        value = getattr(card, name)
        if value:
            say(f"  {name:10}{value}")
    total = "unknown" if card.total is None else f"{card.total:,}"
    parts = ", ".join(f"{part} {count:,}" for part, count in card.samples.items())
    say(f"  {'images':10}{total}" + (f" ({parts})" if len(card.samples) > 1 else ""))
    say(f"  {'input':10}{card.image_size} pixels")
    say(f"  classes ({len(card.classes)}), in order:")
    for index, name in enumerate(card.classes):
        counts = [table[index] for table in (card.counts, card.test_counts) if table is not None]
        say(f"    {index:2}  {name}" + (f"  {' + '.join(f'{count:,}' for count in counts)}" if counts else ""))
    say(f"  protocols ({card.default_protocol} where none is named):")
    for name, text in describe_protocols(card).items():
        say(f"    {name}: {text}")
    for title, lines in (("known defects", card.defects), ("notes", card.notes)):
        for line in lines:
            say(f"  {title}: {line}")
    for name in card.downloads:
        say(f"  download: {name} ({card.checksums.get(name, 'no published checksum')})")


def _contents(dataset: str, data_root: Path | None, options: dict[str, str], workers: int | None) -> str:
    """What tells two folders of one name apart."""
    from gcdbench.core.places import cache_dir
    from gcdbench.core.work import available_cores
    from gcdbench.datasets.catalogue import open_dataset
    from gcdbench.datasets.integrity.contents import contents_digest
    from gcdbench.images.hashing import content_hashes
    from gcdbench.plugins.manager import get_manager

    source = open_dataset(dataset, get_manager(), data_root=data_root, options=options)
    return contents_digest(source, content_hashes(source, cache_dir(), workers=workers or available_cores()))


@command.command()
@common_options
@click.option("--show", "shown", default=10, show_default=True, help="Samples to list for each finding.")
@json_option
def verify(
    dataset: str, data_root: Path | None, dataset_set: tuple[str, ...], workers: int | None, shown: int, as_json: bool
) -> None:
    """Check a dataset against its card: counts, checksums, every image decodes. Exit code 1 when it fails."""
    from gcdbench.core.places import cache_dir
    from gcdbench.core.work import available_cores
    from gcdbench.datasets.integrity.verify import verify as run_verify

    source = open_named(dataset, data_root, dataset_set)
    with shown_progress(quiet=as_json) as progress:
        report = run_verify(source, workers=workers or available_cores(), cache=cache_dir(), progress=progress)
    echo_json(report.to_dict()) if as_json else say(report.to_text(shown))
    raise SystemExit(0 if report.ok else 1)


@command.command()
@common_options
@click.option("--protocol", default=None, help="Protocol whose roles are checked (default: the dataset's own).")
@click.option("--show", "shown", default=10, show_default=True, help="Samples to list for each finding.")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Also write the report to a file."
)
@json_option
def audit(
    dataset: str,
    data_root: Path | None,
    dataset_set: tuple[str, ...],
    workers: int | None,
    protocol: str | None,
    shown: int,
    output: Path | None,
    as_json: bool,
) -> None:
    """Look for duplicates, torn groups, blank, odd and unreadable images. Reads only. Exit code 1 with errors."""
    import json

    from gcdbench.core.files import write_text
    from gcdbench.core.work import available_cores
    from gcdbench.datasets.integrity.dataset_findings import find_faults
    from gcdbench.datasets.protocols import card_of, named_protocol
    from gcdbench.plugins.manager import get_manager

    source = open_named(dataset, data_root, dataset_set)
    name = dataset.partition(":")[0]
    rules = named_protocol(protocol, card_of(name, get_manager()), name)
    with shown_progress(quiet=as_json) as progress:
        report = find_faults(source, rules, workers=workers or available_cores(), progress=progress)
    text = json.dumps(report.to_dict(), indent=2, ensure_ascii=False) if as_json else report.to_text(shown)
    say(text)
    if output is not None:
        full = text if as_json else report.to_text(shown=report.images)
        write_text(output, full + "\n")
    raise SystemExit(0 if report.ok else 1)


@command.command()
@common_options
@click.option("--image-size", type=click.IntRange(8), default=None, help="Input size of the network in pixels.")
@json_option
def prepare(
    dataset: str,
    data_root: Path | None,
    dataset_set: tuple[str, ...],
    workers: int | None,
    image_size: int | None,
    as_json: bool,
) -> None:
    """Decode and resize all images once into the cache, so that runs start at once."""
    import time

    from gcdbench.core.disk_space import format_bytes
    from gcdbench.core.places import cache_dir
    from gcdbench.images.image_store import prepare_store, store_bytes

    source = open_named(dataset, data_root, dataset_set, image_size)
    size = image_size or source.card.image_size
    needed = store_bytes(len(source), size)
    if not as_json:
        say(f"{len(source):,} images for {size} px input: {format_bytes(needed)} in {cache_dir()}", err=True)
    began = time.perf_counter()
    with shown_progress(quiet=as_json) as progress:
        store = prepare_store(source, size, cache_dir(), workers, progress)
    seconds = time.perf_counter() - began
    if as_json:
        folder = str(store.folder)
        echo_json({"dataset": dataset, "images": len(store), "key": store.key, "folder": folder, "bytes": needed})
    else:
        say(f"Ready in {seconds:.1f} s: {store.folder}")


if __name__ == "__main__":
    command()

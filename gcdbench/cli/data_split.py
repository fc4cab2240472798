"""``gcdbench data split``: the split of a dataset as a file that two laboratories can compare."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gcdbench.cli.data_common import common_options, open_named, shown_progress
from gcdbench.cli.echo import say
from gcdbench.cli.options import echo_json, json_option, old_option

if TYPE_CHECKING:
    from gcdbench.splits.manifest import SplitManifest
    from gcdbench.splits.protocol import Protocol

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group()
def split() -> None:
    """Export, compare and import splits."""


@split.command()
@common_options
@click.option("--protocol", default=None, help="Protocol (default: the dataset's own).")
@old_option
@click.option("--set", "assignments", multiple=True, metavar="protocol.KEY=VALUE", help="Change a rule, as in a run.")
@click.option("--split-seed", type=int, default=0, show_default=True, help="Seed of the split.")
@click.option("--output", "-o", type=_FILE, help="File to write (default: standard output).")
def export(
    dataset: str,
    data_root: Path | None,
    dataset_set: tuple[str, ...],
    workers: int | None,
    protocol: str | None,
    old: str | None,
    assignments: tuple[str, ...],
    split_seed: int,
    output: Path | None,
) -> None:
    """Write the split of a dataset under a protocol: the same bytes on every machine with the same images."""
    from gcdbench.core.files import write_bytes

    rules = _rules(dataset, protocol, old, assignments, split_seed)
    made = _make(dataset, data_root, dataset_set, workers, rules)
    content = made.to_text().encode()
    if output is None:
        # Bytes, so that no platform translates the line ends.
        sys.stdout.buffer.write(content)
    else:
        write_bytes(output.absolute(), content)
        say(f"{output}: sha256 {made.sha}", err=True)
        _describe(made)


@split.command()
@click.argument("left", type=_FILE)
@click.argument("right", type=_FILE)
@json_option
def diff(left: Path, right: Path, as_json: bool) -> None:
    """Compare two exported splits by image content. Exit code 1 when they differ."""
    from dataclasses import asdict

    from gcdbench.splits.split_file import compare_splits, read_split

    a, b = read_split(left), read_split(right)
    found = compare_splits(a, b)
    if as_json:
        echo_json({"same": found.same, "left_sha256": a.sha, "right_sha256": b.sha, **asdict(found)})
    elif found.same:
        say(f"The same split: sha256 {a.sha}")
    else:
        header = ", ".join(found.header)
        say("The splits differ" + (f" (header: {header})" if header else "") + ":")
        for count, what in (
            (len(found.only_left), f"images only in {left}"),
            (len(found.only_right), f"images only in {right}"),
            (len(found.roles), "images have another role"),
            (len(found.classes), "images have another class"),
        ):
            if count:
                say(f"  {count:,} {what}")
        if found.groups:
            say("  the groups differ")
    raise SystemExit(0 if found.same else 1)


@split.command("import")
@click.argument("file", type=_FILE)
@common_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["manifest", "ssb"]),
    default="manifest",
    show_default=True,
    help="manifest: of 'gcdbench data split export'; ssb: a published list of old and new classes (.json, .pkl).",
)
@click.option(
    "--name",
    default="ssb",
    show_default=True,
    help="ssb: the name of the protocol; a list that is not the published one needs a name of its own.",
)
@click.option(
    "--label-fraction", type=float, default=0.5, show_default=True, help="ssb: labelled share of old classes."
)
def import_(
    file: Path,
    dataset: str,
    data_root: Path | None,
    dataset_set: tuple[str, ...],
    workers: int | None,
    form: str,
    name: str,
    label_fraction: float,
) -> None:
    """Import a split from elsewhere, and keep it.

    A manifest is checked against the images on this machine. A list of classes becomes a protocol of the dataset,
    chosen by --protocol; it needs no images here, and nothing in the file is ever executed.
    """
    if form == "ssb":
        _import_classes(file, dataset, name, label_fraction)
    else:
        _import_manifest(file, dataset, data_root, dataset_set, workers)


def _import_classes(file: Path, dataset: str, name: str, label_fraction: float) -> None:
    from gcdbench.core.errors import ConfigError, DataError
    from gcdbench.core.regular_files import open_regular
    from gcdbench.datasets.card import CardProtocol
    from gcdbench.datasets.catalogue import find_card
    from gcdbench.datasets.imported import keep_protocol
    from gcdbench.plugins.manager import get_manager
    from gcdbench.splits.class_split import MOST_BYTES, read_class_split

    if not 0 < label_fraction <= 1:
        raise ConfigError(f"--label-fraction must be above 0 and at most 1, not {label_fraction}.")
    card = find_card(dataset, get_manager())
    try:
        with open_regular(file) as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or error}.") from None
    found = read_class_split(file, data, card.classes)
    published = card.published_splits.get(name)
    citation = f"{published.citation}; " if published else ""
    protocol = CardProtocol(
        name=name, old_classes=found.old, label_fraction=label_fraction, citation=f"{citation}imported from {file.name}"
    )
    kept = keep_protocol(card, protocol)
    counts = f"{len(found.old)} old and {len(found.new)} new classes"
    say(f"{card.name}: {counts}, {100 * label_fraction:g} % of the old ones labelled; --protocol {name} uses it.")
    say(f"Kept as {kept}")


def _import_manifest(
    file: Path, dataset: str, data_root: Path | None, dataset_set: tuple[str, ...], workers: int | None
) -> None:
    from gcdbench.core.errors import DataError
    from gcdbench.core.files import write_bytes
    from gcdbench.core.places import user_data_dir
    from gcdbench.datasets.sources.own import safe_name
    from gcdbench.splits.split_file import read_split, require_same_images

    try:
        theirs = read_split(file)
    except DataError as error:
        # What is not a manifest may be the other kind of file.
        hint = "A published list of old and new classes, .json or .pkl, needs --format ssb." if file.is_file() else None
        raise DataError(error.message, hint=error.hint or hint) from None
    ours = _make(dataset, data_root, dataset_set, workers, theirs.protocol)
    require_same_images(theirs, ours)
    # Names in a file from elsewhere must not choose the folder it is written to.
    name = f"{safe_name(theirs.protocol.name)}-{theirs.sha[:12]}.tsv"
    kept = user_data_dir() / "splits" / safe_name(ours.dataset) / name
    write_bytes(kept, theirs.to_text().encode())
    if theirs.sha == ours.sha:
        say(f"Byte for byte the split that is made here under '{ours.protocol.name}'; sha256 {ours.sha}")
    else:
        moved = int((theirs.roles != ours.roles).sum())
        say(f"The same images, but {moved:,} have another role than here under '{ours.protocol.name}'.")
    say(f"Kept as {kept}")


def _rules(
    dataset: str, protocol: str | None, old: str | None, assignments: tuple[str, ...], split_seed: int
) -> Protocol:
    """The protocol as a run with the same options has it."""
    from gcdbench.cli.options import given_settings, old_settings
    from gcdbench.core.config import apply_overrides
    from gcdbench.core.errors import ConfigError
    from gcdbench.datasets.protocols import card_of, named_protocol
    from gcdbench.plugins.manager import get_manager
    from gcdbench.splits.protocol import renamed

    name = dataset.partition(":")[0]
    named = named_protocol(protocol, card_of(name, get_manager()), name)
    changes: dict[str, object] = {"split_seed": split_seed} if split_seed else {}
    for key, value in {**given_settings(assignments, None), **old_settings(old)}.items():
        if not key.startswith("protocol."):
            raise ConfigError(f"'{key}' is not a rule of a split.", hint="Rules begin with 'protocol.'.")
        changes[key.removeprefix("protocol.")] = value
    return renamed(named, apply_overrides(named, changes, prefix="protocol."))


def _make(
    dataset: str,
    data_root: Path | None,
    dataset_set: tuple[str, ...],
    workers: int | None,
    rules: Protocol,
) -> SplitManifest:
    from gcdbench.core.places import cache_dir
    from gcdbench.core.work import available_cores
    from gcdbench.datasets.integrity import require_truth
    from gcdbench.images.hashing import content_hashes, content_order, hex_digests
    from gcdbench.splits.manifest import make_split

    source = open_named(dataset, data_root, dataset_set)
    require_truth(source)
    with shown_progress(quiet=True) as progress:
        digests = content_hashes(source, cache_dir(), workers=workers or available_cores(), progress=progress)
    order = content_order(digests, source.labels, source.keys)
    return make_split(
        dataset=source.card.name,
        class_names=source.card.classes,
        labels=source.labels[order],
        sha256=hex_digests(digests[order]),
        protocol=rules,
        partition=None if source.partition is None else source.partition[order],
        groups=None if source.groups is None else source.groups[order],
    )


def _describe(made: SplitManifest) -> None:
    header = made.header()
    counts = ", ".join(f"{role} {count:,}" for role, count in header["counts"].items())
    say(f"protocol {made.protocol.name}: {counts}; w = {made.old_share:.3f}", err=True)
    say(f"old classes: {', '.join(header['old_classes'])}", err=True)

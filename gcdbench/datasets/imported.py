"""Protocols that the user imported from published files: they add to those on a dataset's card."""

from __future__ import annotations

import re
from pathlib import Path

import tomli_w

from gcdbench.core.errors import DataError
from gcdbench.core.files import write_text
from gcdbench.core.places import user_data_dir
from gcdbench.core.toml_files import read_toml
from gcdbench.datasets.card import CardProtocol, DatasetCard
from gcdbench.datasets.published_split import require_published
from gcdbench.splits.protocol import GENERIC

NAME = r"[a-z0-9][a-z0-9.-]*"


def imported_file(dataset: str, name: str) -> Path:
    """Where an imported protocol is kept."""
    return user_data_dir() / "protocols" / dataset / f"{name}.toml"


def keep_protocol(card: DatasetCard, protocol: CardProtocol) -> Path:
    """Keep a protocol for later runs; one of the same name with other classes is not replaced."""
    name = protocol.name
    if not re.fullmatch(NAME, name):
        raise DataError(
            f"'{name}' cannot be the name of a protocol: use lower-case letters, digits, dots and hyphens only."
        )
    if name in GENERIC or name in card.protocols:
        raise DataError(f"'{card.name}' has a protocol '{name}' of its own.", hint="Choose another name: --name NAME.")
    require_published(card, protocol)
    file = imported_file(card.name, name)
    known = imported_protocols(card).get(name)
    if known is not None and (known.old_classes, known.label_fraction) != (
        protocol.old_classes,
        protocol.label_fraction,
    ):
        raise DataError(
            f"There already is an imported protocol '{name}' of '{card.name}', with other classes or another share of "
            "labels.",
            hint=f"Choose another name (--name NAME), or delete {file}.",
        )
    table = {
        "old_classes": list(protocol.old_classes) if isinstance(protocol.old_classes, tuple) else protocol.old_classes,
        "label_fraction": protocol.label_fraction,
        "citation": protocol.citation,
        "note": protocol.note,
    }
    write_text(file, tomli_w.dumps(table))
    return file


def imported_protocols(card: DatasetCard) -> dict[str, CardProtocol]:
    """The protocols that were imported for the dataset of this card, by name."""
    folder = user_data_dir() / "protocols" / card.name
    return {file.stem: _read(file, card) for file in sorted(folder.glob("*.toml"))}


def _read(file: Path, card: DatasetCard) -> CardProtocol:
    try:
        table = read_toml(file)
        old, share = table["old_classes"], table["label_fraction"]
        if not isinstance(old, list) or not set(old) <= set(card.classes) or not 0 < float(share) <= 1:
            raise ValueError("it does not fit the dataset's classes")
        protocol = CardProtocol(
            name=file.stem,
            old_classes=tuple(map(str, old)),
            label_fraction=float(share),
            citation=str(table["citation"]),
            note=str(table.get("note", "")),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"The imported protocol {file} is damaged: {error}.", hint="Delete it and import it again."
        ) from None
    try:
        require_published(card, protocol)
    except DataError as error:
        hint = f"Delete {file}, and import that list under a name of its own: --name NAME."
        raise DataError(error.message, hint=hint) from None
    return protocol

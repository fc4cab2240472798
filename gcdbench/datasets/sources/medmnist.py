"""The single-label 2-D sets of MedMNIST, described by the ``medmnist`` package's own metadata."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from gcdbench.core.errors import DataError
from gcdbench.core.places import cache_dir
from gcdbench.datasets.card import DatasetCard, load_card
from gcdbench.datasets.checksums import file_checksum
from gcdbench.datasets.roots import missing_dataset
from gcdbench.datasets.source import DatasetRequest, DatasetSource
from gcdbench.datasets.sources.arrays import PARTS, array_headers, check_images, check_labels, open_arrays
from gcdbench.datasets.sources.options import refuse_unknown_options

SIZES = (28, 64, 128, 224)


def make_medmnist(request: DatasetRequest) -> DatasetSource:
    """One MedMNIST set. Option ``size`` names the file (28, 64, 128, 224); else it follows from the image size.

    The training part is what a protocol splits, the test part stays untouched, the validation part is not used.
    """
    refuse_unknown_options(request, "size")
    card = package_card(request.name)
    file = locate(request)
    if file is None:
        wanted = file_name(request.name, _sizes(request)[0])
        how = f"'gcdbench data fetch {request.name}' gets it."
        raise missing_dataset(card.name, card.title, [wanted], request.roots, how)
    return open_medmnist(file, card)


def open_medmnist(file: Path, card: DatasetCard) -> DatasetSource:
    """Check an official file against the metadata and open it."""
    shapes = array_headers(file)
    size = _size_of(file.name, card.name)
    for part in PARTS:
        expected = card.samples.get(part)
        if expected is None:
            continue
        check_labels(file, shapes, part)
        check_images(file, shapes, part, expected)
        if shapes[f"{part}_images"][0][1:3] != (size, size):
            raise DataError(
                f"{file}: '{part}_images' has images of {shapes[f'{part}_images'][0][1:3]}, expected {size} x {size}."
            )
    expected_sum = card.checksums.get(file.name)
    if expected_sum is not None:
        found = file_checksum(file, expected_sum.partition(":")[0], cache_dir())
        if found != expected_sum:
            raise DataError(
                f"{file} is not the published file: its checksum is {found}, expected {expected_sum}.",
                hint=f"Fetch it again ('gcdbench data fetch {card.name}'), or use it as npz:{file}.",
            )
    return open_arrays(file, card, ["train", "test"])


def locate(request: DatasetRequest) -> Path | None:
    """The file to use: the size asked for, or the one nearest to what the network needs."""
    for size in _sizes(request):
        for root in request.roots:
            for folder in (root, root / "medmnist"):
                if (folder / file_name(request.name, size)).is_file():
                    return folder / file_name(request.name, size)
    return None


def file_name(name: str, size: int) -> str:
    """Published name of the file of a set at one size."""
    return f"{name}.npz" if size == 28 else f"{name}_{size}.npz"


def package_card(name: str) -> DatasetCard:
    """The card, with classes, sizes, addresses and checksums as the installed ``medmnist`` package states them."""
    card = load_card(name)
    info = package_info().get(name)
    if info is None:
        return card
    suffixes = {file_name(name, size): "" if size == 28 else f"_{size}" for size in SIZES}
    return replace(
        card,
        classes=tuple(info["label"][key] for key in sorted(info["label"], key=int)),
        samples=dict(info["n_samples"]),
        downloads={file: info[f"url{suffix}"] for file, suffix in suffixes.items()},
        checksums={file: f"md5:{info[f'MD5{suffix}']}" for file, suffix in suffixes.items()},
    )


@lru_cache(maxsize=1)
def package_info() -> Mapping[str, Any]:
    """The ``INFO`` table of the installed package, or nothing without it.

    It is read as a literal from the package's ``info.py``: importing the package would import torch and torchvision,
    and executing the file alone would already create a folder in the user's home.
    """
    found = importlib.util.find_spec("medmnist")
    if found is None or not found.submodule_search_locations:
        return {}
    path = Path(found.submodule_search_locations[0]) / "info.py"
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError):
        return {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(getattr(name, "id", "") == "INFO" for name in node.targets):
            try:
                table: Mapping[str, Any] = ast.literal_eval(node.value)
            except ValueError:
                return {}  # a later version may compute it; the card has the same facts
            return table
    return {}


def _sizes(request: DatasetRequest) -> list[int]:
    """Sizes to look for, best first."""
    asked = request.options.get("size")
    if asked is not None:
        if asked not in map(str, SIZES):
            raise DataError(f"MedMNIST has the sizes {', '.join(map(str, SIZES))}, not '{asked}'.")
        return [int(asked)]
    need = request.image_size or 28
    enough = [size for size in SIZES if size >= need]
    return enough + sorted(set(SIZES) - set(enough), reverse=True)


def _size_of(file: str, name: str) -> int:
    return next((size for size in SIZES if file == file_name(name, size)), 28)

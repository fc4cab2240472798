"""Which datasets are on this machine, where, and how large."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gcdbench.core.errors import ConfigError, DataError, GCDBenchError
from gcdbench.datasets.builtin import MEDMNIST
from gcdbench.datasets.card import DatasetCard, load_card
from gcdbench.datasets.roots import MissingDatasetError, data_roots
from gcdbench.datasets.source import UNKNOWN, DatasetRequest, DatasetSource
from gcdbench.plugins.origin import package_folders, said

if TYPE_CHECKING:
    from gcdbench.plugins.manager import PluginManager
    from gcdbench.plugins.specs import DatasetSpec


@dataclass(frozen=True, kw_only=True)
class Presence:
    """Whether a dataset is here: ``state`` is "here", "missing", "broken" or "built-in"."""

    name: str
    summary: str
    state: str
    location: str = ""
    images: int | None = None
    expected: int | None = None
    bytes: int | None = None
    problem: str = ""


def open_dataset(
    text: str,
    manager: PluginManager,
    *,
    data_root: Path | None = None,
    image_size: int | None = None,
    options: Mapping[str, str] | None = None,
) -> DatasetSource:
    """The dataset that ``text`` names: ``kvasir``, ``folder:<path>``, ..."""
    name, _, argument = text.partition(":")
    spec: DatasetSpec = manager.get("datasets", name)
    if bool(argument) != spec.takes_argument:
        what = "needs a path after a colon" if spec.takes_argument else f"takes no argument, but '{argument}' was given"
        raise ConfigError(f"The dataset '{name}' {what}.")
    request = DatasetRequest(
        name=name,
        roots=data_roots(data_root),
        argument=argument or None,
        image_size=image_size,
        options=dict(options or {}),
    )
    return call_factory(spec, request)


def call_factory(spec: DatasetSpec, request: DatasetRequest) -> DatasetSource:
    """What a dataset's factory finds; whatever a third party's factory raises becomes one sentence."""
    try:
        source = spec.load()(request)
    except GCDBenchError:
        raise
    except Exception as error:
        reason = said(error, package_folders(spec.factory.partition(":")[0]))
        raise DataError(f"The dataset '{spec.name}' could not be opened: {reason}.") from error
    if not isinstance(source, DatasetSource):
        found = type(source).__name__
        raise DataError(f"The dataset '{spec.name}' gave {found}; its factory must return a DatasetSource.")
    return source


def find_card(text: str, manager: PluginManager) -> DatasetCard:
    """The card of a dataset, whether the data is here or not."""
    name = text.partition(":")[0]
    spec: DatasetSpec = manager.get("datasets", name)
    if spec.card is None:
        what = "it describes data that you name" if spec.takes_argument else "its plugin gives no card.toml"
        raise DataError(f"'{name}' has no card of its own: {what}.", hint=spec.summary)
    if name in MEDMNIST:
        from gcdbench.datasets.sources.medmnist import package_card

        return package_card(name)
    return load_card(Path(spec.card))


def describe(
    text: str, manager: PluginManager, *, data_root: Path | None = None, options: Mapping[str, str] | None = None
) -> DatasetCard:
    """The card of a dataset; of ``folder:`` and ``csv:`` one that is made from what is there, with its counts."""
    if not manager.get("datasets", text.partition(":")[0]).takes_argument:
        return find_card(text, manager)
    source = open_dataset(text, manager, data_root=data_root, options=options)
    parts = np.full(len(source), "train") if source.partition is None else source.partition
    counted = {
        part: replace(source, partition=None, labels=np.where(parts == part, source.labels, UNKNOWN)).class_counts
        for part in ("train", "test")
    }
    has_test = bool((parts == "test").any())
    return replace(
        source.card,
        counts=tuple(counted["train"]),
        test_counts=tuple(counted["test"]) if has_test else None,
        samples={part: int((parts == part).sum()) for part in ("train", "test") if part == "train" or has_test},
        notes=tuple(remark.message for remark in source.remarks),
    )


def expected_images(
    spec: DatasetSpec, options: Mapping[str, str], *, argument: str | None = None, data_root: Path | None = None
) -> int | None:
    """How many images a run on a dataset will meet, by its plugin or its card; None where neither can tell.

    With the ``argument`` of ``folder:`` and ``csv:`` it is what is there.
    """
    try:
        counted = spec.size(options)
        if counted is None and spec.card is not None:
            counted = load_card(Path(spec.card)).total
        if counted is None and argument is not None:
            roots = data_roots(data_root)
            request = DatasetRequest(name=spec.name, roots=roots, argument=argument, options=dict(options))
            counted = len(call_factory(spec, request))
    except Exception:  # a third party's function; opening the dataset says what is wrong with an option or a card
        return None
    return counted


def list_presence(manager: PluginManager, data_root: Path | None = None) -> Iterator[Presence]:
    """One entry for each registered dataset that has a name of its own."""
    for spec in manager.specs("datasets"):
        if not getattr(spec, "takes_argument", False):
            yield find_presence(spec.name, manager, data_root)


def find_presence(name: str, manager: PluginManager, data_root: Path | None = None) -> Presence:
    """Look for one dataset; large files are not opened for this."""
    spec: DatasetSpec = manager.get("datasets", name)
    expected = None
    try:
        expected = find_card(name, manager).total if spec.card else None
        if name in MEDMNIST:
            return _medmnist_presence(name, spec.summary, expected, data_root)
        source = open_dataset(name, manager, data_root=data_root)
    except MissingDatasetError:
        return Presence(name=name, summary=spec.summary, state="missing", expected=expected)
    except GCDBenchError as error:
        return Presence(name=name, summary=spec.summary, state="broken", expected=expected, problem=error.message)
    size = getattr(source.raw, "size", None)
    return Presence(
        name=name,
        summary=spec.summary,
        state="built-in" if source.location == "made by code" else "here",
        location=source.location,
        images=len(source),
        expected=None if source.card.counts is None else source.card.total,
        bytes=size if isinstance(size, int) else None,
    )


def _medmnist_presence(name: str, summary: str, expected: int | None, data_root: Path | None) -> Presence:
    from gcdbench.datasets.sources.medmnist import SIZES, file_name, locate

    request = DatasetRequest(name=name, roots=data_roots(data_root))
    files = [locate(DatasetRequest(name=name, roots=request.roots, options={"size": str(size)})) for size in SIZES]
    found = [file for file in files if file is not None]
    if not found:
        return Presence(name=name, summary=summary, state="missing", expected=expected)
    sizes = [size for size in SIZES if file_name(name, size) in {file.name for file in found}]
    return Presence(
        name=name,
        summary=f"{summary} ({', '.join(map(str, sizes))} px)",
        state="here",
        location=str(found[-1]),
        images=expected,
        expected=expected,
        bytes=sum(file.stat().st_size for file in found),
    )

"""The datasets that come with gcdbench, registered through the same hook as everybody else's."""

from __future__ import annotations

from collections.abc import Iterator

from gcdbench.data.card import card_path
from gcdbench.plugins.hookspecs import hookimpl
from gcdbench.plugins.specs import DatasetSpec

_SOURCES = "gcdbench.data.sources"

_NAMED = (("kvasir", "folder:make_named_folder", "endoscopy, 8 classes of 500 images", ("paper",)),)


@hookimpl
def gcdbench_datasets() -> Iterator[DatasetSpec]:
    """Specs of all built-in datasets; no card is read and nothing heavy imported for this."""
    for name, factory, summary, tags in _NAMED:
        yield DatasetSpec(
            name=name, factory=f"{_SOURCES}.{factory}", summary=summary, tags=tags, card=str(card_path(name))
        )
    yield DatasetSpec(
        name="phantom",
        factory=f"{_SOURCES}.phantom:make_phantom",
        summary="synthetic lesions, made by code",
        card=str(card_path("phantom")),
    )
    yield DatasetSpec(
        name="folder",
        factory=f"{_SOURCES}.folder:make_folder",
        summary="folder:<path>, any folder of class folders",
        takes_argument=True,
    )

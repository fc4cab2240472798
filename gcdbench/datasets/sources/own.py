"""What ``folder:`` and ``csv:`` have in common: a card made on the spot, decoding, groups, unreadable images."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from gcdbench.datasets.card import DatasetCard
from gcdbench.datasets.source import DatasetRequest, DatasetSource
from gcdbench.datasets.sources.grouping import make_groups, missing_groups
from gcdbench.datasets.sources.kinds import deepest_kind, needed_decoder
from gcdbench.datasets.sources.layout import Place
from gcdbench.datasets.sources.memory import remembered
from gcdbench.datasets.sources.options import choose_option
from gcdbench.datasets.sources.unreadable import leave_out_unreadable
from gcdbench.datasets.sources.walk import FileReader

OWN_OPTIONS = ("groups", "labels", "on_unreadable")
"""Options that :func:`finish` and its callers read."""


def made_card(name: str, location: str) -> DatasetCard:
    """A card for data that came without one; classes are filled in once they are known."""
    return DatasetCard(
        name=name,
        title=f"the user's own data in {location}",
        modality="unknown",
        classes=(),
        licence="unknown",
        citation="none",
        source=location,
        layout=location,
    )


def safe_name(text: str) -> str:
    """``text`` reduced to what is safe in a folder name: letters and digits of any script stay."""
    return re.sub(r"[^\w.-]+", "-", text).strip("-.") or "data"


def skips_unreadable(request: DatasetRequest) -> bool:
    """Whether images that cannot be read are to be left out instead of stopping everything."""
    return choose_option(request, "on_unreadable", ("stop", "skip")) == "skip"


def finish(source: DatasetSource, request: DatasetRequest, place_of: Callable[[str], Place]) -> DatasetSource:
    """Decoder, groups and left-out images as the files and the user's options ask for.

    ``place_of(key)`` tells where a file is, for groups by folder.
    """
    reader = source.raw
    assert isinstance(reader, FileReader)
    paths = [reader.path(index) for index in range(len(source))]
    source = replace(source, decode=needed_decoder(remembered("depth", source, lambda: deepest_kind(paths))))
    if skips_unreadable(request):
        source = leave_out_unreadable(source)
    places = [place_of(key) for key in source.keys]
    if how := request.options.get("groups"):
        assert isinstance(source.raw, FileReader)
        groups, remarks = make_groups(how, source.keys, places, source.raw)
        return replace(source, groups=groups, remarks=(*source.remarks, *remarks))
    return replace(source, remarks=(*source.remarks, *missing_groups(places)))

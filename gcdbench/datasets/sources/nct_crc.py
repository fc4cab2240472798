"""NCT-CRC-HE-100K: nine folders of histology patches, with the patches of CRC-VAL-HE-7K as an untouched test part."""

from __future__ import annotations

from gcdbench.datasets.card import load_card
from gcdbench.datasets.source import DatasetRequest, DatasetSource
from gcdbench.datasets.sources.folder import find_class_folders, missing, scan_folder
from gcdbench.datasets.sources.options import refuse_unknown_options

TEST_FOLDER = "CRC-VAL-HE-7K"


def make_nct_crc(request: DatasetRequest) -> DatasetSource:
    """Both parts where both are here, else the training part alone."""
    refuse_unknown_options(request)
    card = load_card(request.name)
    root = find_class_folders(request.roots, card.places, card.classes)
    if root is None:
        raise missing(card, request)
    places = [TEST_FOLDER, *(f"{place.rpartition('/')[0]}/{TEST_FOLDER}" for place in card.places if "/" in place)]
    return scan_folder(root, card, test_root=find_class_folders(request.roots, places, card.classes))

"""Herbarium 2019 in its small edition: folders of categories, the published validation part as the test part."""

from __future__ import annotations

from gcdbench.datasets.card import load_card
from gcdbench.datasets.source import DatasetRequest, DatasetSource
from gcdbench.datasets.sources.folder import find_class_folders, missing, scan_folder
from gcdbench.datasets.sources.options import refuse_unknown_options

TEST_FOLDER = "small-validation"


def make_herbarium(request: DatasetRequest) -> DatasetSource:
    """Both parts where both are here, else the training part alone."""
    refuse_unknown_options(request)
    card = load_card(request.name)
    root = find_class_folders(request.roots, card.places, card.classes)
    if root is None:
        raise missing(card, request)
    test_root = find_class_folders((root.parent,), (TEST_FOLDER,), card.classes)
    return scan_folder(root, card, test_root=test_root)

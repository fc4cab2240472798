"""The images a map is drawn over, and their masks, in the geometry of the network's input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gcdbench.core.arrays import IntArray, Pixels
from gcdbench.core.errors import StoreError
from gcdbench.core.places import cache_dir
from gcdbench.datasets.catalogue import open_dataset
from gcdbench.datasets.source import DatasetSource
from gcdbench.images.decoding import stored_side
from gcdbench.images.image_store import ImageStore, prepare_store
from gcdbench.plugins.manager import PluginManager
from gcdbench.views.augmentation import crop_centre

BoolMaps = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Images:
    """A dataset as the network sees it at test time. Ids are rows of the image store."""

    source: DatasetSource
    store: ImageStore
    image_size: int

    def pixels(self, ids: IntArray) -> Pixels:
        """(n, S, S, 3) uint8: the test views."""
        return crop_centre(self.store.pixels[ids], self.image_size)

    @property
    def has_masks(self) -> bool:
        """Whether the dataset comes with lesion masks."""
        return self.source.mask is not None

    def masks(self, ids: IntArray) -> BoolMaps:
        """(n, S, S): lesion masks, all false where an image has none."""
        masks = np.zeros((len(ids), self.image_size, self.image_size), dtype=np.bool_)
        if self.source.mask is None:
            return masks
        # Ascending source order: sources that make their images in chunks make each chunk once.
        for position in np.argsort(self.store.order[ids], kind="stable"):
            mask = self.source.mask(int(self.store.order[ids[position]]))
            if mask is not None:
                masks[position] = view_mask(mask, self.image_size)
        return masks


def view_mask(mask: NDArray[np.bool_], image_size: int) -> NDArray[np.bool_]:
    """(H, W) mask of the original image -> (S, S) mask of its test view, by the same resize and crop as the pixels."""
    height, width = mask.shape
    short = min(height, width)
    left, top = (width - short) / 2, (height - short) / 2
    side = stored_side(image_size)
    shade = Image.fromarray(mask.astype(np.uint8) * 255).resize(
        (side, side), Image.Resampling.BOX, box=(left, top, left + short, top + short)
    )
    square = np.asarray(shade)[None, :, :, None] >= 128
    return np.asarray(crop_centre(square.astype(np.uint8), image_size)[0, :, :, 0], dtype=np.bool_)


def open_images(
    name: str,
    manager: PluginManager,
    *,
    image_size: int,
    options: Mapping[str, str] | None = None,
    data_root: Path | None = None,
) -> Images:
    """Find a dataset by name (``folder:<path>`` included) and open its image store."""
    source = open_dataset(name, manager, data_root=data_root, image_size=image_size, options=options)
    return Images(source=source, store=prepare_store(source, image_size, cache_dir()), image_size=image_size)


def require_same_images(images: Images, expected_key: str) -> None:
    """Refuse images that are not those of the run: its ids would point at others."""
    if images.store.key != expected_key:
        raise StoreError(
            f"The images of '{images.source.card.name}' found here are not those the run was made with.",
            hint="Point --data-root at the same data, or look at another dataset with --dataset.",
        )

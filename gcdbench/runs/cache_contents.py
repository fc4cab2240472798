"""What a run will find in the cache: told by sizes and settings, since hashes would need the images themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcdbench.core.cache_upkeep import describe_entries
from gcdbench.images.decoding import stored_side
from gcdbench.views.setting import parse_views

if TYPE_CHECKING:
    from gcdbench.runs.plan import Plan


@dataclass(frozen=True, kw_only=True)
class Present:
    """What is there already: the image store, test views, features, and so many of the views that training draws from.

    features: of the whole pretrained network, for methods that are not trained.
    """

    store: bool = False
    test_views: bool = False
    features: bool = False
    views: int = 0

    def __or__(self, other: Present) -> Present:
        """What either of them has."""
        return Present(
            store=self.store or other.store,
            test_views=self.test_views or other.test_views,
            features=self.features or other.features,
            views=max(self.views, other.views),
        )


def find_present(cache: Path, plan: Plan, *, images: int, training: int) -> Present:
    """What a run of this plan will find there, on so many images, of which so many are for training."""
    side = stored_side(plan.settings.image_size)
    stores = {
        folder.name
        for folder, meta in describe_entries(cache, "stores")
        if (meta.get("count"), meta.get("side")) == (images, side)
    }
    present = Present(store=bool(stores))
    for kind in ("banks", "features"):
        for folder, meta in describe_entries(cache, kind):
            identity = meta.get("identity")
            if isinstance(identity, Mapping) and identity.get("store") in stores and _fits(identity, plan):
                if kind == "features":
                    present |= Present(features=True)
                elif "augmentation" not in identity:
                    present |= Present(test_views=True)
                elif (meta.get("images"), meta.get("stored")) == (training, stored_kind(plan)):
                    there = {file.stem for file in folder.glob("view-*.npy")}
                    present |= Present(views=len(there & {f"view-{draw:05d}" for draw in range(views_made(plan))}))
    return present


def stored_kind(plan: Plan) -> str:
    """How views for training are kept."""
    return parse_views(plan.settings.views).kind if plan.method.trained else "none"


def views_made(plan: Plan) -> int:
    """Stored views of each training image that a run needs from its first epoch to its last."""
    setting = parse_views(plan.settings.views)
    return setting.count + setting.fresh * (plan.training.epochs - 1)


def _fits(identity: Mapping[str, Any], plan: Plan) -> bool:
    settings = plan.settings
    augmentation = str(identity.get("augmentation", settings.augmentation)).partition("/")[0]
    return (identity.get("backbone"), identity.get("image_size"), augmentation) == (
        settings.backbone,
        settings.image_size,
        settings.augmentation,
    )

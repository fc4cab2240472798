"""``views = "auto"``: the best way to store views that fits into a disk budget. A pure function, and it says why."""

from __future__ import annotations

from dataclasses import dataclass

from gcdbench.core.disk_space import format_bytes
from gcdbench.views.eight_bit import record_bytes
from gcdbench.views.setting import ViewSetting

ENOUGH = 16
"""Stored views per image that cost no accuracy that could be distinguished from chance (docs/speed.md)."""

FEW = 6
"""With fewer views the same ones are seen too often; then some are replaced in each epoch, at the price of time."""


@dataclass(frozen=True, kw_only=True)
class ViewSize:
    """Images with a test view, images with training views, and the shape (h, w, c) of one view."""

    images: int
    training: int
    height: int
    width: int
    channels: int

    def bank_bytes(self, setting: ViewSetting) -> int:
        """Bytes of the test views and of all training views at once."""
        half = 2 * self.height * self.width * self.channels
        eighth = record_bytes(self.height, self.width, self.channels)
        if setting.kind in ("online", "auto"):
            return 0
        return self.images * half + self.training * setting.count * (half if setting.kind == "bank" else eighth)


def decide_views(size: ViewSize, budget: int) -> ViewSetting:
    """16 views in 16 bits, else as many in 8 bits as fit, else few that are refreshed, else none are stored."""
    if size.bank_bytes(ViewSetting(kind="bank", count=ENOUGH)) <= budget:
        return ViewSetting(kind="bank", count=ENOUGH)
    for count in range(ENOUGH, 1, -1):
        setting = ViewSetting(kind="bank8", count=count)
        if count < FEW:
            setting = ViewSetting(kind="rolling", count=count, fresh=1)
        if size.bank_bytes(setting) <= budget:
            return setting
    return ViewSetting(kind="online")


def rank_decision(setting: ViewSetting) -> tuple[int, int] | None:
    """What a larger budget is decided for comes first; None where ``auto`` never means this setting."""
    kind, count = setting.kind, setting.count
    possible = {
        "bank": count == ENOUGH,
        "bank8": FEW <= count <= ENOUGH,
        "rolling": count < FEW and setting.fresh == 1,
        "online": True,
    }
    if not possible.get(kind, False):
        return None
    return list(possible).index(kind), -count


def explain_views(size: ViewSize, budget: int, setting: ViewSetting) -> str:
    """One sentence for people: what was decided, and from what."""
    whole = format_bytes(size.bank_bytes(ViewSetting(kind="bank", count=ENOUGH)))
    images = f"{size.training:,} training images and {size.images:,} in all"
    if setting.kind == "online":
        return f"views = auto means online: not even two stored views of {images} fit into {format_bytes(budget)}."
    room = format_bytes(size.bank_bytes(setting))
    more = "" if setting.kind == "bank" else f"; bank:{ENOUGH} would take {whole}"
    return f"views = auto means {setting}: {room} of {format_bytes(budget)} for {images}{more}."

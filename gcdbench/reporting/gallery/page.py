"""The page: one self-contained file, opened offline, that gives back a ``names.toml``."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader

from gcdbench.core.arrays import IntArray, Pixels
from gcdbench.reporting.gallery.content import (
    ClusterView,
    Discovered,
    Labelled,
    embed_plane,
    first_clusters,
    view_clusters,
)
from gcdbench.reporting.gallery.sheets import LARGE, PER_ROW, PER_SHEET, SMALL, Sheets, make_sheets

MOST_ON_MAP = 3000
"""Images that the map shows with a thumbnail; of more, as many are drawn by chance."""
SMALL_BYTES, LARGE_BYTES = 5_000_000, 8_000_000
"""Room for the thumbnails of either size: a page of many clusters must stay one that opens at once."""


@dataclass(frozen=True, kw_only=True)
class Names:
    """What is called how: the known classes, and the clusters that were named, merged or rejected before.

    ties: (K,) the known class of each cluster, −1 for a new one; empty where the first clusters are the known classes.
    """

    known: tuple[str, ...]
    clusters: dict[int, str]
    merged: dict[int, int]
    rejected: frozenset[int]
    ties: tuple[int, ...] = ()


def build_gallery(
    found: Discovered,
    labelled: Labelled,
    store: Pixels,
    names: Names,
    *,
    k: int,
    run_id: str,
    title: str,
    k_estimated: bool,
    notes: Sequence[str] = (),
) -> str:
    """The whole document. ``store``: the image store whose rows the images are."""
    views = view_clusters(found, labelled, len(names.known), names.ties or first_clusters(len(names.known), k))
    mapped = _on_map(len(found.images), MOST_ON_MAP)
    plane = embed_plane(found.images.embedding[mapped])
    large, places = _featured(found, labelled, views)
    data = {
        "run": run_id,
        "known": list(names.known),
        "images": {
            "names": [found.images.names[i] for i in mapped],
            "cluster": found.cluster[mapped].tolist(),
            "confidence": [_rounded(value) for value in found.confidence[mapped]],
            "unlike": found.unlike[mapped].astype(int).tolist(),
            "x": np.round(plane[:, 0].astype(float), 4).tolist(),
            "y": np.round(plane[:, 1].astype(float), 4).tolist(),
        },
        "clusters": [_cluster(view, found, labelled, names, places) for view in views],
        "small": _sheets(make_sheets(store, found.images.rows[mapped], SMALL, most=SMALL_BYTES)),
        "large": _sheets(make_sheets(store, large, LARGE, most=LARGE_BYTES)),
        "perRow": PER_ROW,
        "perSheet": PER_SHEET,
    }
    environment = Environment(
        loader=PackageLoader("gcdbench.reporting.gallery", "assets"), autoescape=True, trim_blocks=True
    )
    script, style = _asset("gallery.js"), _asset("gallery.css")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    new = [view for view in views if view.known < 0]
    return environment.get_template("gallery.html").render(
        title=title,
        run_id=run_id,
        policy=f"default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        script=script,
        style=style,
        data=data,
        images=len(found.images),
        labelled=len(labelled.images),
        known=len(names.known),
        new=len(new),
        in_new=sum(view.size for view in new),
        unlike=int(found.unlike.sum()),
        k_estimated=k_estimated,
        left_out=len(found.images) - len(mapped),
        notes=list(notes),
    )


def _rounded(confidence: np.float32) -> float | None:
    """A confidence for the page; none where the method gives none."""
    return None if np.isnan(confidence) else round(float(confidence), 3)


def _asset(name: str) -> str:
    return (files("gcdbench.reporting.gallery") / "assets" / name).read_text(encoding="utf-8")


def _on_map(total: int, most: int) -> IntArray:
    """Positions that the map shows, in order; the same ones every time."""
    if total <= most:
        return np.arange(total, dtype=np.int64)
    return np.sort(np.random.default_rng(0).permutation(total)[:most]).astype(np.int64)


def _featured(
    found: Discovered, labelled: Labelled, views: Sequence[ClusterView]
) -> tuple[IntArray, dict[tuple[str, int], int]]:
    """Rows of the images shown large, and the place of each: ("found" | "labelled", position) -> thumbnail number."""
    places: dict[tuple[str, int], int] = {}
    for view in views:
        for position in (*view.typical, *view.doubtful, *(first for first, _ in view.pairs)):
            places.setdefault(("found", int(position)), len(places))
        for _, second in view.pairs:
            places.setdefault(("labelled", second), len(places))
    for number in range(int(labelled.label.max(initial=-1)) + 1):
        for position in np.flatnonzero(labelled.label == number)[:6]:
            places.setdefault(("labelled", int(position)), len(places))
    rows = [(found if kind == "found" else labelled).images.rows[position] for kind, position in places]
    return np.asarray(rows, dtype=np.int64), places


def _cluster(
    view: ClusterView,
    found: Discovered,
    labelled: Labelled,
    names: Names,
    places: dict[tuple[str, int], int],
) -> dict[str, Any]:
    def image(position: int) -> dict[str, Any]:
        return {
            "thumb": places["found", int(position)],
            "name": found.images.names[position],
            "confidence": _rounded(found.confidence[position]),
            "unlike": bool(found.unlike[position]),
        }

    def reference(position: int) -> dict[str, Any]:
        return {"thumb": places["labelled", int(position)], "name": labelled.images.names[position]}

    known = view.known >= 0
    own = names.known[view.known] if known else ""
    examples = np.flatnonzero(labelled.label == view.known)[: 6 if known else 0]
    return {
        "number": view.number,
        "known": known,
        "name": own or names.clusters.get(view.number, ""),
        "merged": names.merged.get(view.number),
        "rejected": view.number in names.rejected,
        "size": view.size,
        "unlike": view.unlike,
        "typical": [image(position) for position in view.typical],
        "doubtful": [image(position) for position in view.doubtful],
        "resembles": names.known[view.resembles] if view.resembles >= 0 else "",
        "likeness": round(view.likeness, 3),
        "pairs": [[image(first), reference(second)] for first, second in view.pairs],
        "examples": [reference(int(position)) for position in examples],
    }


def _sheets(sheets: Sheets) -> dict[str, Any]:
    return {"side": sheets.side, "pictures": list(sheets.pictures)}

"""Everything ``gcdbench explain`` writes: maps of chosen images, confused class pairs, scores against masks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gcdbench.core.arrays import IntArray
from gcdbench.core.errors import ConfigError
from gcdbench.reporting.explain.confusion import (
    assigned_classes,
    most_confused_images,
    most_confused_pairs,
    pair_examples,
)
from gcdbench.reporting.explain.drawing import draw_map, draw_mask, draw_overlay, draw_sheet, save_png
from gcdbench.reporting.explain.images import Images
from gcdbench.reporting.explain.localisation import BoolMaps, Localisation, Maps, localise
from gcdbench.reporting.explain.maps import attention_maps
from gcdbench.reporting.explain.restore import Trained
from gcdbench.runs.predictions import ScoredSet

EXAMPLES = 3
"""Example images of each kind in a row of confused classes."""


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What was found, and which files were written."""

    files: list[Path] = field(default_factory=list)
    localisation: dict[str, dict[str, Localisation]] = field(default_factory=dict)
    pairs: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def choose_images(scored: ScoredSet, wanted: Sequence[int], count: int) -> IntArray:
    """Positions of the images to draw: the ids asked for, or the most confidently wrong, filled up with others."""
    if wanted:
        position = {int(number): place for place, number in enumerate(scored.ids)}
        missing = [number for number in wanted if number not in position]
        if missing:
            raise ConfigError(
                f"Image {missing[0]} is not in the evaluation set.",
                hint=f"Ids run from {scored.ids.min()} to {scored.ids.max()}; labelled images are not in it.",
            )
        return np.asarray([position[number] for number in wanted], dtype=np.int64)
    confused = most_confused_images(scored, count)
    others = np.setdiff1d(np.arange(len(scored.ids)), confused)[: max(count - len(confused), 0)]
    return np.concatenate([confused, others]).astype(np.int64)


def explain_run(
    trained: Trained, images: Images, scored: ScoredSet, out: Path, *, wanted: Sequence[int] = (), count: int = 8
) -> Explanation:
    """Draw chosen images and confused pairs of one run, on its own dataset, into ``out``."""
    result = Explanation()
    chosen = choose_images(scored, wanted, count)
    _draw_chosen(trained, images, scored, chosen, out, result)
    _draw_pairs(trained, images, scored, out, result)
    return result


def compare_maps(
    runs: Sequence[Trained], images: Images, ids: IntArray, masks: BoolMaps, out: Path, *, count: int = 6
) -> tuple[dict[str, dict[str, Localisation]], Path]:
    """Score all maps of all runs on the same images, some with a lesion, and draw them side by side in one figure."""
    scores: dict[str, dict[str, Localisation]] = {}
    columns: list[tuple[str, Localisation, Maps]] = []
    for trained in runs:
        maps = attention_maps(trained.model, trained.method, images.store.pixels, ids)
        found = {name: localise(values, masks) for name, values in maps.items()}
        label = trained.name if trained.name not in scores else f"{trained.name} {trained.record.run_id[:6]}"
        scores[label] = found
        columns += [(f"{label}\n{name}", found[name], maps[name]) for name in found]
    shown = np.flatnonzero(masks.any(axis=(1, 2)))
    shown = shown[np.linspace(0, len(shown) - 1, min(count, len(shown))).astype(np.int64)]
    pixels = images.pixels(ids[shown])
    rows = [
        [pixels[i], draw_mask(masks[place]), *(draw_overlay(pixels[i], maps[place]) for _, _, maps in columns)]
        for i, place in enumerate(shown)
    ]
    titles = [f"{name}\npoint {s.pointing:.1f} in {s.energy_inside:.1f}" for name, s, _ in columns]
    area = columns[0][1].area
    sheet = draw_sheet(
        rows,
        columns=["input", "lesion", *titles],
        title=f"pointing game / energy inside the lesion, %, {len(ids)} images; an uninformed map scores {area:.1f}",
        cell=120,
    )
    return scores, save_png(sheet, out / "comparison.png")


def _draw_chosen(
    trained: Trained, images: Images, scored: ScoredSet, chosen: IntArray, out: Path, result: Explanation
) -> None:
    if not len(chosen):
        return
    ids = scored.ids[chosen]
    name, values = next(iter(attention_maps(trained.model, trained.method, images.store.pixels, ids).items()))
    pixels, masks, assigned = images.pixels(ids), images.masks(ids), assigned_classes(scored)[chosen]
    columns = ["input", name, "overlay", *(["lesion"] if images.has_masks else [])]
    rows, captions = [], []
    for i, number in enumerate(ids):
        panels = [pixels[i], draw_map(values[i], images.image_size), draw_overlay(pixels[i], values[i])]
        panels += [draw_mask(masks[i])] if images.has_masks else []
        captions.append(_caption(trained.classes, int(number), int(scored.y_true[chosen[i]]), int(assigned[i])))
        rows.append(panels)
        sheet = draw_sheet([panels], columns=columns, captions=captions[-1:], cell=160)
        result.files.append(save_png(sheet, out / "maps" / f"{i:03d}-image-{number}.png"))
    result.files.append(save_png(draw_sheet(rows, columns=columns, captions=captions), out / "maps.png"))


def _draw_pairs(trained: Trained, images: Images, scored: ScoredSet, out: Path, result: Explanation) -> None:
    rows, captions = [], []
    for pair in most_confused_pairs(scored, 4):
        examples = pair_examples(scored, pair, EXAMPLES)
        row = []
        for positions in examples.values():
            shown = list(images.pixels(scored.ids[positions]))
            row += [*shown, *[None] * (EXAMPLES - len(shown))]
        old, new = trained.classes[pair.old], trained.classes[pair.new]
        captions.append(f"{old} (old) / {new} (new): {pair.old_as_new} old as new, {pair.new_as_old} new as old")
        rows.append(row)
        result.pairs.append({"old": old, "new": new, "old_as_new": pair.old_as_new, "new_as_old": pair.new_as_old})
    if not rows:
        result.notes.append("No old class was taken for a new one, nor the other way round.")
        return
    heads = ("old, right", "old taken for new", "new taken for old", "new, right")
    columns = [text for head in heads for text in (head, *[""] * (EXAMPLES - 1))]
    sheet = draw_sheet(rows, columns=columns, captions=captions, cell=96)
    result.files.append(save_png(sheet, out / "pairs.png"))


def _caption(classes: Sequence[str], number: int, truth: int, answer: int) -> str:
    found = classes[answer] if answer >= 0 else "no class"
    verdict = "right" if answer == truth else f"taken for {found}"
    return f"image {number}: {classes[truth]}, {verdict}"


def summarise(result: Explanation) -> dict[str, Any]:
    """All numbers, as they are stored in ``explanation.json``."""
    return {
        "localisation": {
            run: {name: score.as_dict() for name, score in maps.items()} for run, maps in result.localisation.items()
        },
        "confused_pairs": result.pairs,
        "notes": result.notes,
    }

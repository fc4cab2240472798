"""The table of everything in a store: one row for each group of runs that differ in nothing but the seed.

Where each seed drew its split, runs that differ in that as well are a row; it holds no runs that share a split.
"""

from __future__ import annotations

from collections.abc import Sequence

from gcdbench.core.config import flatten, to_plain
from gcdbench.metrics.score import ScoreCatalogue
from gcdbench.plugins.manager import PluginManager
from gcdbench.reporting.records import CellRecord
from gcdbench.reporting.replicates import SPLIT_PER_SEED, group_replicates, repeats_split
from gcdbench.reporting.run_marks import ISSUE_MARK, issue_notes, told_apart
from gcdbench.reporting.scores import score_catalogue
from gcdbench.reporting.tables.build import build_table
from gcdbench.reporting.tables.model import ColumnHead, ResultTable, RowHead
from gcdbench.runs.presets import get_preset
from gcdbench.runs.record import DONE

CONDITIONS = ("manifest_sha256", "backbone", "views", "augmentation", "training")
LABELS: tuple[str, ...] = ("dataset", "method", "protocol", "K", "preset", "backbone", "px", "settings")


def plain_table(
    records: Sequence[CellRecord],
    manager: PluginManager,
    scores: Sequence[str] = ("all", "old", "new"),
    catalogue: ScoreCatalogue | None = None,
) -> ResultTable:
    """All finished runs, grouped; rows compete for bold only where everything but the method is the same.

    catalogue: how scores are read; without it, as the installed metrics say.
    """
    done = [record for record in records if record.status == DONE]
    groups = group_replicates(done)
    settings = _distinguish(groups)
    datasets = told_apart(done)
    heads = []
    conditions: dict[str, list[object]] = {}
    for key, members in groups.items():
        first = members[0]
        name = f"{first.method}:{first.variant}" if first.variant else first.method
        shared = (first.protocol, first.k_policy, first.preset, first.backbone, str(first.image_size))
        dataset = datasets.get((first.dataset, first.images), first.dataset) + (
            ISSUE_MARK if first.accepted_data_issues else ""
        )
        block = " / ".join([dataset, *shared[:3], f"{first.image_size} px"])
        like = conditions.setdefault(block, [])
        if (own := _conditions(members, manager)) not in like:
            like.append(own)
        if number := like.index(own):
            block += f" ({number + 1})"
        heads.append(RowHead(key=key, labels=(dataset, name, *shared, settings[key]), block=block))
    heads.sort(key=lambda head: head.labels)
    labels = LABELS
    if not any(settings.values()):
        labels = LABELS[:-1]
        heads = [RowHead(key=h.key, labels=h.labels[:-1], block=h.block) for h in heads]
    unfinished = len(records) - len(done)
    notes = (
        [f"{unfinished} unfinished or failed run(s) are not shown; 'gcdbench status' lists them."] if unfinished else []
    )
    notes += issue_notes(done)
    if any(repeats_split(members) for members in groups.values()):
        notes.append("A row over several splits has one run on each (split seed = seed) and none that share a split.")
    return build_table(
        name="runs",
        title=f"{len(done)} finished runs",
        caption="Accuracy in percent on D_u, v2 (one Hungarian map over all of D_u); mean ± sd (ddof 1) over n seeds.",
        label_titles=labels,
        rows=heads,
        columns=[ColumnHead(key="", title="")],
        scores=scores,
        runs={(key, ""): members for key, members in groups.items()},
        catalogue=score_catalogue(manager) if catalogue is None else catalogue,
        notes=notes,
    )


def _conditions(members: Sequence[CellRecord], manager: PluginManager) -> dict[str, object]:
    """What two methods must share to be compared, beyond what a block's name says.

    A method that trains nothing or sees no network has the preset's own values, where the preset is installed.
    """
    record = members[0]
    usual: dict[str, object] = {}
    if record.preset in manager.names("presets"):
        preset = get_preset(record.preset, manager)
        usual = {
            "backbone": preset.settings.backbone,
            "views": preset.settings.views,
            "augmentation": preset.settings.augmentation,
            "training": to_plain(preset.training),
        }
    splits = {"manifest_sha256": SPLIT_PER_SEED} if repeats_split(members) else {}
    return {key: record.identity.get(key, usual.get(key)) for key in CONDITIONS} | splits


def _distinguish(groups: dict[str, list[CellRecord]]) -> dict[str, str]:
    """Settings that differ between groups which would otherwise look the same, as ``key=value``."""
    texts = dict.fromkeys(groups, "")
    alike: dict[tuple[str, ...], list[str]] = {}
    for key, members in groups.items():
        r = members[0]
        look = (r.dataset, r.method, r.variant, r.protocol, r.k_policy, r.preset, r.backbone, str(r.image_size))
        alike.setdefault(look, []).append(key)
    for keys in alike.values():
        if len(keys) < 2:
            continue
        identities = {key: _flat_identity(groups[key]) for key in keys}
        names = sorted({name for identity in identities.values() for name in identity} - {"seed"})
        differing = [n for n in names if len({repr(identity.get(n)) for identity in identities.values()}) > 1]
        if "protocol.split_seed" in differing:  # it says which split, and people can read it
            differing.remove("manifest_sha256")
        for key in keys:
            texts[key] = " ".join(f"{n.rpartition('.')[2]}={_short(identities[key].get(n))}" for n in differing)
    return texts


def _flat_identity(members: Sequence[CellRecord]) -> dict[str, object]:
    """What names the runs of one row, but for what differs between them."""
    identity = flatten(members[0].identity)
    if repeats_split(members):
        identity |= {"manifest_sha256": SPLIT_PER_SEED, "protocol.split_seed": SPLIT_PER_SEED}
    return identity


def _short(value: object) -> str:
    text = str(value)
    return text[:8] if len(text) > 24 else text

"""The table of everything in a store: one row for each group of runs that differ in nothing but the seed.

Where each seed drew its split, runs that differ in that as well are a row; it holds no runs that share a split.
"""

from __future__ import annotations

from collections.abc import Sequence

from gcdbench.core.config import to_plain
from gcdbench.metrics.score import ScoreCatalogue
from gcdbench.plugins.manager import PluginManager
from gcdbench.reporting.records import CellRecord
from gcdbench.reporting.replicates import SPLIT_PER_SEED, group_replicates, repeats_split
from gcdbench.reporting.run_marks import ISSUE_MARK, issue_notes, told_apart
from gcdbench.reporting.scores import score_catalogue
from gcdbench.reporting.tables.build import build_table
from gcdbench.reporting.tables.model import ColumnHead, ResultTable, RowHead
from gcdbench.reporting.telling_settings import telling_settings
from gcdbench.runs.presets import get_preset
from gcdbench.runs.record import DONE

CONDITIONS = ("manifest_sha256", "backbone", "views", "augmentation", "training")
LABELS: tuple[str, ...] = ("dataset", "method", "protocol", "K", "preset", "backbone", "px")


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
    settings = telling_settings(groups, manager)
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
        heads.append(RowHead(key=key, labels=(dataset, name, *shared), block=block, remark=settings[key]))
    heads.sort(key=lambda head: (head.labels, head.remark))
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
        label_titles=LABELS,
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

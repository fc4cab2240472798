"""What tells runs apart that have the same name: settings that are not their default, as ``lr=0.05 epochs=40``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gcdbench.core.config import flatten, to_plain
from gcdbench.core.errors import GCDBenchError
from gcdbench.plugins.manager import PluginManager
from gcdbench.reporting.records import CellRecord
from gcdbench.reporting.replicates import SPLIT_PER_SEED, repeats_split
from gcdbench.runs.plan import make_plan
from gcdbench.runs.request import Request

LONG = 24


def telling_settings(groups: Mapping[str, Sequence[CellRecord]], manager: PluginManager) -> dict[str, str]:
    """By the key of each group of replicates: what it has that others of its name do not, but for defaults.

    A group that has every default, or shares its name with no other, has an empty text.
    """
    alike: dict[tuple[object, ...], list[str]] = {}
    for key, members in groups.items():
        r = members[0]
        look = (r.dataset, r.method, r.variant, r.protocol, r.k_policy, r.preset, r.backbone, r.image_size)
        alike.setdefault(look, []).append(key)
    texts = dict.fromkeys(groups, "")
    for keys in alike.values():
        if len(keys) < 2:
            continue
        identities = {key: _flat_identity(groups[key]) for key in keys}
        names = sorted({name for identity in identities.values() for name in identity} - {"seed"})
        differing = [n for n in names if len({repr(identity.get(n)) for identity in identities.values()}) > 1]
        if "protocol.split_seed" in differing:  # it says which split, and people can read it
            differing.remove("manifest_sha256")
        usual = _defaults(groups[keys[0]][0], manager)
        told = {key: _text(identities[key], differing, usual) for key in keys}
        for key, text in told.items():
            # Two rows must not look the same because what differs is a default of one and unknown to the other.
            unique = list(told.values()).count(text) == 1
            texts[key] = text if unique else _text(identities[key], differing, {})
    return texts


def _text(identity: Mapping[str, object], names: Sequence[str], usual: Mapping[str, object]) -> str:
    shown = [n for n in names if identity.get(n) is not None and (n not in usual or identity[n] != usual[n])]
    return " ".join(f"{n.rpartition('.')[2]}={_short(identity[n])}" for n in shown)


def _flat_identity(members: Sequence[CellRecord]) -> dict[str, object]:
    """What names the runs of one group, but for what differs between them."""
    identity: dict[str, object] = flatten(members[0].identity)
    if repeats_split(members):
        identity |= {"manifest_sha256": SPLIT_PER_SEED, "protocol.split_seed": SPLIT_PER_SEED}
    return identity


def _defaults(record: CellRecord, manager: PluginManager) -> dict[str, object]:
    """What a run of this name has unless somebody asks for something else; empty where its plugin is not installed."""
    request = Request(
        method=record.method,
        dataset=record.called or record.dataset,
        variant=record.variant or None,
        preset=record.preset,
        protocol=record.protocol,
    )
    try:
        plan = make_plan(request, manager)
    except GCDBenchError:
        return {}
    return {
        "method_version": plan.method.version,
        "views": plan.settings.views,
        "augmentation": plan.settings.augmentation,
        "precision": plan.settings.precision,
        "world_size": 1,
        **flatten({"config": to_plain(plan.config), "training": to_plain(plan.training)}),
    }


def _short(value: object) -> str:
    text = str(value)
    return text[:8] if len(text) > LONG else text

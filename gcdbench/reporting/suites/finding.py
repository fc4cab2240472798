"""Which stored run is the one a request means, without touching the dataset.

A run's id needs the split's hash. Everything else that names it is known from the request alone, so requests and
runs are compared by that part of the identity. A dataset is compared by what it was called: the name on its card, which
is in the identity, is known only to those who have opened it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gcdbench.core.errors import ConfigError, GCDBenchError
from gcdbench.core.identity import digest
from gcdbench.datasets.protocols import card_of, default_protocol
from gcdbench.plugins.manager import PluginManager
from gcdbench.reporting.records import CellRecord
from gcdbench.reporting.replicates import split_seed
from gcdbench.reporting.suites.model import SPLIT_SEED
from gcdbench.runs.plan import Materials, Plan, make_plan
from gcdbench.runs.request import Request
from gcdbench.views.budget import rank_decision
from gcdbench.views.setting import parse_views

AUTO = "auto"
"""Views that are decided when a run begins: what was decided is in the run's identity, "auto" in the request alone."""

FROM_DATA = ("dataset", "manifest_sha256", "images", "weights_sha256", "accepted_data_issues", "world_size")
"""Parts of an identity that only the data, the weights and the processes in use can tell."""


def fingerprint(identity: Mapping[str, Any], *, views: bool = True) -> str:
    """Digest of what a request fixes, but for the dataset and the seed, and, where asked, for the views."""
    left_out = (*FROM_DATA, "seed", *(() if views else ("views",)))
    return digest({key: value for key, value in identity.items() if key not in left_out})


def plan_fingerprint(plan: Plan) -> str:
    """The fingerprint that a run of this plan will have."""
    return fingerprint(plan.identity(Materials(dataset=plan.dataset_name)))


class RunFinder:
    """Finds the runs of requests among records; look-ups are by fingerprint, so that many cost little."""

    def __init__(self, records: Iterable[CellRecord], manager: PluginManager) -> None:
        self._manager = manager
        self._by_fingerprint: dict[tuple[str, int], list[CellRecord]] = {}
        self._by_name: dict[tuple[object, ...], list[CellRecord]] = {}
        self._records = tuple(records)
        self._by_auto: dict[tuple[str, int], list[CellRecord]] | None = None
        self._weights: dict[tuple[str, str | None], str | None] = {}
        fingerprints: dict[str, str] = {}
        for record in self._records:
            key = fingerprints.get(record.settings)
            if key is None:
                key = fingerprints[record.settings] = fingerprint(record.common.identity)
            self._by_fingerprint.setdefault((key, record.seed), []).append(record)
            self._by_name.setdefault(_name_of_record(record), []).append(record)

    def find(self, request: Request) -> list[CellRecord]:
        """Every run, whatever its state, that the request means."""
        try:
            plan = make_plan(request, self._manager)
        except GCDBenchError:
            return self._find_by_name(request)
        return self.find_plan(plan)

    def _find_by_name(self, request: Request) -> list[CellRecord]:
        """Imported runs of a method or a preset whose plugin is not installed here, by what their records say.

        Where both are known there are no such runs: the request is impossible. And where records of one name differ
        in more than the seed, nothing tells which of them are meant.
        """
        known = request.method in self._manager.names("methods") and (
            request.preset is None or request.preset in self._manager.names("presets")
        )
        if set(request.overrides) - {SPLIT_SEED} or known:
            return []
        protocol = request.protocol or default_protocol(card_of(request.dataset, self._manager))
        drawn_by = int(str(request.overrides.get(SPLIT_SEED, 0)))
        like = [
            record
            for record in self._by_name.get(_name_of_request(request), [])
            if record.protocol == protocol and split_seed(record) == drawn_by
        ]
        if len({record.settings for record in like}) > 1:
            return []
        return [record for record in like if record.seed == request.seed]

    def find_plan(self, plan: Plan) -> list[CellRecord]:
        """The same for a resolved request."""
        if plan.method.trained and plan.settings.views == AUTO:
            return _largest_views(self._meant(plan, self._auto_runs(plan)))
        return self._meant(plan, self._by_fingerprint.get((plan_fingerprint(plan), plan.seed), []))

    def _auto_runs(self, plan: Plan) -> list[CellRecord]:
        """Runs that differ from the plan in nothing but views that ``auto`` may have meant under some budget."""
        if self._by_auto is None:
            self._by_auto = {}
            for record in self._records:
                identity = record.common.identity
                if "views" in identity and _views_rank(record) is not None:
                    key = (fingerprint(identity, views=False), record.seed)
                    self._by_auto.setdefault(key, []).append(record)
        identity = plan.identity(Materials(dataset=plan.dataset_name))
        return self._by_auto.get((fingerprint(identity, views=False), plan.seed), [])

    def _meant(self, plan: Plan, found: list[CellRecord]) -> list[CellRecord]:
        """Those of these runs that have the plan's weights, dataset and options."""
        weights = self._weights_of(plan)
        meant = [
            record
            for record in found
            if (weights is None or record.weights_sha256 == weights)
            and dict(record.dataset_options) == dict(plan.dataset_options)
            and plan.dataset_text in (record.dataset, record.called)
        ]
        # A request does not say how many processes do it; a run of one process is what it means first of all.
        return [record for record in meant if record.common.identity.get("world_size", 1) == 1] or meant

    def _weights_of(self, plan: Plan) -> str | None:
        """Hash of the weights a run would start from; None where finding out would be expensive."""
        if not plan.method.needs_backbone:
            return None
        key = (plan.settings.backbone, plan.settings.weights)
        if key not in self._weights:
            spec = self._manager.get("backbones", plan.settings.backbone)
            try:
                self._weights[key] = spec.weights_sha256(plan.settings.weights, load=False)
            except GCDBenchError:  # not told cheaply, or not on this machine: any stored run with it will do
                self._weights[key] = None
        return self._weights[key]


def _views_rank(record: CellRecord) -> tuple[int, int] | None:
    try:
        return rank_decision(parse_views(record.views))
    except ConfigError:  # of a version that had other views
        return None


def _largest_views(records: list[CellRecord]) -> list[CellRecord]:
    """Of runs under several budgets those under the largest, so that a cell has one run of a seed."""
    best = min((rank for record in records if (rank := _views_rank(record))), default=None)
    return [record for record in records if _views_rank(record) == best]


def _name_of_record(record: CellRecord) -> tuple[object, ...]:
    return (record.method, record.variant, record.dataset, record.preset, record.k_policy)


def _name_of_request(request: Request) -> tuple[object, ...]:
    return (request.method, request.variant or "", request.dataset, request.preset or "", request.k_policy)

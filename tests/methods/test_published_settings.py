"""One rule for the settings of all methods: defaults from the published code, the scripts for CIFAR-10 as a variant."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from gcdbench.methods.builtin import CIFAR10, METHODS
from gcdbench.plugins.manager import PluginManager
from gcdbench.plugins.specs import MethodSpec
from gcdbench.runs.plan import make_plan
from gcdbench.runs.request import Request

# What each method's published scripts say: the default (what all scripts agree on, else the code's own default where a
# script uses it, else what most scripts use), and CIFAR-10 (CMS has CIFAR-100, GCD Cars and DCCL CUB instead).
SCRIPTS: dict[str, dict[str, tuple[float, float]]] = {
    "simgcd": {"memax_weight": (2.0, 1.0), "lambda_": (0.35, 0.35)},
    "legogcd": {"memax_weight": (2.0, 1.0), "ler_threshold": (0.7, 0.95)},
    "nguf-approx": {"memax_weight": (2.0, 1.0)},
    "gcd": {"lambda_": (0.35, 0.35), "n_init": (100, 100), "max_iter": (200, 200)},
    "ss-kmeans": {"n_init": (100, 100), "max_iter": (200, 200)},
    "rs-plus": {"consistency": (50.0, 5.0), "ramp": (0.75, 0.25), "top_k": (5, 5)},
    "uno-plus": {"overcluster": (3, 10), "heads": (4, 4)},
    "orca": {"max_margin": (0.5, 0.5), "tau": (0.1, 0.1)},
    "dccl": {"neighbours": (15, 15), "threshold": (0.6, 0.6), "concept_end": (0.4, 0.4)},
    "cms": {"tau_u": (0.25, 0.3), "neighbours": (8, 8)},
    "protogcd": {"lambda_": (0.35, 0.35), "separation_weight": (0.1, 0.1)},
}


def settings_of(method: str, variant: str | None) -> dict[str, Any]:
    plan = make_plan(Request(method=method, dataset="phantom", variant=variant), PluginManager(points=[]))
    return asdict(plan.config)


@pytest.mark.parametrize("spec", [spec for spec in METHODS if "kmeans" not in spec.name], ids=lambda spec: spec.name)
def test_every_published_method_offers_both(spec: MethodSpec) -> None:
    usual, other = settings_of(spec.name, None), settings_of(spec.name, CIFAR10)
    for key, values in SCRIPTS[spec.name].items():
        assert (usual[key], other[key]) == values, key
    changed = {key for key in usual if usual[key] != other[key]}
    assert changed == {key for key, (one, two) in SCRIPTS[spec.name].items() if one != two}

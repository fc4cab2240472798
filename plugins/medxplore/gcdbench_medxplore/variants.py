"""Named settings: the paper's ablations and sweeps, and the readings the paper leaves open."""

from __future__ import annotations

from collections.abc import Mapping

Settings = Mapping[str, object]

NO_FAAC: Settings = {"faac.enabled": False, "alpha": 0.0}
NO_ACAM: Settings = {"beta": 0.0}

MODULES: Mapping[str, Settings] = {
    "baseline": {**NO_FAAC, **NO_ACAM},
    "faac": NO_ACAM,
    "acam": NO_FAAC,
    "faac+acam": {},
}
"""Table 2."""

BUILD_UP: Mapping[str, Settings] = {
    "filter": {"faac.glec": False, "alpha": 0.0, **NO_ACAM},
    "filter+glec": {"alpha": 0.0, **NO_ACAM},
    "filter+glec+pc": NO_ACAM,
}
"""Table 3, rows B to D (row A is ``baseline``)."""

SWEEPS: Mapping[str, Settings] = {
    **{f"alpha-{value}": {"alpha": value} for value in (0.1, 0.5, 1.0, 1.5, 2.0)},
    **{f"beta-{value}": {"beta": value} for value in (0.1, 0.3, 0.5, 1.0, 1.5, 2.0)},
    **{f"k-{value}": {"faac.k": value} for value in (4, 6, 8, 10, 12)},
    **{f"delta-{value:.2f}": {"faac.delta": value} for value in (0.60, 0.65, 0.70, 0.80, 0.90)},
}
"""The sensitivity figure; the paper names the ranges' ends and best values only."""

CONFIDENCE: Mapping[str, Settings] = {
    **{f"ub-{name}": {"acam.signals": tuple(name.upper())} for name in ("a", "w", "g", "aw", "ag", "wg", "awg")},
    "ub-fixed": {"acam.signals": ()},
}
"""u_b from each signal alone and together, and a margin that does not adapt."""

FILTERS: Mapping[str, Settings] = {
    "spatial-variance": {"faac.filter": "none"},
    "high-pass": {"faac.filter": "high-pass"},
    "low-pass": {"faac.filter": "low-pass"},
    "spectral-conv": {"faac.filter": "spectral-conv"},
    "spectral-gain": {"faac.filter": "spectral-gain"},
}
"""The filter comparison."""

READINGS: Mapping[str, Settings] = {
    "grid-2": {"faac.grid": 2, "faac.k": 2},
    "k-scaled": {"faac.k_scaled": True},
    "map-6x6": {"image_size": 192},
    "map-6x6-k-scaled": {"image_size": 192, "faac.k_scaled": True},
    "feature-both": {"faac.feature": "both"},
    "feature-none": {"faac.feature": "none"},
    "patch-only": {"faac.feature": "none", **NO_ACAM},
    "patch-only-k-scaled": {"faac.feature": "none", "faac.k_scaled": True, **NO_ACAM},
    "patch-none": {"alpha": 0.0},
    "patch-warm": {"faac.start": 0.1},
    "patch-late": {"faac.start": 0.5},
    "matches-4": {"faac.min_matches": 4},
    "patch-weak": {"alpha": 0.1, **NO_ACAM},
    "temperatures-swapped": {"tau_u": 0.07, "tau_c": 1.0},
    "weights-learn": {"faac.weight_gradient": True},
    "border-replicate": {"faac.border": "replicate"},
    "border-zeros": {"faac.border": "zeros"},
    "padding-zeros": {"faac.padding": "zeros"},
    "init-uniform": {"faac.init": "uniform"},
    "gamma-fixed": {"faac.learn_gamma": False},
    "negatives-raised": {"acam.negative_margin": "raised"},
    "acam-negatives-raised": {**NO_FAAC, "acam.negative_margin": "raised"},
    "percentile-running": {"acam.percentile": "running"},
    "acam-percentile-running": {**NO_FAAC, "acam.percentile": "running"},
    "confidence-learns": {"acam.percentile": "running", "acam.detach": False},
    "margins-ambiguous": {"acam.direction": "ambiguous"},
    "acam-margins-ambiguous": {**NO_FAAC, "acam.direction": "ambiguous"},
    "margins-none": {"acam.angular_max": 0.0, "acam.cosine_max": 0.0},
    "acam-margins-none": {**NO_FAAC, "acam.angular_max": 0.0, "acam.cosine_max": 0.0},
    "margins-small": {"acam.angular_max": 0.1, "acam.cosine_max": 0.1},
    "margins-large": {"acam.angular_max": 0.5, "acam.cosine_max": 0.35},
    "scale-30": {"acam.scale": 30.0},
    "gate-0": {"acam.gate": 0.0},
    "gate-0-negatives-raised": {"acam.gate": 0.0, "acam.negative_margin": "raised"},
    "match-weighted": {"acam.match": "weighted"},
    "one-view": {"acam.views": "first"},
    "outputs-old": {"acam.outputs": "old"},
    "head-own": {"acam.head": "own"},
    "head-own-outputs-old": {"acam.head": "own", "acam.outputs": "old"},
    "tokens-projected": {"faac.token_dim": 256},
    "stop-gradient": {"faac.stop_gradient": "second"},
    "attention-detached": {"faac.attention_gradient": False},
}
"""Other readings of what the paper leaves open (benchmarks/medxplore/ledger.md)."""

SCREENED: Mapping[str, Settings] = {
    "patch-weak-outputs-old": {"alpha": 0.1, "acam.outputs": "old"},
    "patch-warm-head-own": {"faac.start": 0.1, "acam.head": "own", "acam.outputs": "old"},
}
"""Readings together, which are candidates for a recommended setting in addition to single ones."""

RECOMMENDED: Mapping[str, Settings] = {"recommended": SCREENED["patch-warm-head-own"]}
"""Chosen among ten candidates on phantom and blood cells, by a rule written down before: suite ``screening``."""

PUBLISHED: Mapping[str, Settings] = {"cifar10": {"memax_weight": 1.0}}
"""SimGCD's part as its script for CIFAR-10 has it: the other side of the rule that every method's defaults follow."""

VARIANTS: Mapping[str, Settings] = {
    **MODULES,
    **BUILD_UP,
    **SWEEPS,
    **CONFIDENCE,
    **FILTERS,
    **READINGS,
    **SCREENED,
    **RECOMMENDED,
    **PUBLISHED,
}

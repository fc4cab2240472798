"""Every score that a table, a figure or a report may show, described in one place.

What metrics return is described by the metrics; here is what a run itself knows: K and what it cost.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from gcdbench.metrics.score import Score, ScoreCatalogue
from gcdbench.plugins.manager import OWN_DISTRIBUTION, PluginManager
from gcdbench.plugins.specs import MetricSpec

RUN_SCORES = (
    Score(key="k_hat", title="K given or estimated", bounds=(1, None)),
    Score(key="k_hat_error", title="K error"),
    Score(key="seconds", title="run time (s)", unit="s", decimals=0, bounds=(0, None)),
    Score(key="images_seen", title="images seen", decimals=0, bounds=(0, None)),
    Score(key="parameters_m", title="parameters (M)", unit="M", decimals=3, bounds=(0, None)),
    Score(key="gflops", title="GFLOPs", decimals=3, bounds=(0, None)),
    Score(key="latency_ms", title="latency (ms)", unit="ms", direction="lower", bounds=(0, None)),
    Score(key="images_per_s", title="images/s", direction="higher", bounds=(0, None)),
    Score(key="weights_mb", title="weights (MB)", unit="MB", direction="lower", bounds=(0, None)),
    Score(key="activations_mb", title="activations (MB)", unit="MB", direction="lower", bounds=(0, None)),
)
"""A cost has no direction, so it is never bold: time depends on the machine, parameters on the backbone."""


def score_catalogue(manager: PluginManager) -> ScoreCatalogue:
    """Descriptions of all scores by key. Nobody can describe a score of gcdbench differently from gcdbench."""
    return ScoreCatalogue.of([*_of_metrics(manager, own=True), *RUN_SCORES, *_of_metrics(manager, own=False)])


def _of_metrics(manager: PluginManager, *, own: bool) -> Iterator[Score]:
    for spec in manager.specs("metrics"):
        assert isinstance(spec, MetricSpec)
        if (manager.provider("metrics", spec.name)[0] == OWN_DISTRIBUTION) is not own:
            continue
        # Another's descriptions that do not load are reported by 'gcdbench doctor'; tables show the scores without
        # them.
        with contextlib.nullcontext() if own else contextlib.suppress(Exception):
            yield from spec.describe()

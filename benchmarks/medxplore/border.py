"""How far the mean-entropy term has spread a run's predictions, and where its border between old and new lies.

The term asks for a mean prediction p̄ that is uniform over the classes. Half of a batch is labelled, and so old, and
some of the other half is old as well: a batch predicted without an error is not uniform. What the term takes from it
goes from the old classes to the new ones.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import binom

from benchmarks.medxplore.seed_tables import border_rates
from gcdbench.api import CellRecord, EpochEnd, read_record

COLUMNS = ("n", "log K − H(p̄)", "% of the old taken for new", "% of the new taken for old")


def spread(run: CellRecord) -> float:
    """log K − H(p̄) in the last epoch, the mean over its batches: 0 where all classes are predicted equally often."""
    config = run.config
    weight: float = (1 - config["lambda_"]) * config["memax_weight"]
    last = [event for event in read_record(run.path).events if isinstance(event, EpochEnd)][-1]
    return last.losses["memax"] / weight


def errorless_spread(old: int, new: int, old_share_of_unlabelled: float, batch: int) -> float:
    """The same of batches whose images are all predicted right and with certainty, for classes of equal size.

    Exact: an image of the batch is of class c with probability π_c, so c's count is binomial.
    """
    old_share = (1 + old_share_of_unlabelled) / 2
    chances = [old_share / old] * old + [(1 - old_share) / new] * new
    counts = np.arange(1, batch + 1)
    shares = counts / batch
    entropies = (-float(binom.pmf(counts, batch, chance) @ (shares * np.log(shares))) for chance in chances)
    return math.log(old + new) - sum(entropies)


def border_table(groups: Mapping[str, Sequence[CellRecord]]) -> str:
    """One line per group of runs, the most spread predictions first; the last line is what no error would give."""
    run = next(iter(groups.values()))[0]
    split = read_record(run.path).split
    if split.old_share is None:
        raise ValueError(f"The run '{run.run_id}' has no unlabelled images.")
    errorless = errorless_spread(
        len(split.old_classes), len(split.new_classes), split.old_share, run.training["batch_size"]
    )
    lines = [f"| run | {' | '.join(COLUMNS)} |", "|---" * (1 + len(COLUMNS)) + "|"]
    spreads = {name: statistics.mean(map(spread, runs)) for name, runs in groups.items()}
    for name in sorted(groups, key=spreads.__getitem__):
        rates = (statistics.mean(side) for side in zip(*map(border_rates, groups[name]), strict=True))
        cells = [str(len(groups[name])), f"{spreads[name]:.3f}", *(f"{rate:.1f}" for rate in rates)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines.append(f"| every image right | – | {errorless:.3f} | 0.0 | 0.0 |")
    return "\n".join(lines)

"""Cost against the number of images N, clusters K and stored views V.

python -m benchmarks.speed.scaling '{"folder": "", "cache": "..."}'
"""

from __future__ import annotations

import dataclasses
import json
import time
from typing import Any

import numpy as np
import torch

from benchmarks.speed.ours import TimedSimGCD, make_context, split
from benchmarks.speed.settings import Settings, parse_settings
from gcdbench.views.bank import open_views


def measure_one(settings: Settings) -> dict[str, float]:
    """Seconds of building a bank of random images, of a step, and of predicting an image."""
    side = round(settings.image_size / 0.875)
    pixels = np.random.default_rng(0).integers(0, 256, (settings.images, side, side, 3), dtype=np.uint8)
    key = f"random-{settings.images}"
    started = time.perf_counter()
    open_views(make_context(settings, key), pixels).start_epoch(0)
    built = time.perf_counter()
    method = TimedSimGCD(settings, make_context(settings, key))
    data = split(pixels)
    method.fit(data)
    trained = time.perf_counter()
    method.predict(data.unlabelled)
    views = settings.images * (int(settings.views.partition(":")[2]) + 1)
    return {
        "bank_ms_a_view": 1e3 * (built - started) / views,
        # The fastest step: a neighbour on the machine can only slow one down.
        "step_ms": 1e3 * float(np.min(np.diff(method.times[settings.warmup - 1 :]))),
        "predict_ms_an_image": 1e3 * (time.perf_counter() - trained) / len(data.unlabelled),
    }


def main() -> None:
    """Print one row for each size."""
    base = parse_settings()
    torch.set_num_threads(base.threads)
    # The first measurement of a process pays for its imports and its first allocations.
    measure_one(dataclasses.replace(base, views="bank:2", cache=f"{base.cache}/warm"))
    rows: list[dict[str, Any]] = []
    for name, values in (
        ("N", [base.images * factor for factor in (1, 4, 16)]),
        ("K", [8, 64, 512]),
        ("V", [2, 8, 16]),
    ):
        for value in values:
            changes: dict[str, dict[str, Any]] = {
                "N": {"images": value},
                "K": {"k": value},
                "V": {"views": f"bank:{value}"},
            }
            settings = dataclasses.replace(
                base, **{"views": "bank:2", **changes[name], "cache": f"{base.cache}/{name}{value}"}
            )
            rows.append({"axis": name, "value": value, **measure_one(settings)})
    print(json.dumps({"rows": rows}))


if __name__ == "__main__":
    main()

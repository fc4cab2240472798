"""Started once alone and once as two processes by test_two_processes.py: trains and writes the weights."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from gcdbench_medxplore.config import ACAMConfig, FAACConfig, MedXploreConfig
from gcdbench_medxplore.method import MedXplore

from gcdbench.testing.tiny import shrink, tiny_context, tiny_task
from gcdbench.training.distributed import process_group


def main(out: Path) -> None:
    with process_group() as here:
        # One of them with the modules of later readings, which sit behind the gathering.
        for feature, width, head in (("x_out", None, "shared"), ("both", 5, "own")):
            config = MedXploreConfig(
                faac=FAACConfig(feature=feature, init="uniform", delta=0.3, token_dim=width),
                acam=ACAMConfig(percentile="running", head=head),
            )
            data, task, _ = tiny_task()
            method = shrink(MedXplore)(config, task, tiny_context(epochs=2, norm=False))
            method.fit(data)
            weights = {**method.state_dict(), **method.auxiliary_state()}
            arrays = {name: value.detach().numpy() for name, value in weights.items()}
            np.savez(out / f"{feature}-{here.rank}-of-{here.size}.npz", **arrays)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

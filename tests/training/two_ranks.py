"""Run by torchrun in test_distributed.py, and without it for the single-process reference: writes what it found."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gcdbench.methods.configs import DCCLConfig, LegoGCDConfig
from gcdbench.methods.dccl import DCCL
from gcdbench.methods.legogcd import LegoGCD
from gcdbench.testing.tiny import shrink, tiny_context, tiny_task
from gcdbench.training.batch import Batch
from gcdbench.training.distributed import process_group


class Both(shrink(LegoGCD)):  # type: ignore[misc]
    """Has a module in front of the gathering of rows and one behind it."""

    def extra_modules(self) -> dict[str, nn.Module]:
        width = self.backbone.channels
        return {"before": nn.Linear(width, width), "after": nn.Linear(width, 1)}

    def feature(self, tail: Any) -> Tensor:
        self.kept = self.share(tail.pooled)
        return tail.pooled + 0.1 * self.extras["before"](tail.pooled)

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        assert torch.equal(self.kept, batch.tail.pooled)
        score = self.extras["after"](batch.feature)
        return {**super().losses(batch), "extra": (score * torch.rand_like(score)).square().mean()}


def main(out: Path) -> None:
    with process_group() as here:
        events: list[Any] = []
        data, task, _ = tiny_task(images=49)
        context = tiny_context(epochs=3, norm=False, log=events.append)
        method = Both(LegoGCDConfig(ler_threshold=0.3), task, context)
        method.fit(data)
        prediction = method.predict(data.unlabelled)
        weights = {**method.state_dict(), **method.auxiliary_state()}
        # A method with a second batch; one epoch, because a rounding may change the concepts of the next.
        small = DCCLConfig(communities="louvain", neighbours=2, threshold=-1.0, min_size=4, per_concept=3, n_init=1)
        other = shrink(DCCL)(small, task, tiny_context(epochs=1, norm=False))
        other.fit(data)
        assert len(other.memory)
        weights |= {f"second-batch.{name}": value for name, value in other.state_dict().items() if "tail" in name}
        np.savez(
            out / f"{here.rank}-of-{here.size}.npz",
            ids=prediction.ids,
            cluster=prediction.cluster,
            embedding=prediction.embedding,
            events=len(events),
            **{f"weight/{name}": value.detach().numpy() for name, value in weights.items()},
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))

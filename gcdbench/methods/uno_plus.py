"""UNO+: swapped prediction with balanced pseudo-labels over all K classes (after Fini et al., ICCV 2021)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gcdbench.methods.algorithms.sinkhorn import sinkhorn
from gcdbench.methods.configs import UNOPlusConfig
from gcdbench.models.heads import Prototypes
from gcdbench.splits.data import GCDData
from gcdbench.training.batch import Batch
from gcdbench.training.parametric import ParametricMethod


class UNOPlus(ParametricMethod):
    """Several heads for the new classes and one for the old ones; the head that fits best is kept."""

    config: UNOPlusConfig

    def extra_modules(self) -> dict[str, nn.Module]:
        """New-class prototypes on the feature, and finer ones on the projection, ``heads`` times each."""
        c, generator = self.config, self.ctx.generator("uno-heads")
        new = self.k - self.task.k_old
        self.head_loss = torch.zeros(c.heads, device=self.device)
        fine = [Prototypes(self.projector_out, new * c.overcluster, generator) for _ in range(c.heads)]
        return {
            "heads": nn.ModuleList(Prototypes(self.backbone.channels, new, generator) for _ in range(c.heads)),
            "fine": nn.ModuleList(fine),
        }

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        """Half the mean over heads of the swapped prediction, and half the same for the overclustering heads."""
        old = batch.logits[:, : batch.k_old]
        coarse = self._swapped("heads", batch.feature, old, batch.labels)
        fine = self._swapped("fine", batch.projection, old, batch.labels)
        self.head_loss += coarse.detach()
        return {"cluster": coarse.mean() / 2, "overcluster": fine.mean() / 2}

    def _swapped(self, name: str, rows: Tensor, old: Tensor, labels: Tensor) -> Tensor:
        """(heads,) losses; rows: (2B, D) what the heads of this name see, old: (2B, K_old) cosines."""
        c = self.config
        heads: Any = self.extras[name]
        fixed = old.shape[1] if c.balance == "new" else 0
        each = []
        for head in heads:
            logits = torch.cat([old, head(rows)], dim=1)
            targets = [
                balanced_targets(view, labels, c.epsilon, c.iterations, fixed=fixed)
                for view in logits.detach().chunk(2)
            ]
            # The target of each view supervises the other one.
            log_p = F.log_softmax(logits / c.tau, dim=1)
            each.append(-(torch.cat(targets[::-1]) * log_p).sum(dim=1).mean())
        return torch.stack(each)

    def on_epoch_start(self, epoch: int) -> None:
        """Heads are compared by the loss of the last epoch."""
        self.head_loss = torch.zeros_like(self.head_loss)

    def training_state(self) -> dict[str, Any]:
        """The heads' losses in this epoch."""
        return {"head_loss": self.head_loss}

    def load_training_state(self, state: dict[str, Any]) -> None:
        """Take them back."""
        self.head_loss = state["head_loss"].to(self.device)

    def fit(self, data: GCDData) -> None:
        """Train, then keep the new-class prototypes of the head with the lowest loss."""
        super().fit(data)
        heads: Any = self.extras["heads"]
        with torch.no_grad():
            self.prototypes.weight[self.task.k_old :] = heads[int(self.head_loss.argmin())].weight


def balanced_targets(logits: Tensor, labels: Tensor, epsilon: float, iterations: int, *, fixed: int = 0) -> Tensor:
    """(B, K) targets of one view: the given label where there is one, else balanced over the classes among the rest.

    fixed: the first classes, which only a given label can be. Where no other class exists, all are balanced over.
    """
    classes = logits.shape[1]
    fixed = fixed if fixed < classes else 0
    targets = F.one_hot(labels.clamp(min=0), classes).to(logits.dtype)
    free = labels < 0
    targets[free] = F.pad(sinkhorn(logits[free, fixed:], epsilon=epsilon, iterations=iterations), (fixed, 0))
    return targets

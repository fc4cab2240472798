"""LegoGCD: SimGCD with local entropy regularisation and a dual-view divergence (Cao et al., CVPR 2024)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F

from gcdbench.methods.configs import LegoGCDConfig
from gcdbench.methods.simgcd import SimGCD
from gcdbench.training import losses
from gcdbench.training.batch import Batch
from gcdbench.training.method import TaskInfo

if TYPE_CHECKING:
    from gcdbench.training.context import RunContext


class LegoGCD(SimGCD):
    """Keeps old classes from being forgotten: confident predictions of old classes are made more confident."""

    config: LegoGCDConfig

    def __init__(self, config: LegoGCDConfig, task: TaskInfo, ctx: RunContext) -> None:
        super().__init__(config, task, ctx)
        self.prior: Tensor | None = None

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        """SimGCD's terms, the divergence inside its unsupervised weight, and the local entropy term outside it."""
        c = self.config
        mask = losses.confident_old(batch.logits, batch.labels_both, batch.k_old, c.tau_s, c.ler_threshold)
        single = c.ler == "single"
        margin = c.ler_margin * self._prior(batch).log() if single else None
        local = losses.local_entropy(batch.logits, mask, c.ler_temperature, log_margin=margin, detach=c.ler_detach)
        divergence = losses.view_divergence(batch.logits, c.tau_s, double_softmax=c.dkl == "code")
        return {
            **super().losses(batch),
            "dkl": (1.0 - c.lambda_) * c.dkl_weight * divergence,
            "ler": (2.0 if single else 1.0) * local,
        }

    def after_step(self, batch: Batch) -> None:
        """Move the running class prior towards this batch's mean prediction, at temperature 1 as published."""
        momentum = self.config.prior_momentum
        mean = F.softmax(batch.logits.detach(), dim=1).mean(dim=0)
        self.prior = momentum * self._prior(batch) + (1.0 - momentum) * mean

    def training_state(self) -> dict[str, Any]:
        """The running class prior."""
        return {"prior": self.prior}

    def load_training_state(self, state: dict[str, Any]) -> None:
        """Take the running class prior back."""
        self.prior = None if state["prior"] is None else state["prior"].to(self.device)

    def _prior(self, batch: Batch) -> Tensor:
        """(K,) the running prior, uniform at first."""
        if self.prior is None:
            self.prior = torch.full_like(batch.logits[0].detach(), 1.0 / self.k)
        return self.prior

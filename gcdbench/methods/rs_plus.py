"""RankStats+ in the GCD paper's sense: AutoNovel's ranking statistics under one K-way head (Han et al., ICLR 2020)."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from gcdbench.methods.configs import RSPlusConfig
from gcdbench.training import losses
from gcdbench.training.batch import Batch
from gcdbench.training.parametric import ParametricMethod


class RSPlus(ParametricMethod):
    """Unlabelled pairs whose strongest features are the same set are pulled together, all others apart."""

    config: RSPlusConfig

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        """Cross-entropy, pairwise cross-entropy and consistency of the views."""
        c = self.config
        outputs = batch.k_old if c.supervised_outputs == "old" else self.k
        first, second = F.softmax(batch.logits / c.tau, dim=1).chunk(2)
        same = same_top_features(batch.feature.detach().chunk(2)[0], c.top_k)
        free = ~batch.labelled
        return {
            "given": losses.supervised_cross_entropy(batch.logits[:, :outputs], batch.labels_both, c.tau),
            "pairs": pairwise_cross_entropy(first, second, same, free[:, None] & free[None, :]),
            "consistency": self.consistency_weight(batch.progress) * F.mse_loss(first, second),
        }

    def consistency_weight(self, progress: float) -> float:
        """coef · exp(−5 (1 − t)²), where t reaches 1 after the share ``ramp`` of the run."""
        c = self.config
        t = min(progress / c.ramp, 1.0) if c.ramp > 0 else 1.0
        return c.consistency * math.exp(-5.0 * (1.0 - t) ** 2)


def same_top_features(feature: Tensor, k: int) -> Tensor:
    """(R, C) -> (R, R): whether the sets of the k largest features are the same; each row equals itself."""
    top = feature.topk(min(k, feature.shape[1]), dim=1).indices.sort(dim=1).values
    return (top[:, None, :] == top[None, :, :]).all(dim=2)


def pairwise_cross_entropy(first: Tensor, second: Tensor, same: Tensor, counted: Tensor) -> Tensor:
    """Mean over the counted pairs (i, j) of −log s where same, else −log(1 − s), with s = ⟨first i, second j⟩.

    first, second: (R, K) probabilities; same, counted: (R, R). Without a counted pair it is 0.
    """
    agreement = first @ second.T
    likelihood = torch.where(same, agreement, 1.0 - agreement)
    return -((likelihood + 1e-7).log() * counted).sum() / counted.sum().clamp(min=1)

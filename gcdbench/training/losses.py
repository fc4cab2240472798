"""The losses of the SimGCD family as pure functions of tensors.

Two conventions hold everywhere. Rows are views: for B images there are 2B rows, view 1 of every image first, then
view 2. A label of −1 means "not given". Nothing here branches on data, so a batch without a labelled image gives
exactly 0 with a graph (the backward pass then writes zeros), and no value has to travel from the device to the host.

Losses have the symbols of SimGCD (Wen et al., "Parametric Classification for Generalized Category Discovery: A Baseline
Study", ICCV 2023): L_rep of the representation, L_cls of the classifier, u without and s with labels. Where the printed
equation and the published code differ, the docstring says which one is followed.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F


def info_nce(projection: Tensor, temperature: float = 1.0) -> Tensor:
    """InfoNCE over all rows: one positive (the other view), 2B − 2 negatives. SimGCD's code for L_rep^u.

    projection: (2B, P), normalised here.
    """
    similarity = _cosine(projection) / temperature
    rows = len(similarity)
    itself = torch.eye(rows, dtype=torch.bool, device=similarity.device)
    partner = torch.arange(rows, device=similarity.device).roll(rows // 2)
    return F.cross_entropy(similarity.masked_fill(itself, -math.inf), partner)


def info_nce_cross_view(projection: Tensor, temperature: float = 1.0) -> Tensor:
    """L_rep^u as printed: view 1 of an image against view 2 of every image of the batch, itself included.

    projection: (2B, P), normalised here.
    """
    first, second = F.normalize(projection, dim=1).chunk(2)
    partner = torch.arange(len(first), device=first.device)
    return F.cross_entropy(first @ second.T / temperature, partner)


def supcon(projection: Tensor, labels: Tensor, temperature: float = 0.07) -> Tensor:
    """Supervised contrast among the labelled rows only. SimGCD's code for L_rep^s.

    For each labelled row: minus the mean log-probability of its positives (same label, either view, not itself),
    where the denominator runs over the other labelled rows; then the mean over these rows.

    projection: (R, P), normalised here; labels: (R,), one for each row.
    """
    similarity = _cosine(projection) / temperature
    given = labels >= 0
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    candidate = given[:, None] & given[None, :] & ~itself
    positive = candidate & (labels[:, None] == labels[None, :])
    return _mean_log_ratio(similarity, candidate, positive)


def supcon_cross_view(projection: Tensor, labels: Tensor, temperature: float = 0.07) -> Tensor:
    """L_rep^s as printed: anchors are view 1 of the labelled images, the denominator is view 2 of all of B.

    projection: (2B, P), normalised here; labels: (2B,), one for each row.
    """
    first, second = F.normalize(projection, dim=1).chunk(2)
    own, other = labels.chunk(2)
    similarity = first @ second.T / temperature
    candidate = (own >= 0)[:, None].expand_as(similarity)
    return _mean_log_ratio(similarity, candidate, candidate & (own[:, None] == other[None, :]))


def swapped_cross_entropy(logits: Tensor, student_temperature: float, teacher_temperature: float) -> Tensor:
    """Self-distillation between the views, L_cls^u: each view's sharpened, detached prediction teaches the other.

    Mean over both directions and all images, labelled ones included. logits: (2B, K), cosines.
    """
    target = F.softmax(logits.detach() / teacher_temperature, dim=1).roll(len(logits) // 2, dims=0)
    return -(target * F.log_softmax(logits / student_temperature, dim=1)).sum(dim=1).mean()


def mean_entropy_gap(logits: Tensor, temperature: float) -> Tensor:
    """log K − H(p̄), where p̄ is the mean prediction of all rows (what ε weighs in L_cls).

    Zero for a uniform mean, log K for a collapsed one; minimising it maximises the entropy, which is the sign of
    SimGCD's code. Taken in the log domain, so a class nobody predicts costs no NaN. logits: (2B, K), cosines.
    """
    rows, classes = logits.shape
    log_mean = torch.logsumexp(F.log_softmax(logits / temperature, dim=1), dim=0) - math.log(rows)
    return (log_mean.exp() * log_mean).sum() + math.log(classes)


def supervised_cross_entropy(logits: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of the labelled rows, L_cls^s; 0 when there is none.

    logits: (R, K), cosines; labels: (R,), one for each row.
    """
    total = F.cross_entropy(logits / temperature, labels, ignore_index=-1, reduction="sum")
    return total / (labels >= 0).sum().clamp(min=1)


def view_divergence(logits: Tensor, temperature: float, *, double_softmax: bool = False) -> Tensor:
    """LegoGCD's dual-view term: KL(p₁ ‖ p₂) from view 1 to view 2, gradient through both, mean over images.

    With ``double_softmax`` it is what LegoGCD's code computes: the probabilities are taken for logits once more
    inside the two logarithms, which makes the term many times smaller. logits: (2B, K), cosines.
    """
    log_p = F.log_softmax(logits / temperature, dim=1)
    p = log_p.exp()
    first, second = (F.log_softmax(p, dim=1) if double_softmax else log_p).chunk(2)
    return (p.chunk(2)[0] * (first - second)).sum(dim=1).mean()


def confident_old(logits: Tensor, labels: Tensor, k_old: int, temperature: float, threshold: float) -> Tensor:
    """(R,) rows without a label whose confident prediction is an old class: what LegoGCD regularises."""
    confidence, cluster = F.softmax(logits.detach() / temperature, dim=1).max(dim=1)
    return (labels < 0) & (confidence >= threshold) & (cluster < k_old)


def local_entropy(
    logits: Tensor, mask: Tensor, temperature: float, *, log_margin: Tensor | None = None, detach: bool = False
) -> Tensor:
    """LegoGCD's local entropy term: mean over ALL rows of mask · CE(softmax(c/τ), log-softmax(c/τ + margin)).

    logits: (R, K), cosines; mask: (R,); log_margin: (K,), already scaled, or None for no margin.
    The target is part of the graph unless ``detach``, as published.
    """
    scaled = logits / temperature
    target = F.softmax(scaled.detach() if detach else scaled, dim=1)
    predicted = F.log_softmax(scaled if log_margin is None else scaled + log_margin, dim=1)
    return (-(target * predicted).sum(dim=1) * mask).mean()


def _cosine(rows: Tensor) -> Tensor:
    """(R, P) -> (R, R) cosines."""
    unit = F.normalize(rows, dim=1)
    return unit @ unit.T


def _mean_log_ratio(similarity: Tensor, candidate: Tensor, positive: Tensor) -> Tensor:
    """Mean over anchors with a positive of −mean over positives of (s − logsumexp of s over candidates); else 0."""
    positives = positive.sum(dim=1)
    anchor = positives > 0
    # A row without candidates would be logsumexp of nothing (−inf, and NaN in its gradient): give it a constant.
    allowed = similarity.masked_fill(~candidate, -math.inf).masked_fill(~anchor[:, None], 0.0)
    log_ratio = similarity - torch.logsumexp(allowed, dim=1, keepdim=True)
    each = (log_ratio * positive).sum(dim=1) / positives.clamp(min=1)
    return -each.sum() / anchor.sum().clamp(min=1)

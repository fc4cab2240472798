"""MedXplore: SimGCD's losses + α · patch consistency + β · ACAM. At test time it is a SimGCD model."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch
from torch import Tensor, nn

from gcdbench.api import Batch, ConfigError, Prototypes, RunContext, SimGCD, TailOutput, TaskInfo
from gcdbench_medxplore.acam import ACAM, labelled_cosines
from gcdbench_medxplore.anchors import Anchors, find_anchors
from gcdbench_medxplore.confidence import attention_confidence, match_confidence
from gcdbench_medxplore.config import FilterName, MedXploreConfig, Signal
from gcdbench_medxplore.consistency import pair_weights, patch_consistency
from gcdbench_medxplore.faac import FAAC
from gcdbench_medxplore.margins import hard_negatives
from gcdbench_medxplore.patches import TokenProjection, patch_count, require_grid, require_patches

FIXED_FILTERS: dict[str, FilterName] = {"spatial variance": "none", "high-pass": "high-pass", "low-pass": "low-pass"}


class MedXplore(SimGCD):
    """FAAC shapes what the losses see of the map; ACAM adds a margin loss on labelled samples."""

    config: MedXploreConfig

    def __init__(self, config: MedXploreConfig, task: TaskInfo, ctx: RunContext) -> None:
        super().__init__(config, task, ctx)
        self.patches = 0
        self._attention: Tensor | None = None
        self._figures: dict[str, Tensor] = {}

    def extra_modules(self) -> dict[str, nn.Module]:
        """FAAC and ACAM, each only where it has an effect: a module without one must not change a run."""
        modules = super().extra_modules()
        config = self.config
        if config.needs_faac:
            self._check_pooling()
            side = math.ceil(self.ctx.image_size / self.backbone.stride)
            self._check_patches(side)
            generator = self.ctx.generator("faac")
            modules["faac"] = FAAC(config.faac, self.backbone.channels, side, side, generator)
        if config.needs_anchors and config.faac.token_dim is not None:
            tokens = self.ctx.generator("faac-tokens")
            modules["tokens"] = TokenProjection(self.backbone.channels, config.faac.token_dim, tokens)
        if config.beta > 0:
            modules["acam"] = ACAM(config.acam, config.signals)
            if config.acam.head == "own":
                outputs = self.k if config.acam.outputs == "all" else self.task.k_old
                modules["acam_head"] = Prototypes(self.backbone.channels, outputs, self.ctx.generator("acam-head"))
        return modules

    def feature(self, tail: TailOutput) -> Tensor:
        """(2B, C) the pooled X_out, unless FAAC's feature is off."""
        self._attention = None
        faac = self._faac
        if faac is None or self.config.faac.feature == "none":
            return super().feature(tail)
        # Variances of a map in half precision would be mostly rounding.
        with torch.autocast(self.device.type, enabled=False):
            x, pooled = tail.map.float(), tail.pooled.float()
            self._attention = faac.attention(x) if self.config.has_attention else None
            return faac.feature(x, pooled, self._attention)

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        """SimGCD's terms, ``pc`` and ``acam``; a term with weight 0 is left out."""
        config = self.config
        faac = self._faac
        if faac is not None and faac.activation is not None:
            self._figures["gamma"] = faac.activation.gamma.detach()
        branches = [batch, self._plain_branch(batch)] if self._sees_both else [batch]
        terms = _mean_terms([SimGCD.losses(self, branch) for branch in branches])
        anchors = self._anchors(batch) if config.needs_anchors else None
        if anchors is not None and config.alpha > 0 and batch.progress >= config.faac.start:
            weights = pair_weights(anchors.first, anchors.second)
            if not config.faac.weight_gradient:
                weights = weights.detach()
            terms["pc"] = config.alpha * patch_consistency(
                anchors.similarity,
                anchors.matches,
                weights,
                min_matches=config.faac.min_matches,
                eps=config.faac.eps,
            )
        if config.beta > 0:
            terms["acam"] = config.beta * torch.stack([self._acam(branch, anchors) for branch in branches]).mean()
        return terms

    def on_epoch_end(self, epoch: int) -> None:
        """Log what the epoch's last step looked like from inside."""
        super().on_epoch_end(epoch)
        if self._figures:
            self.ctx.log({"type": "medxplore", "epoch": epoch, **{k: float(v) for k, v in self._figures.items()}})

    def training_state(self) -> dict[str, Any]:
        """The figures of the last step, which the end of the epoch logs."""
        return {**super().training_state(), "figures": self._figures}

    def load_training_state(self, state: dict[str, Any]) -> None:
        """Take them back."""
        super().load_training_state(state)
        self._figures = dict(state["figures"])

    def attention(self, tail: TailOutput) -> Tensor | None:
        """A (B, H, W) for ``gcdbench explain``; None where the settings have no attention."""
        faac = self._faac
        if faac is None or not self.config.has_attention:
            return None
        return faac.attention(tail.map.float())

    def attention_alternatives(self, tail: TailOutput) -> dict[str, Tensor]:
        """The fixed filters on this run's features, with its γ: what the learnt filter is compared with."""
        faac, config = self._faac, self.config.faac
        if faac is None or faac.activation is None:
            return {}
        maps: dict[str, Tensor] = {}
        for name, filter_name in FIXED_FILTERS.items():
            if filter_name != config.filter:
                other = FAAC(dataclasses.replace(config, filter=filter_name), *tail.map.shape[1:]).to(tail.map.device)
                other.activation = faac.activation
                maps[name] = other.attention(tail.map.float())
        return maps

    # Inner work --------------------------------------------------------------------------------------------------

    @property
    def _faac(self) -> FAAC | None:
        module = self.extras.get("faac")
        return module if isinstance(module, FAAC) else None

    @property
    def _sees_both(self) -> bool:
        return self.config.needs_faac and self.config.faac.feature == "both"

    def _check_pooling(self) -> None:
        if self.config.faac.feature != "none" and not self.backbone.pools_map:
            raise ConfigError(
                f"FAAC's feature is the pooled X_out, but {self.backbone.name} summarises an image by something else "
                "than the mean of its map: a class token, or a norm after the mean.",
                hint="Keep the patch loss alone with --set faac.feature=none, or choose a convolutional backbone.",
            )

    def _check_patches(self, side: int) -> None:
        if not self.config.needs_anchors:
            return
        faac = self.config.faac
        require_grid(faac.grid, side, side)
        cells = (faac.grid or side) ** 2
        self.patches = patch_count(faac.k, cells, scaled=faac.k_scaled)
        require_patches(self.patches, side, stride=self.backbone.stride, image_size=self.ctx.image_size, grid=faac.grid)

    def _plain_branch(self, batch: Batch) -> Batch:
        """The same batch as the heads would see it at test time: through the backbone's own feature."""
        pooled = batch.tail.pooled
        return dataclasses.replace(
            batch, feature=pooled, projection=self.projector(pooled), logits=self.prototypes(pooled)
        )

    def _anchors(self, batch: Batch) -> Anchors:
        faac = self._faac
        assert faac is not None
        kept, self._attention = self._attention, None
        attention = faac.attention(batch.tail.map) if kept is None else self.share(kept)
        settings = self.config.faac
        anchors = find_anchors(
            batch.tail.map,
            attention,
            k=self.patches,
            delta=settings.delta,
            grid=settings.grid,
            project=self.extras.get("tokens"),
            held=None if settings.stop_gradient == "none" else settings.stop_gradient,
        )
        matched = anchors.matches.sum(dim=(1, 2)).detach().float()
        self._figures |= {"matches": matched.mean(), "images_matched": (matched > 0).float().mean()}
        self._figures["attention"] = attention.detach().mean()
        return anchors

    def _acam_logits(self, batch: Batch) -> Tensor:
        """(2B, C) cosines of the classes that ACAM lets compete."""
        head = self.extras.get("acam_head")
        logits: Tensor = batch.logits if head is None else head(batch.feature)
        return logits if self.config.acam.outputs == "all" else logits[:, : batch.k_old]

    def _acam(self, batch: Batch, anchors: Anchors | None) -> Tensor:
        acam = self.extras["acam"]
        labelled = batch.labelled
        signals: dict[Signal, Tensor] = {}
        if anchors is not None:
            weights = pair_weights(anchors.first, anchors.second) if self.config.acam.match == "weighted" else None
            signals["A"] = attention_confidence(anchors.first, anchors.second)[labelled]
            signals["W"] = match_confidence(anchors.similarity, anchors.matches, weights)[labelled]
        views = 2 if self.config.acam.views == "both" else 1
        cosines = labelled_cosines(self._acam_logits(batch), labelled, views=views)
        labels = batch.labels[labelled]
        loss, u = acam(cosines, labels, signals)
        if u.numel():
            spreads = {f"{name}_sd": signal.detach().std(correction=0) for name, signal in signals.items()}
            self._figures |= {
                "u": u.detach().mean(),
                "u_sd": u.detach().std(correction=0),
                **spreads,
                "hard_negatives": hard_negatives(cosines, labels, self.config.acam.gate),
            }
        out: Tensor = loss
        return out


def _mean_terms(branches: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Each term averaged over branches; a single branch is passed through untouched."""
    if len(branches) == 1:
        return branches[0]
    return {name: torch.stack([terms[name] for terms in branches]).mean() for name in branches[0]}

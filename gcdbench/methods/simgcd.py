"""SimGCD: parametric classification with self-distillation (Wen et al., ICCV 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from torch import Tensor

from gcdbench.core.config import NotNegative, Positive, Share
from gcdbench.training import losses
from gcdbench.training.batch import Batch
from gcdbench.training.method import TaskInfo
from gcdbench.training.parametric import ParametricMethod
from gcdbench.training.schedules import teacher_temperature

if TYPE_CHECKING:
    from gcdbench.training.context import RunContext


@dataclass(frozen=True, kw_only=True)
class SimGCDConfig:
    """The published code's values; fields are what the paper leaves open or what code and paper disagree on.

    lambda_: weight of the supervised half. memax_weight: ε, the code's default; its scripts have 1, 2 or 4.
    entropy: what happens to the entropy of the mean prediction; "maximise" is the equation and the code, "minimise" the
    paper's prose. contrastive: "code" for all 2B rows (InfoNCE) and labelled rows only (SupCon), "paper" for Eqs. 1
    and 2 to the letter.
    """

    lambda_: Share = 0.35
    memax_weight: NotNegative = 2.0
    entropy: Literal["maximise", "minimise"] = "maximise"
    tau_u: Positive = 1.0
    tau_c: Positive = 0.07
    tau_s: Positive = 0.1
    teacher_start: Positive = 0.07
    teacher_end: Positive = 0.04
    teacher_warmup: Share = 0.15
    contrastive: Literal["code", "paper"] = "code"


class SimGCD(ParametricMethod):
    """Two classification and two contrastive losses, and a regulariser that spreads predictions over classes."""

    config: SimGCDConfig

    def __init__(self, config: SimGCDConfig, task: TaskInfo, ctx: RunContext) -> None:
        super().__init__(config, task, ctx)
        self.temperature = config.tau_s

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        """Eqs. 1 to 5; note that the regulariser carries the unsupervised weight, too."""
        c = self.config
        labels = batch.labels_both
        unsupervised = 1.0 - c.lambda_
        spread = c.memax_weight if c.entropy == "maximise" else -c.memax_weight
        info_nce = losses.info_nce if c.contrastive == "code" else losses.info_nce_cross_view
        supcon = losses.supcon if c.contrastive == "code" else losses.supcon_cross_view
        teacher = self.teacher_temperature(batch.epoch)
        return {
            "cls_u": unsupervised * losses.swapped_cross_entropy(batch.logits, c.tau_s, teacher),
            "memax": unsupervised * spread * losses.mean_entropy_gap(batch.logits, c.tau_s),
            "cls_s": c.lambda_ * losses.supervised_cross_entropy(batch.logits, labels, c.tau_s),
            "rep_u": unsupervised * info_nce(batch.projection, c.tau_u),
            "rep_s": c.lambda_ * supcon(batch.projection, labels, c.tau_c),
        }

    def teacher_temperature(self, epoch: int) -> float:
        """The teacher's temperature in an epoch."""
        c = self.config
        return teacher_temperature(
            epoch, self.ctx.training.epochs, start=c.teacher_start, end=c.teacher_end, warmup=c.teacher_warmup
        )

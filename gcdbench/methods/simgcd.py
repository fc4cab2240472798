"""SimGCD: parametric classification with self-distillation (Wen et al., ICCV 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from gcdbench.methods.configs import SimGCDConfig
from gcdbench.training import losses
from gcdbench.training.batch import Batch
from gcdbench.training.method import TaskInfo
from gcdbench.training.parametric import ParametricMethod
from gcdbench.training.schedules import teacher_temperature

if TYPE_CHECKING:
    from gcdbench.training.context import RunContext


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

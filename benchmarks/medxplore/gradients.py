"""How hard each loss pulls at the trained stage: the norm of its gradient there, at chosen steps of a real run.

    python -m benchmarks.medxplore.gradients --dataset kvasir [--variant NAME] [--set KEY=VALUE] [--step 0 ...]

Trains as ``gcdbench run`` does until the last of the steps and keeps nothing. Terms are weighted as in the total, so
norms can be compared with each other; ``matched`` is the share of images with at least one matched patch.
"""

from __future__ import annotations

import argparse

import torch
from gcdbench_medxplore.method import MedXplore
from torch import Tensor

from gcdbench.api import (
    Batch,
    Execution,
    Placement,
    Request,
    get_manager,
    make_context,
    make_plan,
    prepare_data,
    task_info,
)


class Enough(Exception):
    """The last step of interest is over."""


class Probe(MedXplore):
    """MedXplore that prints the gradient norms of its losses at ``steps``."""

    steps: tuple[int, ...] = (0,)

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        """The method's own terms, looked at before they are summed."""
        if batch.step > max(self.steps):
            raise Enough
        terms = super().losses(batch)
        if batch.step in self.steps:
            parameters = list(self.backbone.tail.parameters())
            norms = {}
            for name, term in terms.items():
                gradients = torch.autograd.grad(term, parameters, retain_graph=True, allow_unused=True)
                norms[name] = torch.nn.utils.get_total_norm([g for g in gradients if g is not None])
            told = "  ".join(f"{name} {float(norm):.2f}" for name, norm in norms.items())
            matched = self._figures.get("images_matched", torch.tensor(0.0))
            print(f"step {batch.step}: {told}  (matched {100 * float(matched):.0f} %)", flush=True)
        return terms


def main() -> None:
    """Parse, train until the last step, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--dataset", default="phantom")
    parser.add_argument("--preset", default="laptop")
    parser.add_argument("--variant")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--step", type=int, nargs="+", default=[0])
    options = parser.parse_args()
    manager = get_manager()
    request = Request(
        method="medxplore",
        dataset=options.dataset,
        variant=options.variant,
        preset=options.preset,
        seed=options.seed,
        overrides=dict(setting.split("=", 1) for setting in options.settings),
    )
    plan = make_plan(request, manager)
    execution = Execution(plan=plan, placement=Placement(), manager=manager)
    prepared = prepare_data(execution)
    split = prepared.split
    method = Probe(plan.config, task_info(plan, split), make_context(execution, prepared))
    method.steps = tuple(options.step)
    try:
        method.fit(split.data(prepared.store.pixels))
    except Enough:
        return


if __name__ == "__main__":
    main()

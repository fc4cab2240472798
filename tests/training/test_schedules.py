from __future__ import annotations

import numpy as np
import pytest
import torch

from gcdbench.training.schedules import cosine_lr, teacher_temperature


@pytest.mark.parametrize("epochs", [1, 2, 20, 200])
def test_cosine_is_torchs_scheduler(epochs: int) -> None:
    weight = torch.nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.SGD([weight], lr=0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=epochs, eta_min=1e-4)
    for epoch in range(epochs):
        assert cosine_lr(epoch, epochs, 0.1, 1e-4) == pytest.approx(optimiser.param_groups[0]["lr"], rel=1e-9)
        optimiser.step()
        scheduler.step()


def test_teacher_temperature_of_the_published_run_has_thirty_values() -> None:
    published = np.concatenate([np.linspace(0.07, 0.04, 30), np.full(170, 0.04)])
    ours = [teacher_temperature(e, 200, start=0.07, end=0.04, warmup=0.15) for e in range(200)]
    np.testing.assert_allclose(ours, published, rtol=1e-12)


@pytest.mark.parametrize("epochs", [1, 2, 3, 7, 20])
def test_a_short_run_has_a_monotonous_temperature(epochs: int) -> None:
    values = [teacher_temperature(e, epochs, start=0.07, end=0.04, warmup=0.15) for e in range(epochs)]
    assert all(0.04 <= after <= before <= 0.07 for before, after in zip(values, [*values[1:], 0.04], strict=True))

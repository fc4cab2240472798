"""BatchNorm of rows is torch's BatchNorm: values, gradients and running statistics."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from gcdbench.models import row_norm
from gcdbench.models.channel_major import normalise


@pytest.fixture(autouse=True, params=[1, 24, 10**6])
def group(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows one by one, in several groups of which the last is smaller, and all at once."""
    monkeypatch.setattr(row_norm, "GROUP", request.param)


def draw(*size: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize("relu6", [False, True])
def test_gradients_equal_finite_differences(relu6: bool) -> None:
    x = (4 * draw(5, 9, seed=0)).requires_grad_()
    weight, bias = (2 + draw(5, seed=1)).requires_grad_(), (3 + draw(5, seed=2)).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda *given: row_norm.normalise_rows(*given, eps=1e-3, relu6=relu6)[0], (x, weight, bias)
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("offset", [0.0, 100.0])
@pytest.mark.parametrize("size", [(1, 1, 2), (3, 4, 1), (7, 6, 2), (33, 16, 8)])
@pytest.mark.parametrize("relu6", [False, True])
def test_it_is_batch_norm(dtype: torch.dtype, offset: float, size: tuple[int, int, int], relu6: bool) -> None:
    """Against torch in float64 on (batch, channels), over two steps, so that running statistics follow."""
    norm = nn.BatchNorm2d(size[0], eps=1e-3, momentum=0.3).to(dtype)
    with torch.no_grad():
        norm.weight.copy_(1.5 + draw(size[0], seed=1).tanh())
        norm.bias.copy_(draw(size[0], seed=2))
    exact = nn.BatchNorm1d(size[0], eps=1e-3, momentum=0.3).double()
    exact.load_state_dict({key: value.double() for key, value in deepcopy(norm.state_dict()).items()})
    tolerance = {"rtol": 1e-9, "atol": 1e-9} if dtype is torch.float64 else {"rtol": 1e-3, "atol": 1e-3 + 1e-5 * offset}
    for step in (3, 4):
        x = (offset + 2 * draw(*size, seed=step)).to(dtype).requires_grad_()
        wide = x.detach().double().requires_grad_()
        towards = draw(*size, seed=step + 10)
        found = normalise(x, norm, relu6=relu6)
        expected = exact(wide.flatten(1).T).T.reshape(size)
        expected = functional.relu6(expected) if relu6 else expected
        torch.testing.assert_close(found.double(), expected, **tolerance)
        ours = torch.autograd.grad(found, (x, norm.weight, norm.bias), towards.to(dtype))
        theirs = torch.autograd.grad(expected, (wide, exact.weight, exact.bias), towards)
        for one, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one.double(), other, **tolerance)
    for key, value in exact.state_dict().items():
        torch.testing.assert_close(norm.state_dict()[key].double(), value.double(), **tolerance)
    norm.eval()
    exact.eval()
    found, expected = normalise(x, norm, relu6=relu6), exact(wide.flatten(1).T).T.reshape(size)
    torch.testing.assert_close(found.double(), expected.clamp(0, 6) if relu6 else expected, **tolerance)


def test_parameters_that_do_not_learn_get_no_gradient() -> None:
    x, weight, bias = draw(3, 8, seed=0).requires_grad_(), torch.ones(3).double(), torch.zeros(3).double()
    y, mean, variance = row_norm.normalise_rows(x, weight, bias, eps=1e-3, relu6=True)
    assert not mean.requires_grad
    assert not variance.requires_grad
    y.sum().backward()
    assert x.grad is not None
    assert weight.grad is None

"""Local variance and the activation against loops, in value and gradient, and on degenerate maps."""

from __future__ import annotations

import medxplore_loops as loops
import numpy as np
import pytest
import torch
from gcdbench_medxplore.energy import local_variance
from gcdbench_medxplore.glec import GLEC
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gcdbench.api import feature_maps

SIZES = [(1, 1), (1, 4), (2, 2), (3, 3), (4, 4), (5, 7)]


def energy(height, width, seed=0):
    return torch.randn(3, height, width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("border", ["valid", "replicate", "zeros"])
@pytest.mark.parametrize(("height", "width"), SIZES)
def test_local_variance_is_the_equation(height, width, border, ddof):
    e = energy(height, width)
    expected = loops.local_variance(e.numpy(), border, ddof)
    np.testing.assert_allclose(local_variance(e, border=border, ddof=ddof).numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("gamma", [-1.0, 0.0, 0.5, 3.0])
@pytest.mark.parametrize(("height", "width"), [size for size in SIZES if size != (1, 1)])
def test_glec_is_the_equation(height, width, gamma):
    v = local_variance(energy(height, width))
    expected = loops.glec(v.numpy(), gamma, 1e-6)
    module = GLEC(gamma=gamma).double()
    np.testing.assert_allclose(module(v).detach().numpy(), expected, atol=1e-12)


def test_gradients_of_the_whole_activation_against_finite_differences():
    e = energy(3, 4).numpy()[:1]
    weight = np.random.default_rng(0).normal(size=e.shape)

    def scalar(values):
        return float((loops.glec(loops.local_variance(values), 1.7, 1e-6) * weight).sum())

    x = torch.from_numpy(e.copy()).requires_grad_()
    module = GLEC(gamma=1.7).double()
    (module(local_variance(x)) * torch.from_numpy(weight)).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), loops.numeric_gradient(scalar, e), atol=1e-6)

    def of_gamma(gamma):
        return float((loops.glec(loops.local_variance(e), gamma[()], 1e-6) * weight).sum())

    np.testing.assert_allclose(module.gamma.grad.numpy(), loops.numeric_gradient(of_gamma, np.array(1.7)), atol=1e-6)


@pytest.mark.parametrize("value", [0.0, 0.1, -3.0, 1e3])
@pytest.mark.parametrize(("height", "width"), SIZES)
def test_a_constant_map_is_half_everywhere_with_a_finite_gradient(height, width, value):
    e = torch.full((2, height, width), value, requires_grad=True)
    module = GLEC()
    attention = module(local_variance(e))
    # float32 rounding of the mean may leave a variance of 1e-14 relative; ε absorbs it for any sane scale.
    torch.testing.assert_close(attention, torch.full_like(attention, 0.5), atol=1e-4, rtol=0)
    attention.sum().backward()
    assert torch.isfinite(e.grad).all()
    assert torch.isfinite(module.gamma.grad)


def test_a_valid_border_does_not_light_up_a_bright_flat_map():
    e = torch.full((1, 5, 5), 4.0)
    e[0, 2, 2] = 5.0
    assert local_variance(e)[0, 0, 0] == 0
    assert local_variance(e, border="zeros")[0, 0, 0] > local_variance(e)[0, 2, 2]


def test_a_valid_border_prefers_corners_next_to_a_bright_cell():
    """A finding of the ledger: one bright cell among four weighs more than among nine."""
    e = torch.zeros(1, 4, 4)
    e[0, 1, 1] = 1.0
    valid, replicate = local_variance(e), local_variance(e, border="replicate")
    assert valid.flatten().argmax() == 0
    torch.testing.assert_close(valid[0, 0, 0], torch.tensor(3 / 16))
    torch.testing.assert_close(valid[0, 1, 1], torch.tensor(8 / 81))
    torch.testing.assert_close(replicate[0, :3, :3], torch.full((3, 3), 8 / 81))


def test_a_repeated_border_counts_a_bright_corner_four_times():
    """The other side of that finding."""
    e = torch.zeros(1, 4, 4)
    e[0, 0, 0] = 1.0
    replicate = local_variance(e, border="replicate")
    torch.testing.assert_close(replicate[0, 0, 0], torch.tensor(20 / 81))
    torch.testing.assert_close(replicate[0, 1, 1], torch.tensor(8 / 81))


def test_small_contrast_on_a_large_mean_keeps_its_digits():
    e = torch.full((1, 4, 4), 1000.0)
    e[0, 1, 1] += 0.01
    expected = loops.local_variance(e.double().numpy())
    np.testing.assert_allclose(local_variance(e).numpy(), expected, rtol=1e-2, atol=1e-9)


@given(arrays(np.float64, (2, 4, 4), elements=st.floats(-100, 100)), st.floats(0.1, 10), st.floats(-50, 50))
def test_activation_is_bounded_and_ignores_shift_and_scale(e, factor, shift):
    module = GLEC(eps=0.0).double()
    v = local_variance(torch.from_numpy(e))
    assert (v >= 0).all()
    attention = GLEC().double()(v)
    assert torch.isfinite(attention).all()
    assert ((attention >= 0) & (attention <= 1)).all()
    if v.flatten(1).std(dim=1).min() > 1e-3:
        moved = module(local_variance(torch.from_numpy(e * factor + shift)))
        torch.testing.assert_close(moved, module(v), atol=1e-5, rtol=1e-5)


def test_mean_and_weighted_mean_make_the_pooled_x_out():
    x = torch.randn(3, 5, 4, 4, dtype=torch.float64)
    attention = torch.rand(3, 4, 4, dtype=torch.float64)
    out = loops.x_out(x.numpy(), attention.numpy())
    np.testing.assert_allclose(
        (x.mean((2, 3)) + feature_maps.weighted_spatial_mean(x, attention)).numpy(), out.mean((2, 3))
    )


def test_gamma_can_be_fixed():
    assert not GLEC(learn_gamma=False).gamma.requires_grad
    assert GLEC().gamma.requires_grad

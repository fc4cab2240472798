"""FAAC as a whole: the training feature against loops, in value and in every gradient, the one through A included."""

from __future__ import annotations

import medxplore_loops as loops
import numpy as np
import pytest
import torch
from gcdbench_medxplore.config import FAACConfig
from gcdbench_medxplore.faac import FAAC

GAMMA = 1.3


def build(config, channels, height, width):
    module = FAAC(config, channels, height, width, torch.Generator().manual_seed(1)).double()
    if module.activation is not None:
        with torch.no_grad():
            module.activation.gamma.fill_(GAMMA)
    return module


def reference_feature(x, real, imag, gamma, border):
    """The pooled X_out by the equations."""
    energy = loops.energy_map(loops.spectral_conv(x, real, imag))
    attention = loops.glec(loops.local_variance(energy, border), float(gamma), 1e-6)
    return loops.x_out(x, attention).mean((2, 3))


@pytest.mark.parametrize("border", ["valid", "replicate", "zeros"])
def test_the_feature_and_all_its_gradients_are_the_equations(border):
    module = build(FAACConfig(init="uniform", border=border), 2, 3, 4)
    x = np.random.default_rng(0).normal(size=(1, 2, 3, 4)) + 0.5
    weight = np.random.default_rng(1).normal(size=(1, 2))
    kernels = [kernel.detach().numpy()[:, 0].copy() for kernel in (module.filter.real, module.filter.imag)]

    leaf = torch.from_numpy(x.copy()).requires_grad_()
    feature = module.feature(leaf, leaf.mean((2, 3)), module.attention(leaf))
    np.testing.assert_allclose(feature.detach().numpy(), reference_feature(x, *kernels, GAMMA, border), atol=1e-12)
    (feature * torch.from_numpy(weight)).sum().backward()

    given = {"x": x, "real": kernels[0], "imag": kernels[1], "gamma": np.array(GAMMA)}

    def gradient(name):
        def scalar(changed):
            return float((reference_feature(**{**given, name: changed}, border=border) * weight).sum())

        return loops.numeric_gradient(scalar, given[name])

    np.testing.assert_allclose(leaf.grad.numpy(), gradient("x"), atol=1e-6)
    np.testing.assert_allclose(module.filter.real.grad.numpy()[:, 0], gradient("real"), atol=1e-6)
    np.testing.assert_allclose(module.filter.imag.grad.numpy()[:, 0], gradient("imag"), atol=1e-6)
    np.testing.assert_allclose(module.activation.gamma.grad.numpy(), gradient("gamma"), atol=1e-6)


def test_without_an_activation_the_feature_is_the_filtered_mean():
    module = build(FAACConfig(init="uniform", glec=False), 2, 3, 4)
    x = torch.randn(2, 2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    kernels = [kernel.detach().numpy()[:, 0] for kernel in (module.filter.real, module.filter.imag)]
    expected = loops.spectral_conv(x.numpy(), *kernels).mean((2, 3))
    np.testing.assert_allclose(module.feature(x, x.mean((2, 3)), None).detach().numpy(), expected, atol=1e-12)
    with pytest.raises(RuntimeError, match="no attention"):
        module.attention(x)


def test_the_feature_is_half_as_long_again_and_points_where_the_plain_one_does_on_a_flat_map():
    """A is 1/2 where nothing stands out, so X_out = 1.5 X: the projector's input changes in scale only."""
    module = build(FAACConfig(), 3, 4, 4)
    x = torch.rand(2, 3, 1, 1, dtype=torch.float64).expand(-1, -1, 4, 4)
    pooled = x.mean((2, 3))
    torch.testing.assert_close(module.feature(x, pooled, module.attention(x)), 1.5 * pooled, atol=1e-9, rtol=0)

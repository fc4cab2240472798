"""The filters against DFTs written out as sums, and their short cuts against the literal path."""

from __future__ import annotations

import medxplore_loops as loops
import numpy as np
import pytest
import torch
from gcdbench_medxplore.filtering import (
    FixedGain,
    MapFilter,
    SpectralConv,
    SpectralGain,
    build_filter,
    radial_frequency,
)

SIZES = [(1, 1), (2, 2), (3, 3), (4, 4), (4, 5), (7, 7)]


def random_map(height, width, *, batch=2, channels=3, seed=0):
    return torch.randn(batch, channels, height, width, dtype=torch.float64, generator=generator(seed))


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def random_conv(channels, **options):
    return SpectralConv(channels, init="uniform", generator=generator(1), **options).double()


def random_gain(channels, height, width):
    module = SpectralGain(channels, height, width).double()
    with torch.no_grad():
        module.gain.copy_(torch.randn(module.gain.shape, generator=generator(2), dtype=torch.float64))
    return module


@pytest.mark.parametrize("padding", ["circular", "zeros"])
@pytest.mark.parametrize(("height", "width"), SIZES)
def test_spectral_conv_is_the_equation(height, width, padding):
    x = random_map(height, width)
    module = random_conv(3, padding=padding)
    kernels = [kernel.detach().numpy()[:, 0] for kernel in (module.real, module.imag)]
    expected = loops.spectral_conv(x.numpy(), *kernels, padding)
    np.testing.assert_allclose(module(x).detach().numpy(), expected, atol=1e-12)
    np.testing.assert_allclose(module.energy(x).detach().numpy(), loops.energy_map(expected), atol=1e-12)
    np.testing.assert_allclose(module.pooled(x).detach().numpy(), expected.mean((2, 3)), atol=1e-12)


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_spectral_gain_is_the_equation(height, width):
    x = random_map(height, width)
    module = random_gain(3, height, width)
    expected = loops.spectral_gain(x.numpy(), module.gain.detach().numpy())
    np.testing.assert_allclose(module(x).detach().numpy(), expected, atol=1e-12)
    np.testing.assert_allclose(module.energy(x).detach().numpy(), loops.energy_map(expected), atol=1e-12)
    np.testing.assert_allclose(module.pooled(x).detach().numpy(), expected.mean((2, 3)), atol=1e-12)


def every_filter(height, width):
    return {
        "conv3": random_conv(4),
        "conv5": random_conv(4, kernel=5),
        "conv-zeros": random_conv(4, padding="zeros"),
        "gain": random_gain(4, height, width),
        "high": build_filter("high-pass", 4, height, width).double(),
        "low": build_filter("low-pass", 4, height, width).double(),
        "none": MapFilter(),
    }


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize(("height", "width"), [(4, 4), (5, 7), (9, 9)])
@pytest.mark.parametrize("name", ["conv3", "conv5", "conv-zeros", "gain", "high", "low", "none"])
def test_short_cuts_equal_the_literal_path_in_value_and_gradient(name, height, width, layout):
    module = every_filter(height, width)[name]
    weight_e = torch.randn(3, height, width, dtype=torch.float64, generator=generator(4))
    weight_p = torch.randn(3, 4, dtype=torch.float64, generator=generator(5))

    def gradients(short):
        x = random_map(height, width, batch=3, channels=4, seed=3).contiguous(memory_format=layout).requires_grad_()
        module.zero_grad()
        if short:
            energy, pooled = module.energy(x), module.pooled(x)
        else:
            energy, pooled = module(x).mean(1), module(x).mean((2, 3))
        ((energy * weight_e).sum() + (pooled * weight_p).sum()).backward()
        return [energy.detach(), pooled.detach(), x.grad, *(p.grad.clone() for p in module.parameters())]

    for short, literal in zip(gradients(True), gradients(False), strict=True):
        torch.testing.assert_close(short, literal, atol=1e-12, rtol=1e-10)


@pytest.mark.parametrize("name", ["spectral-conv", "spectral-gain", "none"])
def test_learnable_filters_start_as_the_identity(name):
    x = random_map(4, 4).float()
    module = build_filter(name, 3, 4, 4)
    torch.testing.assert_close(module(x), x, atol=1e-6, rtol=0)
    torch.testing.assert_close(module.energy(x), x.mean(1), atol=1e-6, rtol=0)


def test_high_and_low_pass_share_the_spectrum():
    x = random_map(7, 7)
    high, low = (build_filter(name, 3, 7, 7, cutoff=0.2).double() for name in ("high-pass", "low-pass"))
    torch.testing.assert_close(high(x) + low(x), x)
    torch.testing.assert_close(high(x).mean((2, 3)), torch.zeros(2, 3, dtype=torch.float64))
    flat = torch.full((1, 3, 7, 7), 2.5, dtype=torch.float64)
    torch.testing.assert_close(low(flat), flat)


def test_frequencies_are_those_of_numpy():
    expected = np.hypot(np.fft.fftfreq(4)[:, None], np.fft.fftfreq(5)[None, :])
    np.testing.assert_allclose(radial_frequency(4, 5).numpy(), expected, atol=1e-7)


def test_only_the_even_part_of_a_kernel_acts():
    """A finding of the ledger: the odd half of the convolution's weights is multiplied by zero."""
    module = random_conv(3)
    x = random_map(4, 4)
    before = module(x)
    with torch.no_grad():
        for kernel in (module.real, module.imag):
            kernel.copy_((kernel + kernel.flip((2, 3))) / 2)
    torch.testing.assert_close(module(x), before)


def test_gradcheck_of_both_paths():
    module = random_conv(2)
    x = random_map(3, 3, batch=1, channels=2).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda x, r, i: torch.func.functional_call(module, {"real": r, "imag": i}, (x,)), (x, module.real, module.imag)
    )
    gain = random_gain(2, 3, 3)
    assert torch.autograd.gradcheck(gain.energy, (x,))


def test_kernels_come_from_the_given_stream_only():
    state = torch.get_rng_state()
    first = build_filter("spectral-conv", 3, 4, 4, init="uniform", generator=generator(7))
    second = build_filter("spectral-conv", 3, 4, 4, init="uniform", generator=generator(7))
    assert torch.equal(first.real, second.real)
    assert not torch.equal(first.real, first.imag)
    assert torch.equal(state, torch.get_rng_state())


def test_even_kernels_are_refused_and_fixed_gains_do_not_train():
    with pytest.raises(ValueError, match="odd"):
        SpectralConv(2, kernel=4)
    assert not list(FixedGain(torch.ones(2, 2)).parameters())

"""Dynamic frequency filtering (Eq. freq_filter and freq_reconstruction) and the filters it is compared with.

Every filter is a linear map of X (B, C, H, W) to X_freq of the same shape. FAAC needs X_freq only through its
channel mean (the energy map) and its spatial mean (the pooled feature), and both have exact short cuts that never
build X_freq. ``forward`` is the literal definition; the tests hold the short cuts against it.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gcdbench.api import feature_maps
from gcdbench_medxplore.config import FilterName, KernelInit, Padding

MAX_DENSE_CELLS = 64
"""Largest map on which a gain is applied as one dense matrix for each channel instead of through the FFT."""


class MapFilter(nn.Module):
    """X_freq = X: no filter. With it FAAC's activation is plain spatial variance."""

    def forward(self, x: Tensor) -> Tensor:
        """X (B, C, H, W) -> X_freq (B, C, H, W)."""
        return x

    def energy(self, x: Tensor) -> Tensor:
        """The channel mean of X_freq, (B, H, W) (Eq. energy_map)."""
        return x.mean(dim=1)

    def pooled(self, x: Tensor) -> Tensor:
        """The spatial mean of X_freq, (B, C)."""
        return feature_maps.spatial_mean(x)


class SpectralConv(MapFilter):
    """The filter as the paper writes it: one depth-wise kernel for the real and one for the imaginary spectrum.

    With circular padding it is a spatial window, which is what the short cuts use. Let R and jI be the spectra of
    the even part Xe(n) = (X(n) + X(−n)) / 2 and the odd part Xo(n) = (X(n) − X(−n)) / 2. Correlating a spectrum
    with k[d] multiplies its map by Σ_d k[d] exp(−2πi n·d / (H, W)), of which the real part w[n] = Σ_d k[d] cos(…)
    survives. So X_freq = Xe · w_R + Xo · w_I, that is X(n) · (w_R + w_I)/2 + X(−n) · (w_R − w_I)/2.
    """

    def __init__(
        self,
        channels: int,
        *,
        kernel: int = 3,
        padding: Padding = "circular",
        init: KernelInit = "delta",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if kernel < 1 or kernel % 2 == 0:
            raise ValueError(f"the kernel of the spectral convolution must be odd, not {kernel}")
        self.kernel = kernel
        self.padding = padding
        self.real = nn.Parameter(_kernels(channels, kernel, init, generator))
        self.imag = nn.Parameter(_kernels(channels, kernel, init, generator))

    def forward(self, x: Tensor) -> Tensor:
        """FFT, depth-wise convolution of both parts, inverse FFT, real part."""
        spectrum = torch.fft.fft2(x, norm="ortho")
        real, imag = self._convolve(spectrum.real, self.real), self._convolve(spectrum.imag, self.imag)
        return _real_inverse(torch.complex(real, imag))

    def windows(self, height: int, width: int) -> tuple[Tensor, Tensor]:
        """w_R and w_I, (C, H, W) each; only defined for circular padding."""
        cosines = cosine_table(height, width, self.kernel).to(self.real)
        shape = (-1, height, width)
        return (self.real.flatten(1) @ cosines).view(shape), (self.imag.flatten(1) @ cosines).view(shape)

    def energy(self, x: Tensor) -> Tensor:
        """Two weighted channel means: one read in place, one at the mirrored cell (both windows are even)."""
        if self.padding != "circular":
            return self.forward(x).mean(dim=1)
        real, imag = self.windows(x.shape[2], x.shape[3])
        same, mirrored = feature_maps.weighted_channel_means(x, torch.stack([real + imag, real - imag]) / 2)
        energy: Tensor = same + mirror(mirrored)
        return energy

    def pooled(self, x: Tensor) -> Tensor:
        """The odd part has no spatial mean against an even window, so only w_R is left."""
        if self.padding != "circular":
            return self.forward(x).mean(dim=(2, 3))
        real, _ = self.windows(x.shape[2], x.shape[3])
        return (x * real).mean(dim=(2, 3))

    def _convolve(self, part: Tensor, weight: Tensor) -> Tensor:
        margin = self.kernel // 2
        mode = "circular" if self.padding == "circular" else "constant"
        padded = F.pad(part, (margin, margin, margin, margin), mode=mode)
        return F.conv2d(padded, weight, groups=weight.shape[0])


class SpectralGain(MapFilter):
    """A learnable gain for each channel and frequency: what the paper's prose calls a full-spectrum filter."""

    gain: Tensor

    def __init__(self, channels: int, height: int, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(channels, height, width))

    def forward(self, x: Tensor) -> Tensor:
        """Multiply the spectrum; the real part is kept, so a gain acts through its even part."""
        return _real_inverse(self.gain * torch.fft.fft2(x, norm="ortho"))

    def energy(self, x: Tensor) -> Tensor:
        """On a small map each channel's filter is a small circulant matrix, and the channel mean one product."""
        channels, height, width = self.gain.shape
        cells = height * width
        if cells > MAX_DENSE_CELLS:
            spectrum = (self.gain * torch.fft.fft2(x, norm="ortho")).mean(dim=1)
            return _real_inverse(spectrum)
        matrix = self.gain.flatten(1) @ _circulant_table(height, width).to(self.gain)
        operator = matrix.view(channels * cells, cells)
        return (feature_maps.cells(x).reshape(len(x), -1) @ operator).view(-1, height, width) / channels

    def pooled(self, x: Tensor) -> Tensor:
        """Only the gain at frequency zero reaches the spatial mean."""
        return feature_maps.spatial_mean(x) * self.gain[:, 0, 0]


class FixedGain(MapFilter):
    """The same fixed gain (H, W) for every channel: the high-pass and low-pass of the filter comparison."""

    gain: Tensor

    def __init__(self, gain: Tensor) -> None:
        super().__init__()
        self.register_buffer("gain", gain)

    def forward(self, x: Tensor) -> Tensor:
        """Multiply the spectrum."""
        return _real_inverse(self.gain * torch.fft.fft2(x, norm="ortho"))

    def energy(self, x: Tensor) -> Tensor:
        """A filter shared by all channels commutes with their mean."""
        return self.forward(x.mean(dim=1))

    def pooled(self, x: Tensor) -> Tensor:
        """Only the gain at frequency zero reaches the spatial mean."""
        return feature_maps.spatial_mean(x) * self.gain[0, 0]


def build_filter(
    name: FilterName,
    channels: int,
    height: int,
    width: int,
    *,
    kernel: int = 3,
    padding: Padding = "circular",
    init: KernelInit = "delta",
    cutoff: float = 0.25,
    generator: torch.Generator | None = None,
) -> MapFilter:
    """The filter ``name`` for maps of C × H × W."""
    match name:
        case "spectral-conv":
            return SpectralConv(channels, kernel=kernel, padding=padding, init=init, generator=generator)
        case "spectral-gain":
            return SpectralGain(channels, height, width)
        case "high-pass":
            return FixedGain((radial_frequency(height, width) > cutoff).float())
        case "low-pass":
            return FixedGain((radial_frequency(height, width) <= cutoff).float())
        case "none":
            return MapFilter()


def radial_frequency(height: int, width: int) -> Tensor:
    """(H, W): distance of each FFT bin from frequency zero, in cycles per cell (0.5 is Nyquist along an axis)."""
    return torch.hypot(torch.fft.fftfreq(height)[:, None], torch.fft.fftfreq(width)[None, :])


def cosine_table(height: int, width: int, kernel: int) -> Tensor:
    """(k·k, H·W) float64: cos(2π (i·di / H + j·dj / W)) for each kernel offset (di, dj) and cell (i, j)."""
    offsets = torch.arange(kernel, dtype=torch.float64) - kernel // 2
    rows = torch.outer(offsets, torch.arange(height, dtype=torch.float64) / height)
    columns = torch.outer(offsets, torch.arange(width, dtype=torch.float64) / width)
    phase = rows[:, None, :, None] + columns[None, :, None, :]
    return torch.cos(2 * math.pi * phase).reshape(kernel * kernel, height * width)


def mirror(maps: Tensor) -> Tensor:
    """E(−n): each cell (i, j) takes the value of cell (−i mod H, −j mod W) of a (B, H, W) map."""
    return maps.flip(dims=(1, 2)).roll(shifts=(1, 1), dims=(1, 2))


def _real_inverse(spectrum: Tensor) -> Tensor:
    """Re(F⁻¹(·)) over the last two dimensions."""
    out: Tensor = torch.fft.ifft2(spectrum, norm="ortho").real
    return out


def _circulant_table(height: int, width: int) -> Tensor:
    """(H·W, (H·W)²) float64: entry [u, m·HW + n] is cos(2π u·(n − m)) / HW, a gain's effect of cell m on cell n."""
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    cells = torch.stack([rows.flatten().double() / height, columns.flatten().double() / width])  # (2, HW)
    shift = cells[:, None, :] - cells[:, :, None]  # (2, m, n)
    frequency = torch.stack([rows.flatten(), columns.flatten()]).double()  # (2, u)
    phase = torch.einsum("au,amn->umn", frequency, shift)
    return torch.cos(2 * math.pi * phase).flatten(1) / (height * width)


def _kernels(channels: int, kernel: int, init: KernelInit, generator: torch.Generator | None) -> Tensor:
    """(C, 1, k, k): the identity, or uniform in ±1/k (a convolution layer's usual start for a fan-in of k²)."""
    if init == "delta":
        weight = torch.zeros(channels, 1, kernel, kernel)
        weight[:, :, kernel // 2, kernel // 2] = 1.0
        return weight
    return (torch.rand(channels, 1, kernel, kernel, generator=generator) * 2 - 1) / kernel

"""The paper's equations transcribed as plain float64 loops over numpy arrays, sharing no code with the plugin."""

from __future__ import annotations

import cmath
import math

import numpy as np


def dft2(x):
    """Unitary 2-d DFT of a real or complex map (H, W), by its definition."""
    h, w = x.shape
    out = np.zeros((h, w), dtype=complex)
    for u in range(h):
        for v in range(w):
            for i in range(h):
                for j in range(w):
                    out[u, v] += x[i, j] * cmath.exp(-2j * math.pi * (u * i / h + v * j / w))
    return out / math.sqrt(h * w)


def idft2(x):
    return np.conj(dft2(np.conj(x)))


def correlate(part, kernel, padding):
    """What deep-learning libraries call a convolution, on one map (H, W)."""
    h, w = part.shape
    r = kernel.shape[0] // 2
    out = np.zeros((h, w))
    for u in range(h):
        for v in range(w):
            for a in range(-r, r + 1):
                for b in range(-r, r + 1):
                    p, q = u + a, v + b
                    if padding == "circular":
                        out[u, v] += kernel[a + r, b + r] * part[p % h, q % w]
                    elif 0 <= p < h and 0 <= q < w:
                        out[u, v] += kernel[a + r, b + r] * part[p, q]
    return out


def spectral_conv(x, real, imag, padding="circular"):
    """Eq. freq_filter and freq_reconstruction: x (B, C, H, W), kernels (C, k, k)."""
    out = np.zeros_like(x)
    for b in range(x.shape[0]):
        for c in range(x.shape[1]):
            f = dft2(x[b, c])
            out[b, c] = idft2(correlate(f.real, real[c], padding) + 1j * correlate(f.imag, imag[c], padding)).real
    return out


def spectral_gain(x, gain):
    out = np.zeros_like(x)
    for b in range(x.shape[0]):
        for c in range(x.shape[1]):
            out[b, c] = idft2(dft2(x[b, c]) * gain[c]).real
    return out


def energy_map(x):
    """Eq. energy_map."""
    batch, channels, h, w = x.shape
    out = np.zeros((batch, h, w))
    for b in range(batch):
        for i in range(h):
            for j in range(w):
                out[b, i, j] = sum(x[b, c, i, j] for c in range(channels)) / channels
    return out


def local_variance(e, border="valid", ddof=0):
    """Eq. local_variance."""
    out = np.zeros_like(e)
    batch, h, w = e.shape
    for b in range(batch):
        for i in range(h):
            for j in range(w):
                values = []
                for p in range(i - 1, i + 2):
                    for q in range(j - 1, j + 2):
                        if 0 <= p < h and 0 <= q < w:
                            values.append(e[b, p, q])
                        elif border == "zeros":
                            values.append(0.0)
                        elif border == "replicate":
                            values.append(e[b, min(max(p, 0), h - 1), min(max(q, 0), w - 1)])
                mean = sum(values) / len(values)
                out[b, i, j] = sum((value - mean) ** 2 for value in values) / max(len(values) - ddof, 1)
    return out


def glec(v, gamma, eps, ddof=0):
    """Eq. glec_attention."""
    out = np.zeros_like(v)
    for b in range(v.shape[0]):
        values = [float(value) for value in v[b].ravel()]
        mean = sum(values) / len(values)
        std = math.sqrt(sum((value - mean) ** 2 for value in values) / max(len(values) - ddof, 1))
        for i in range(v.shape[1]):
            for j in range(v.shape[2]):
                out[b, i, j] = 1 / (1 + math.exp(-gamma * (v[b, i, j] - mean) / (std + eps)))
    return out


def region_means(a, grid):
    """Eq. patch_scores, left part: (B, H, W) -> (B, grid²)."""
    batch, h, w = a.shape
    dh, dw = h // grid, w // grid
    out = np.zeros((batch, grid * grid))
    for b in range(batch):
        for n in range(grid * grid):
            r, c = divmod(n, grid)
            cells = [a[b, r * dh + i, c * dw + j] for i in range(dh) for j in range(dw)]
            out[b, n] = sum(cells) / len(cells)
    return out


def top_k(scores, k):
    """Eq. patch_scores, right part: highest first, the first of equals."""
    return [sorted(range(len(row)), key=lambda n: (-row[n], n))[:k] for row in scores]


def cosine(a, b):
    dot = sum(p * q for p, q in zip(a, b, strict=True))
    return float(dot / math.sqrt(sum(p * p for p in a)) / math.sqrt(sum(q * q for q in b)))


def project(tokens, weight):
    """Tokens (B, N, C) through a linear map (D, C)."""
    out = np.zeros((*tokens.shape[:2], len(weight)))
    for b, n, d in np.ndindex(out.shape):
        out[b, n, d] = sum(weight[d, c] * tokens[b, n, c] for c in range(tokens.shape[2]))
    return out


def similarity(tokens1, tokens2, index1, index2):
    """S: tokens (B, N, D) of each view, chosen positions for each image."""
    size, k = len(index1), len(index1[0])
    out = np.zeros((size, k, k))
    for b in range(size):
        for i in range(k):
            for j in range(k):
                out[b, i, j] = cosine(tokens1[b, index1[b][i]], tokens2[b, index2[b][j]])
    return out


def mutual(s, delta):
    """Eq. mutual_nn: for each image the list of pairs (i, j)."""
    pairs = []
    for b in range(len(s)):
        found = []
        rows, columns = s[b].shape
        for i in range(rows):
            for j in range(columns):
                best_j = max(range(columns), key=lambda q: (s[b, i, q], -q))
                best_i = max(range(rows), key=lambda p: (s[b, p, j], -p))
                if best_j == j and best_i == i and s[b, i, j] >= delta:
                    found.append((i, j))
        pairs.append(found)
    return pairs


def pc_loss(s, pairs, a1, a2, eps, min_matches=1):
    """Eq. pc_loss with chosen scores a1, a2 (B, K)."""
    shares = []
    for b, found in enumerate(pairs):
        if len(found) < min_matches:
            continue
        top = sum((a1[b][i] + a2[b][j]) / 2 * (1 - s[b, i, j]) for i, j in found)
        bottom = sum((a1[b][i] + a2[b][j]) / 2 for i, j in found) + eps
        shares.append(top / bottom)
    return sum(shares) / len(shares) if shares else 0.0


def x_out(x, a):
    """Eq. weighted_feature: x (B, C, H, W), a (B, H, W)."""
    out = np.zeros_like(x)
    for b, c, i, j in np.ndindex(x.shape):
        out[b, c, i, j] = x[b, c, i, j] * a[b, i, j] + x[b, c, i, j]
    return out


def attention_confidence(a1, a2):
    """Eq. Ab: chosen scores a1, a2 (B, K)."""
    return [(sum(first) / len(first) + sum(second) / len(second)) / 2 for first, second in zip(a1, a2, strict=True)]


def match_confidence(s, pairs, a1, a2, weighted=False):
    """W_b, as the plain or the weighted mean cosine of the matched pairs; 0 without one."""
    out = []
    for b, found in enumerate(pairs):
        weights = [(a1[b][i] + a2[b][j]) / 2 if weighted else 1.0 for i, j in found]
        total = sum(weight * s[b, i, j] for weight, (i, j) in zip(weights, found, strict=True))
        out.append(total / sum(weights) if found else 0.0)
    return out


def fuse(*signals):
    """Eq. u_b: the mean of normalised signals."""
    return [sum(values) / len(values) for values in zip(*signals, strict=True)]


def gap(z, y):
    return np.array([z[b, y[b]] - max(z[b, c] for c in range(z.shape[1]) if c != y[b]) for b in range(len(z))])


def rank_percentile(values):
    n = len(values)
    if n == 1:
        return np.array([0.5])
    out = []
    for value in values:
        positions = [r for r, other in enumerate(sorted(values)) if other == value]
        out.append(sum(positions) / len(positions) / (n - 1))
    return np.array(out)


def margin_logits(z, y, m_a, m_c, scale, gate, raised=False):
    """Eq. acam_logit, θ + m stopped at π."""
    out = np.zeros_like(z)
    for b in range(z.shape[0]):
        for c in range(z.shape[1]):
            if c == y[b]:
                theta = math.acos(max(-1.0, min(1.0, z[b, c])))
                out[b, c] = scale * math.cos(min(theta + m_a[b], math.pi))
            else:
                move = m_c[b] / (1 - gate) * max(0.0, z[b, c] - gate)
                out[b, c] = scale * (z[b, c] + move if raised else z[b, c] - move)
    return out


def acam(logits, y):
    """Eq. acam."""
    total = 0.0
    for b in range(len(logits)):
        total -= logits[b, y[b]] - math.log(sum(math.exp(value) for value in logits[b]))
    return total / len(logits)


def numeric_gradient(function, x, step=1e-6):
    """Central differences of a scalar function of an array."""
    grad = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[index] += step
        down[index] -= step
        grad[index] = (function(up) - function(down)) / (2 * step)
    return grad

"""BatchNorm, ReLU6 and depth-wise filters of channel-major activations, fused; autograd around the C kernels."""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from gcdbench.models.kernels.loader import Geometry, load_kernels, pointer, share


def usable(x: Tensor, training: bool) -> bool:
    """Whether the kernels can serve this tensor: float32 on the CPU, and no gradient through fixed statistics."""
    if x.dtype != torch.float32 or x.device.type != "cpu" or load_kernels() is None:
        return False
    return training or not torch.is_grad_enabled()


def _kernels() -> ctypes.CDLL:
    kernels = load_kernels()
    assert kernels is not None
    return kernels


class _Norm(torch.autograd.Function):
    """(C, N, B) → relu6?(norm(x)); mean and variance (C,) are measured when training, given otherwise."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        gamma: Tensor,
        beta: Tensor,
        mean: Tensor,
        variance: Tensor,
        eps: float,
        mode: tuple[bool, bool],
    ) -> Tensor:
        training, relu6 = mode
        x = x.contiguous()
        out = torch.empty_like(x)
        share(
            _kernels().norm_forward,
            len(x),
            pointer(x),
            pointer(out),
            ctypes.c_int64(x.shape[1]),
            ctypes.c_int64(x.shape[2]),
            pointer(gamma),
            pointer(beta),
            pointer(mean),
            pointer(variance),
            ctypes.c_float(eps),
            int(training),
            int(relu6),
        )
        ctx.save_for_backward(x, gamma, beta, mean, variance)
        ctx.eps, ctx.relu6 = eps, relu6
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, gamma, beta, mean, variance = ctx.saved_tensors
        grad = grads[0].contiguous()
        grad_x, grad_gamma, grad_beta = torch.empty_like(x), torch.empty_like(gamma), torch.empty_like(beta)
        share(
            _kernels().norm_backward,
            len(x),
            pointer(x),
            pointer(grad),
            pointer(grad_x),
            ctypes.c_int64(x.shape[1]),
            ctypes.c_int64(x.shape[2]),
            pointer(gamma),
            pointer(beta),
            pointer(mean),
            pointer(variance),
            ctypes.c_float(ctx.eps),
            int(ctx.relu6),
            pointer(grad_gamma),
            pointer(grad_beta),
        )
        return grad_x, grad_gamma, grad_beta, None, None, None, None


class _Separable(torch.autograd.Function):
    """(C, h·w, B) → relu6(norm1(filter(relu6(norm0(x)))))."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        gamma0: Tensor,
        beta0: Tensor,
        weight: Tensor,
        gamma1: Tensor,
        beta1: Tensor,
        statistics: tuple[Tensor, Tensor, Tensor, Tensor],
        eps: tuple[float, float],
        geometry: Geometry,
        training: bool,
    ) -> Tensor:
        x, weight = x.contiguous(), weight.contiguous()
        out = x.new_empty(len(x), geometry.out_height * geometry.out_width, x.shape[2])
        mean0, variance0, mean1, variance1 = statistics
        share(
            _kernels().separable_forward,
            len(x),
            ctypes.byref(geometry),
            pointer(x),
            pointer(out),
            pointer(gamma0),
            pointer(beta0),
            pointer(mean0),
            pointer(variance0),
            pointer(weight),
            pointer(gamma1),
            pointer(beta1),
            pointer(mean1),
            pointer(variance1),
            ctypes.c_float(eps[0]),
            ctypes.c_float(eps[1]),
            int(training),
        )
        ctx.save_for_backward(x, gamma0, beta0, weight, gamma1, beta1, *statistics)
        ctx.eps, ctx.geometry = eps, geometry
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, gamma0, beta0, weight, gamma1, beta1, mean0, variance0, mean1, variance1 = ctx.saved_tensors
        grad = grads[0].contiguous()
        grad_x = torch.empty_like(x)
        grad_gamma0, grad_beta0, grad_weight, grad_gamma1, grad_beta1 = (
            torch.empty_like(value) for value in (gamma0, beta0, weight, gamma1, beta1)
        )
        share(
            _kernels().separable_backward,
            len(x),
            ctypes.byref(ctx.geometry),
            pointer(x),
            pointer(grad),
            pointer(grad_x),
            pointer(gamma0),
            pointer(beta0),
            pointer(mean0),
            pointer(variance0),
            pointer(weight),
            pointer(gamma1),
            pointer(beta1),
            pointer(mean1),
            pointer(variance1),
            ctypes.c_float(ctx.eps[0]),
            ctypes.c_float(ctx.eps[1]),
            pointer(grad_gamma0),
            pointer(grad_beta0),
            pointer(grad_weight),
            pointer(grad_gamma1),
            pointer(grad_beta1),
        )
        return grad_x, grad_gamma0, grad_beta0, grad_weight, grad_gamma1, grad_beta1, None, None, None, None


def _statistics(norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    """Room for measured statistics when training, the running ones otherwise."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    if norm.training:
        return torch.empty_like(norm.running_mean), torch.empty_like(norm.running_var)
    return norm.running_mean, norm.running_var


def _update(norm: nn.BatchNorm2d, mean: Tensor, variance: Tensor, count: int) -> None:
    """Move the running statistics towards the measured ones; the variance kept is the unbiased one, as torch does."""
    if not norm.training:
        return
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert norm.num_batches_tracked is not None
    norm.num_batches_tracked.add_(1)
    norm.running_mean.lerp_(mean, norm.momentum or 0.0)
    norm.running_var.lerp_(variance * (count / max(count - 1, 1)), norm.momentum or 0.0)


def fused_norm(x: Tensor, norm: nn.BatchNorm2d, *, relu6: bool) -> Tensor:
    """BatchNorm of (C, N, B) in ``norm``'s mode, updating its statistics, then ReLU6 where asked for."""
    mean, variance = _statistics(norm)
    out: Tensor = _Norm.apply(x, norm.weight, norm.bias, mean, variance, norm.eps, (norm.training, relu6))  # type: ignore[no-untyped-call]
    _update(norm, mean, variance, x.shape[1] * x.shape[2])
    return out


def fused_separable(
    x: Tensor, before: nn.BatchNorm2d, weight: Tensor, after: nn.BatchNorm2d, geometry: Geometry
) -> Tensor:
    """relu6(after(filter(relu6(before(x))))) of (C, h·w, B) with depth-wise ``weight`` (C, 1, k, k)."""
    first, second = _statistics(before), _statistics(after)
    out: Tensor = _Separable.apply(  # type: ignore[no-untyped-call]
        x,
        before.weight,
        before.bias,
        weight,
        after.weight,
        after.bias,
        (*first, *second),
        (before.eps, after.eps),
        geometry,
        before.training,
    )
    _update(before, *first, x.shape[1] * x.shape[2])
    _update(after, *second, out.shape[1] * out.shape[2])
    return out

"""Matrix products by the faster of the two libraries that torch brings.

torch multiplies float32 matrices with its BLAS library. Where that is MKL it leaves the wide vector units of other
makers' processors idle: on an AMD EPYC with AVX-512 oneDNN, which torch uses for convolutions, is more than twice as
fast. Which of the two is faster here is measured once, in some milliseconds, and remembered in the cache, so that all
processes on a machine choose alike. Up to rounding the results are the same; what was used is part of a run's numerics.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from gcdbench.core.errors import ConfigError
from gcdbench.core.machine import memory_file, recall, remember
from gcdbench.core.places import cache_dir
from gcdbench.models.short_cuts import short_cuts_serve

Library = Literal["blas", "onednn"]
Multiply = Callable[[Tensor, Tensor], Tensor]

VARIABLE = "GCDBENCH_PRODUCTS"
"""Environment variable: ``blas`` or ``onednn`` instead of the faster of the two."""

GAIN = 1.3
"""How many times as fast oneDNN has to be. Elsewhere the two are about equal, and chance must not decide."""

SMALLEST = 2**21
"""Multiplications from which a product of a batch is worth a call of its own."""

PROBE, REPEATS = 512, 5


def onednn_multiply(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
    """(m, k) · (k, n) + (n) by oneDNN, or (b, m, k) · (b, k, n); either may lie in memory by rows or by columns."""
    if left.ndim == 3:
        return torch.stack([onednn_multiply(one, other) for one, other in zip(left, right, strict=True)])
    product: Tensor = torch.ops.mkldnn._linear_pointwise(left, right.t(), bias, "none", [], "")
    return product


MULTIPLY: dict[Library, Multiply] = {"blas": torch.mm, "onednn": onednn_multiply}


@lru_cache(maxsize=1)
def product_library() -> Library:
    """The library for products of float32 matrices in this process."""
    asked = os.environ.get(VARIABLE)
    if asked == "blas" or not _onednn_works():
        return "blas"
    if asked == "onednn":
        return "onednn"
    if asked:
        raise ConfigError(f"{VARIABLE} is {asked!r}.", hint="It can be blas or onednn; without it the faster is used.")
    return "onednn" if _recall_gain() >= GAIN else "blas"


def _recall_gain() -> float:
    """The gain that was measured first on this machine: close to GAIN chance would decide anew in every process."""
    file = memory_file(cache_dir(), {"products of torch": torch.__version__})
    if (known := _read_gain(file)) is not None:
        return known
    measured = measure_gain()
    if (known := _read_gain(file)) is not None:  # another process was first
        return known
    remember(file, {"gain": measured})
    return measured


def _read_gain(file: Path) -> float | None:
    gain = recall(file).get("gain")
    return gain if isinstance(gain, float) else None


def _onednn_works() -> bool:
    """Whether this torch has the operator and it multiplies."""
    left, right = torch.arange(6.0).view(2, 3), torch.arange(12.0).view(3, 4)
    try:
        return torch.equal(onednn_multiply(left, right), torch.mm(left, right))
    except (AttributeError, RuntimeError, TypeError):  # no such operator, or one that takes other arguments
        return False


def measure_gain() -> float:
    """How many times as fast as the BLAS library oneDNN is, in one thread, by processor time: others may be at work."""
    left, right = torch.ones(PROBE, PROBE), torch.ones(PROBE, PROBE)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    best = dict.fromkeys(MULTIPLY, float("inf"))
    try:
        for _ in range(REPEATS):
            for library, multiply in MULTIPLY.items():
                started = time.thread_time()
                multiply(left, right)
                best[library] = min(best[library], time.thread_time() - started)
    finally:
        torch.set_num_threads(threads)
    return best["blas"] / max(best["onednn"], 1e-9)


def product(left: Tensor, right: Tensor) -> Tensor:
    """(m, k) · (k, n) or (b, m, k) · (b, k, n) with gradients; ``torch.matmul`` up to rounding."""
    if not _serves(left, right):
        return torch.matmul(left, right)
    return _apply(left, right)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """(R, C) and weight (O, C) to (R, O) with gradients; ``torch.nn.functional.linear`` up to rounding."""
    if not _serves(x, weight):
        return torch.nn.functional.linear(x, weight, bias)
    # Rows that lie apart, as class tokens do among all tokens, make the weight's gradient many times slower.
    return _apply(x.contiguous(), weight.t(), bias)


class FastLinear(nn.Linear):
    """``torch.nn.Linear`` by :func:`linear`, for inputs of any rank."""

    def forward(self, x: Tensor) -> Tensor:
        if not short_cuts_serve(x):
            return super().forward(x)
        return linear(x.reshape(-1, self.in_features), self.weight, self.bias).view(*x.shape[:-1], self.out_features)


def speed_up_linear_layers(network: nn.Module) -> None:
    """Make every plain linear layer of somebody else's network a :class:`FastLinear`; its parameters stay in place."""
    for module in network.modules():
        if type(module) is nn.Linear:
            module.__class__ = FastLinear


def products_key(network: nn.Module, *, trained_stage: bool) -> str:
    """What decides the last bits of a network's products; "" where torch's own code makes them.

    A frozen prefix has products of its own only in linear layers. A trained stage may have them anywhere.
    """
    own = trained_stage or any(isinstance(module, FastLinear) for module in network.modules())
    return product_library() if own and product_library() != "blas" else ""


def _serves(left: Tensor, right: Tensor) -> bool:
    if not left.dtype == right.dtype == torch.float32 or not short_cuts_serve(left):
        return False
    rows, terms, columns = left.shape[-2], left.shape[-1], right.shape[-1]
    smallest = SMALLEST if left.ndim == 3 else 1
    return rows * terms * columns >= smallest and product_library() == "onednn"


def _apply(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
    out: Tensor = _Product.apply(left, right, bias)  # type: ignore[no-untyped-call]
    return out


class _Product(torch.autograd.Function):
    """oneDNN's product, and products as its gradients."""

    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(left, right)
        return onednn_multiply(left, right, bias)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        (grad,) = grads
        left, right = ctx.saved_tensors
        wanted_left, wanted_right, wanted_bias = ctx.needs_input_grad
        to_left = product(grad, right.mT) if wanted_left else None
        to_bias = grad.sum(dim=0) if wanted_bias else None
        if not wanted_right:
            return to_left, None, to_bias
        # In the memory order of ``right``, so that the gradient of a transposed weight is not transposed again.
        by_rows = right.is_contiguous()
        return to_left, product(left.mT, grad) if by_rows else product(grad.mT, left).mT, to_bias

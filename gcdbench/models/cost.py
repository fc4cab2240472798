"""What a trained model costs at test time: parameters, FLOPs, latency, memory.

Measured on the path an image takes at inference: backbone, pooled feature, head. What a method
used in training only is not on that path, so it costs nothing here.
"""

from __future__ import annotations

import copy
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from gcdbench.core.errors import GCDBenchError
from gcdbench.models.backbone import Backbone

WARM_UP = 3


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Cost of inference.

    parameters, trained_parameters: numbers of weights, and how many of them training changed.
    flops: for one image; a multiplication and an addition count as two.
    latency_ms: median time of one image; images_per_s: with ``batch`` images at once.
    weights_mb, activations_mb: memory of the weights, and the highest memory of tensors while one image passes;
    the latter is None where it cannot be measured.
    """

    image_size: int
    parameters: int
    trained_parameters: int
    flops: int
    latency_ms: float
    images_per_s: float
    batch: int
    weights_mb: float
    activations_mb: float | None
    device: str
    threads: int


class InferencePath(nn.Module):
    """From a standardised image to its logits, or to its feature where there is no head."""

    def __init__(self, backbone: Backbone, head: nn.Module | None) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head

    def forward(self, images: Tensor) -> Tensor:
        """(B, 3, S, S) -> (B, K) or (B, C)."""
        pooled = self.backbone.run_tail(self.backbone.prefix(images)).pooled
        if self.head is None:
            return pooled
        logits: Tensor = self.head(pooled)
        return logits


def measure_cost(
    path: InferencePath, image_size: int, *, batch: int = 32, repeats: int = 20, trained: bool = True
) -> Cost:
    """Measure an inference path on the device it is on; ``trained`` False for the frozen network as it came."""
    path.eval()
    parameter = next(path.parameters())
    device = parameter.device
    one = torch.zeros(1, 3, image_size, image_size, device=device, dtype=parameter.dtype)
    many = one.expand(batch, -1, -1, -1).contiguous()
    changed = [module for module in (path.backbone.tail, path.head) if trained and module is not None]
    with torch.no_grad():
        latency = _median_seconds(lambda: path(one), repeats, device)
        throughput = batch / _median_seconds(lambda: path(many), max(repeats // 4, 3), device)
        activations = _peak_bytes(lambda: path(one), device)
    return Cost(
        image_size=image_size,
        parameters=count_parameters(path),
        trained_parameters=sum(count_parameters(module) for module in changed),
        flops=count_flops(path, image_size),
        latency_ms=1000 * latency,
        images_per_s=throughput,
        batch=batch,
        weights_mb=sum(t.numel() * t.element_size() for t in (*path.parameters(), *path.buffers())) / 1e6,
        activations_mb=None if activations is None else activations / 1e6,
        device=str(device),
        threads=torch.get_num_threads(),
    )


def count_parameters(module: nn.Module) -> int:
    """Number of weights."""
    return sum(parameter.numel() for parameter in module.parameters())


def count_flops(path: nn.Module, image_size: int) -> int:
    """FLOPs of one image, counted on tensors without content.

    There every layer runs as the plain operation it is; on the CPU some are replaced by faster kernels that the
    counter does not see, and the count would depend on whether a compiler was found.
    """
    shapes = copy.deepcopy(path).to("meta")
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        shapes(torch.zeros(1, 3, image_size, image_size, device="meta"))
    return int(counter.get_total_flops())


def _median_seconds(call: Callable[[], Any], repeats: int, device: torch.device) -> float:
    times = []
    for repeat in range(WARM_UP + repeats):
        began = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        if repeat >= WARM_UP:
            times.append(time.perf_counter() - began)
    return statistics.median(times)


def _peak_bytes(call: Callable[[], Any], device: torch.device) -> int | None:
    """Highest number of bytes that tensors made during ``call`` held at once."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        call()
        return int(torch.cuda.max_memory_allocated(device) - before)
    try:
        from torch._C._profiler import _EventType
    except ImportError:  # not part of torch's promised interface
        return None
    # The recorder announces itself on stderr unless told otherwise before its first use.
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorder:
        call()
    results = getattr(recorder.profiler, "kineto_results", None)
    if results is None:
        return None
    sizes: list[tuple[int, int]] = []
    pending = list(results.experimental_event_tree())
    while pending:
        event = pending.pop()
        pending += event.children
        if event.tag == _EventType.Allocation:
            sizes.append((event.start_time_ns, event.extra_fields.alloc_size))
    held = peak = 0
    for _, size in sorted(sizes, key=lambda item: item[0]):
        held += size
        peak = max(peak, held)
    return peak


def require_backbone(name: object) -> str:
    """The run's backbone; a method without one has no network to measure."""
    if not name or name == "none":
        raise GCDBenchError("This run's method uses no network: there is nothing to measure.")
    return str(name)

"""Several processes, one run: the global batch is split over ranks, the losses are computed on the gathered batch.

Every rank gathers the outputs of all ranks and computes the same loss. The backward pass of a gather hands each rank
the gradient of its own rows, times the world size; the gradients of all parameters are then averaged. A parameter
used before the gather (backbone, heads) and one used after it (a module inside a loss) both end with exactly the
gradient a single process would have, BatchNorm's per-rank statistics apart.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from gcdbench.core.errors import PeerLost


@dataclass(frozen=True)
class World:
    """This process among its peers."""

    rank: int
    size: int

    @property
    def main(self) -> bool:
        """Whether this process writes files and speaks."""
        return self.rank == 0


def world() -> World:
    """The world this process is in; a single process is a world of one."""
    if dist.is_available() and dist.is_initialized():
        return World(dist.get_rank(), dist.get_world_size())
    return World(0, 1)


@contextmanager
def process_group(device: str = "cpu") -> Iterator[World]:
    """Join the processes that ``torchrun`` started, if it did; leave them in an orderly way."""
    if int(os.environ.get("WORLD_SIZE", "1")) <= 1 or dist.is_initialized():
        yield world()
        return
    if device.startswith("cuda"):
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    try:
        yield world()
        # Without it a process that ends early takes the sockets its peers still read from.
        dist.barrier()
    finally:
        dist.destroy_process_group()


@contextmanager
def _among_peers() -> Iterator[None]:
    """A message that cannot be passed means that another process of the run is gone; that is not this one's fault."""
    try:
        yield
    except RuntimeError as error:
        raise PeerLost(
            "Another process of this run has ended, so it cannot continue "
            f"({str(error).strip().splitlines()[0][:200]}).",
            hint="Start all processes again: the run continues from its checkpoint.",
        ) from error


class _Gather(torch.autograd.Function):
    """(r, ...) on each rank -> (world · r, ...) on all of them."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        parts = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
        with _among_peers():
            dist.all_gather(parts, rows.contiguous())
        ctx.rows = len(rows)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        start = dist.get_rank() * ctx.rows
        return gradients[0][start : start + ctx.rows] * dist.get_world_size()


def gather_rows(rows: Tensor) -> Tensor:
    """Rows of all ranks in rank order, with gradient; the tensor itself in a single process."""
    if world().size == 1:
        return rows
    gathered: Tensor = _Gather.apply(rows.contiguous())  # type: ignore[no-untyped-call]
    return gathered


def gather_views(rows: Tensor) -> Tensor:
    """As :func:`gather_rows` for two views: view 1 of all images, then view 2 of all images."""
    size = world().size
    if size == 1:
        return rows
    by_rank = gather_rows(rows).reshape(size, 2, len(rows) // 2, *rows.shape[1:])
    return by_rank.transpose(0, 1).reshape(size * len(rows), *rows.shape[1:])


def average_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Replace each gradient by its mean over ranks, in one message."""
    size = world().size
    if size == 1:
        return
    gradients = [p.grad for p in parameters if p.grad is not None]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    with _among_peers():
        dist.all_reduce(flat)
    flat /= size
    for gradient, mean in zip(gradients, torch.split(flat, [g.numel() for g in gradients]), strict=True):
        gradient.copy_(mean.view(gradient.shape))


def broadcast_modules(modules: Iterable[nn.Module]) -> None:
    """Give every rank the parameters and buffers (BatchNorm's statistics) of rank 0."""
    if world().size == 1:
        return
    with torch.no_grad(), _among_peers():
        for module in modules:
            for tensor in (*module.parameters(), *module.buffers()):
                # A collective wants dense memory; a channels-last weight goes through a copy.
                dense = tensor.contiguous()
                dist.broadcast(dense, src=0)
                tensor.copy_(dense)


def gather_objects(value: Any) -> list[Any]:
    """The value of each rank, in rank order, on all of them."""
    size = world().size
    if size == 1:
        return [value]
    values: list[Any] = [None] * size
    with _among_peers():
        dist.all_gather_object(values, value)
    return values


def wait_for_all() -> None:
    """Barrier; nothing in a single process."""
    if world().size > 1:
        with _among_peers():
            dist.barrier()

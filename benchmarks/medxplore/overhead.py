"""Time of a training step of MedXplore as a multiple of SimGCD's, both in one process, steps interleaved.

    python -m benchmarks.medxplore.overhead [--variant NAME ...] [--image-size 128] [--threads 1]

The network's input is random: what is timed is the trained tail, the heads, the losses, the backward pass and the
optimiser, exactly as the engine runs them. Interleaving and the median keep other work on the machine out of the ratio.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from gcdbench_medxplore.config import MedXploreConfig
from gcdbench_medxplore.method import MedXplore
from gcdbench_medxplore.variants import VARIANTS

from gcdbench.api import RunContext, SimGCD, SimGCDConfig, TaskInfo, apply_overrides, get_manager, make_optimiser


def make_step(method: SimGCD, batch_size: int, image_size: int) -> Callable[[], None]:
    """A function that takes one training step on random prefix outputs."""
    method.backbone = method.ctx.backbone
    method._build(8)
    with torch.no_grad():
        sample = method.backbone.prefix(torch.zeros(1, 3, image_size, image_size))
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(2 * batch_size, *sample.shape[1:], generator=generator)
    hidden = hidden.contiguous(memory_format=torch.channels_last)
    ids = torch.arange(batch_size)
    labels = torch.where(ids % 2 == 0, ids % 4, -1)
    modules = method.trained_modules().values()
    optimiser = make_optimiser(modules, method.ctx.training)
    method.backbone.train()

    def step() -> None:
        batch = method.forward(hidden, ids, labels, progress=0.5, epoch=0, step=0)
        total = torch.stack(list(method.losses(batch).values())).sum()
        optimiser.zero_grad()
        total.backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    return step


def main() -> None:
    """Parse, time, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--variant", action="append", help="variant to time (default: the full method and its parts)")
    parser.add_argument("--backbone", default="efficientnet-lite0")
    parser.add_argument("--image-size", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    manager = get_manager()
    spec = manager.get("backbones", options.backbone)
    task = TaskInfo(k_old=4, k=8, image_size=options.image_size)

    def context() -> RunContext:
        return RunContext(seed=0, image_size=options.image_size, load_backbone=lambda: spec.load()(None))

    names = options.variant or ["faac+acam", "filter+glec", "faac", "acam", "spectral-gain", "baseline"]
    steps = {"simgcd": make_step(SimGCD(SimGCDConfig(), task, context()), options.batch_size, options.image_size)}
    for name in names:
        settings = {key: value for key, value in VARIANTS[name].items() if key != "image_size"}
        method = MedXplore(apply_overrides(MedXploreConfig(), settings), task, context())
        steps[name] = make_step(method, options.batch_size, options.image_size)
    # On one thread processor time is the step's own, whatever else the machine is doing.
    clock = time.process_time if options.threads == 1 else time.perf_counter
    times: dict[str, list[float]] = {name: [] for name in steps}
    for repeat in range(options.repeats + 2):
        for name, step in steps.items():
            began = clock()
            step()
            if repeat >= 2:  # the first steps allocate
                times[name].append(clock() - began)
    base = times["simgcd"]
    print(f"{options.backbone}, {options.image_size} px, batch {options.batch_size}, {options.threads} thread(s)")
    for name, seconds in times.items():
        ratio = statistics.median(own / other for own, other in zip(seconds, base, strict=True))
        print(f"{name:16} {1000 * statistics.median(seconds):8.1f} ms per step   {ratio:5.2f} x SimGCD")


if __name__ == "__main__":
    main()

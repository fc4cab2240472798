"""``gcdbench cost``: what a run's model costs at test time."""

from __future__ import annotations

from pathlib import Path

import click

from gcdbench.cli.echo import say
from gcdbench.cli.options import echo_json, json_option, runs_option


@click.command("cost")
@click.argument("run", nargs=-1, required=True)
@click.option("--batch", default=32, show_default=True, type=click.IntRange(1), help="Images at once for throughput.")
@click.option("--repeats", default=20, show_default=True, type=click.IntRange(1), help="Timed passes.")
@click.option("--device", default="cpu", show_default=True, help="Device to measure on.")
@click.option("--threads", default=None, type=click.IntRange(1), help="CPU threads.")
@runs_option
@json_option
def command(
    run: tuple[str, ...], batch: int, repeats: int, device: str, threads: int | None, runs: Path, as_json: bool
) -> None:
    """Measure parameters, FLOPs, latency and peak memory of RUN's model at inference.

    The saved model alone is measured: the method's plugin is not needed, and what it used in training costs nothing.
    """
    from dataclasses import asdict

    import torch

    from gcdbench.models.card_file import card_path
    from gcdbench.models.cost import InferencePath, measure_cost, require_backbone
    from gcdbench.models.predict import load_model
    from gcdbench.plugins.manager import get_manager
    from gcdbench.reporting.explain.restore import run_context
    from gcdbench.runs.directory import RunDirectory
    from gcdbench.runs.environment import require_device
    from gcdbench.runs.index import find_run

    require_device(device)
    if threads is not None:
        torch.set_num_threads(threads)
    rows = []
    for name in run:
        record = RunDirectory(find_run(runs, name)).record()
        backbone_name = require_backbone(record.backbone)
        ctx = run_context(record, get_manager(), device=device)
        saved, trained = card_path(record.home).exists(), False
        if saved:
            model = load_model(record.home, load_backbone=lambda ctx=ctx: ctx.backbone, device=device)  # type: ignore[misc]
            path, trained = InferencePath(model.backbone, model.head), model.card.tail == "trained"
        else:
            path = InferencePath(ctx.backbone, None)
        cost = measure_cost(path.to(device), record.image_size, batch=batch, repeats=repeats, trained=trained)
        rows.append({"run": record.run_id, "method": record.method, "backbone": backbone_name, **asdict(cost)})
        if not saved:
            rows[-1]["note"] = "no saved model: the frozen backbone alone, without clustering"
    if as_json:
        echo_json(rows)
        return
    for row in rows:
        activations = "not measured" if row["activations_mb"] is None else f"{row['activations_mb']:.1f} MB"
        say(f"{row['method']} (run {row['run'][:8]}), {row['backbone']}, {row['image_size']} px")
        say(f"  parameters   {row['parameters']:,}  (trained: {row['trained_parameters']:,})")
        say(f"  FLOPs        {row['flops'] / 1e9:.3f} G per image")
        say(
            f"  latency      {row['latency_ms']:.1f} ms per image, {row['images_per_s']:.0f} images/s "
            f"in batches of {row['batch']} ({row['device']}, {row['threads']} thread(s))"
        )
        say(f"  peak memory  {activations} activations, {row['weights_mb']:.1f} MB weights")
        if "note" in row:
            say(f"  note         {row['note']}")

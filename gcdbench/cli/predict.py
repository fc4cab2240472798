"""``gcdbench predict``: a run's model on new images."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import click

from gcdbench.cli.echo import say
from gcdbench.cli.options import echo_json, json_option, runs_option


@click.command("predict")
@click.argument("model")
@click.argument("paths", nargs=-1, required=True)
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, dir_okay=False), default=None, help="CSV file (default: print it)."
)
@click.option("--skip-unreadable", is_flag=True, help="Leave out images that cannot be read, and name them.")
@click.option("--device", default="cpu", show_default=True, help="Device to predict on.")
@click.option("--threads", default=None, type=click.IntRange(1), help="CPU threads.")
@click.option("--workers", default=None, type=click.IntRange(1), help="Threads for decoding.")
@click.option("--weights", default=None, help="The backbone's weight file, where it is not the published one.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@runs_option
@json_option
def command(
    model: str,
    paths: tuple[str, ...],
    out: Path | None,
    skip_unreadable: bool,
    device: str,
    threads: int | None,
    workers: int | None,
    weights: str | None,
    quiet: bool,
    runs: Path,
    as_json: bool,
) -> None:
    """Predict images with the model of a run, or of a folder with model.json.

    PATHS are files, folders (searched to any depth) or patterns in quotation marks. The CSV has a row for each image:
    its cluster and the cluster's name, whether that is a known class or a new one, the confidence, the known class it
    resembles most with the likeness (a cosine), and whether it is unlike everything the model has seen.
    """
    import time
    from collections import Counter

    import torch

    from gcdbench.cli.progress import ProgressDisplay
    from gcdbench.core.errors import ConfigError
    from gcdbench.models.predictions import CsvWriter
    from gcdbench.runs.environment import require_device
    from gcdbench.runs.events import Progress
    from gcdbench.runs.saved_models import open_model

    if as_json and out is None:
        raise ConfigError(
            "--json prints a summary to the terminal, where the predictions would go as well.",
            hint="Give a file with --out.",
        )
    require_device(device)
    if threads is not None:
        torch.set_num_threads(threads)
    loaded = open_model(model, runs, weights=weights, device=device)
    stream, total = loaded.stream(list(paths), unreadable="skip" if skip_unreadable else "stop", workers=workers)
    found: Counter[str] = Counter()
    unlike = 0
    unreadable: list[tuple[str, str]] = []
    began = time.perf_counter()
    with _target(out) as file, ProgressDisplay(quiet=quiet) as show:
        writer = CsvWriter(file)
        for part in stream:
            writer.write(part)
            found.update(part.name)
            unlike += int(part.unlike.sum())
            unreadable += part.unreadable
            done = found.total() + len(unreadable)
            show(Progress(task="predicting images", done=done, total=total or done))
    seconds = time.perf_counter() - began
    summary = {
        "images": found.total(),
        "names": dict(found.most_common()),
        "unlike": unlike if loaded.card.unlikeness else None,
        "unreadable": [{"path": path, "reason": reason} for path, reason in unreadable],
        "seconds": round(seconds, 2),
        "images_per_s": round(found.total() / max(seconds, 1e-9), 1),
    }
    if as_json:
        echo_json(summary)
        return
    for path, reason in unreadable:
        say(f"left out: {path} ({reason})", err=True)
    if quiet:
        return
    for name, count in found.most_common():
        say(f"{count:6d}  {name}", err=True)
    told = f"{unlike} of them unlike everything the model has seen" if loaded.card.unlikeness else "likeness not known"
    say(f"{found.total()} images in {seconds:.1f} s ({summary['images_per_s']} per second), {told}.", err=True)
    if out is not None:
        say(f"Written to {out}. It contains the names of your files: think before you pass it on.", err=True)


@contextmanager
def _target(out: Path | None) -> Iterator[TextIO]:
    """The file, or standard output, which stays open."""
    from gcdbench.models.predictions import open_whole

    if out is None:
        yield sys.stdout
        return
    with open_whole(out) as file:
        yield file

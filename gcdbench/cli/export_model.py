"""``gcdbench export-model``: a run's model as an ONNX file."""

from __future__ import annotations

from pathlib import Path

import click

from gcdbench.cli.echo import say
from gcdbench.cli.options import echo_json, json_option, runs_option


@click.command("export-model")
@click.argument("model")
@click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The file to write.")
@click.option(
    "--check",
    multiple=True,
    metavar="PATH",
    help="Images, a folder or a pattern to compare the file with our own prediction on (default: made images). May be "
    "repeated.",
)
@click.option("--check-images", type=click.IntRange(1), default=None, help="Compare at most this many of them.")
@click.option("--weights", default=None, help="The backbone's weight file, where it is not the published one.")
@runs_option
@json_option
def command(
    model: str,
    out: Path,
    check: tuple[str, ...],
    check_images: int | None,
    weights: str | None,
    runs: Path,
    as_json: bool,
) -> None:
    """Write the model of a run, or of a folder with model.json, as ONNX: network, head, names and preprocessing.

    Before the file gets its name, onnxruntime predicts with it and must agree with gcdbench.
    """
    from gcdbench.models.image_inputs import choose_evenly
    from gcdbench.models.onnx_export import export_onnx
    from gcdbench.runs.saved_models import open_model

    images = choose_evenly(check, check_images) if check else None
    agreement = export_onnx(open_model(model, runs, weights=weights), out, images=images)
    if as_json:
        echo_json(
            {
                "file": str(out),
                "bytes": out.stat().st_size,
                "images": agreement.images,
                "other_clusters": agreement.other_clusters,
                "largest_difference": agreement.largest_difference,
            }
        )
        return
    say(
        f"{out}: {out.stat().st_size / 1e6:.1f} MB. onnxruntime and gcdbench agree on {agreement.images} images: "
        f"{agreement.other_clusters} other clusters, confidences differ by at most {agreement.largest_difference:.1e}."
    )

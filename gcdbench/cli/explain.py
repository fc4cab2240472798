"""``gcdbench explain``: where a trained model looks, and what it confuses."""

from __future__ import annotations

from pathlib import Path

import click

from gcdbench.cli.echo import say
from gcdbench.cli.options import data_root_option, echo_json, json_option, runs_option


@click.command("explain")
@click.argument("run", nargs=-1, required=True)
@click.option("--images", "image_ids", default="", help="Ids of images to draw, separated by commas.")
@click.option(
    "--count",
    type=click.IntRange(min=0),
    default=8,
    show_default=True,
    help="Images to draw: the most confidently wrong ones.",
)
@click.option(
    "--on",
    "which",
    type=click.Choice(["transductive", "inductive"]),
    default="transductive",
    show_default=True,
    help="Evaluation set: the unlabelled images, or the test part.",
)
@click.option("--dataset", "dataset_name", default=None, help="Score maps against the masks of this dataset instead.")
@click.option("--dataset-set", multiple=True, metavar="KEY=VALUE", help="Option of the dataset given by --dataset.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=None, help="Where pictures go.")
@runs_option
@data_root_option
@json_option
def command(
    run: tuple[str, ...],
    image_ids: str,
    count: int,
    which: str,
    dataset_name: str | None,
    dataset_set: tuple[str, ...],
    out: Path | None,
    runs: Path,
    data_root: Path | None,
    as_json: bool,
) -> None:
    """Draw attention maps of RUN and score them against lesion masks; several RUNs are compared in one figure.

    Maps are the method's own attention where it has one, and the plain energy of its features. Without masks the
    images are drawn all the same.
    """
    import numpy as np

    from gcdbench.core.config import parse_assignment
    from gcdbench.core.errors import ConfigError
    from gcdbench.core.files import write_json
    from gcdbench.plugins.manager import get_manager
    from gcdbench.reporting.explain.explanation import (
        Explanation,
        compare_maps,
        explain_run,
        summarise,
    )
    from gcdbench.reporting.explain.images import open_images, require_same_images
    from gcdbench.reporting.explain.restore import restore
    from gcdbench.runs.directory import RunDirectory
    from gcdbench.runs.index import find_run
    from gcdbench.runs.predictions import load_predictions

    wanted = _parse_ids(image_ids)
    if wanted and dataset_name is not None:
        raise ConfigError("--images names images of the run's own dataset: leave --dataset out.")
    manager = get_manager()
    trained = [restore(RunDirectory(find_run(runs, name)), manager) for name in run]
    first = trained[0]
    sizes = {item.record.image_size for item in trained}
    if len(sizes) > 1:
        raise ConfigError(f"The runs have different image sizes ({', '.join(map(str, sorted(sizes)))}).")
    out = out or Path("explain") / first.record.run_id
    options = dict(parse_assignment(text) for text in dataset_set)
    if options and dataset_name is None:
        raise ConfigError("--dataset-set needs --dataset: the run's own dataset has the options it was made with.")
    own = open_images(
        first.dataset_text if dataset_name is None else dataset_name,
        manager,
        image_size=first.record.image_size,
        options=first.record.dataset_options if dataset_name is None else options,
        data_root=data_root,
    )
    if not own.has_masks and (dataset_name is not None or len(trained) > 1):
        raise ConfigError(
            f"The dataset '{own.source.card.name}' has no lesion masks, so there is nothing to score or compare.",
            hint="Without masks one run is explained, on its own dataset.",
        )
    result = Explanation(notes=[item.note for item in trained if item.note])
    if dataset_name is None:
        for item in trained:
            require_same_images(own, item.record.images)
            if item.record.split_sha256 != first.record.split_sha256:
                result.notes.append(
                    f"{item.name} (run {item.record.run_id[:8]}) has another split than the first run: "
                    "some of the images that are scored may have been labelled for it."
                )
        scored = load_predictions(first.record, which)
        found = explain_run(first, own, scored, out, wanted=wanted, count=count)
        result = Explanation(files=found.files, pairs=found.pairs, notes=[*result.notes, *found.notes])
        ids = scored.ids
    else:
        ids = np.arange(len(own.store), dtype=np.int64)
    masks = own.masks(ids) if own.has_masks else None
    if masks is not None and masks.any():
        scores, figure = compare_maps(trained, own, ids, masks, out)
        result.localisation.update(scores)
        result.files.append(figure)
    else:
        lack = "has no lesion masks" if masks is None else "shows no lesion in these images"
        result.notes.append(f"The dataset '{own.source.card.name}' {lack}: maps are not scored.")
    result.files.append(out / "explanation.json")
    write_json(result.files[-1], summarise(result))
    if as_json:
        echo_json({"files": [str(path) for path in result.files], **summarise(result)})
        return
    for label, maps in result.localisation.items():
        for name, score in maps.items():
            say(
                f"{label:<28} {name:<18} pointing game {score.pointing:5.1f} %   "
                f"energy inside {score.energy_inside:5.1f} %   (lesion area {score.area:.1f} %, n = {score.n})"
            )
    for pair in result.pairs:
        say(
            f"{pair['old']} (old) / {pair['new']} (new): "
            f"{pair['old_as_new']} old taken for new, {pair['new_as_old']} new taken for old"
        )
    for note in result.notes:
        say(note)
    say(f"{len(result.files)} file(s) in {out}")


def _parse_ids(text: str) -> list[int]:
    from gcdbench.core.errors import ConfigError

    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise ConfigError(f"'{text}' is not a list of image ids.", hint="For example --images 12,40,7.") from None

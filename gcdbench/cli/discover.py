"""``gcdbench discover``: from two folders of images to clusters that somebody can name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gcdbench.cli.echo import say
from gcdbench.cli.options import echo_json, given_settings, json_option, preset_option, setting_options, warn_of_plugins
from gcdbench.cli.placing import placement_options

if TYPE_CHECKING:
    from gcdbench.plugins.manager import PluginManager
    from gcdbench.reporting.discovery import Written
    from gcdbench.runs.discover import Discovered, Discovery
    from gcdbench.runs.placement import Placement


@click.command("discover")
@click.option("--labelled", type=click.Path(path_type=Path), required=True, help="Folder of class folders, or a CSV.")
@click.option("--unlabelled", type=click.Path(path_type=Path), help="Folder of images, at any depth, or a CSV.")
@click.option(
    "--k", type=click.IntRange(min=2), help="Number of clusters, known classes included (default: estimated)."
)
@click.option("--method", "-m", default="simgcd", show_default=True, help="Method ('gcdbench list methods').")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("discovered"),
    show_default=True,
    help="Folder for predictions.csv, gallery.html and names.toml.",
)
@click.option(
    "--truth",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="CSV with path and label, to score by.",
)
@click.option("--variant", help="Named settings of the method.")
@preset_option
@setting_options
@click.option("--seed", type=int, default=0, show_default=True, help="Drives initialisation, order and views.")
@click.option("--dataset-set", multiple=True, metavar="KEY=VALUE", help="Option of both folders. May be repeated.")
@placement_options
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
@json_option
def command(
    labelled: Path,
    unlabelled: Path | None,
    k: int | None,
    method: str,
    out: Path,
    truth: Path | None,
    variant: str | None,
    preset: str | None,
    backbone: str | None,
    seed: int,
    assignments: tuple[str, ...],
    dataset_set: tuple[str, ...],
    placement: Placement,
    quiet: bool,
    as_json: bool,
) -> None:
    """Sort unlabelled images, with the help of labelled images of known classes.

    A folder of labelled images has one folder per class; in a CSV (path,label) rows without a label are unlabelled.
    Nothing is scored unless --truth is given, now or when the same command is repeated later: the training is found
    again. Predictions and gallery hold your paths and images; run and model do not.
    """
    from gcdbench.cli.progress import ProgressDisplay
    from gcdbench.core.config import parse_assignment
    from gcdbench.plugins.manager import get_manager
    from gcdbench.reporting.discovery import prepare_folder, write_discovery
    from gcdbench.runs.discover import DiscoveryRequest, plan_discovery, run_discovery
    from gcdbench.runs.observers.watch import require_observers
    from gcdbench.runs.truth import read_truth, score_with_truth

    manager = get_manager()
    warn_of_plugins(manager)
    require_observers(placement.observe, manager)
    request = DiscoveryRequest(
        labelled=labelled,
        unlabelled=unlabelled,
        k=k,
        method=method,
        variant=variant,
        preset=preset,
        seed=seed,
        overrides=given_settings(assignments, backbone),
        dataset_options=dict(parse_assignment(text) for text in dataset_set),
    )
    discovery = plan_discovery(request, manager)
    prepare_folder(out)
    if not quiet and not as_json:
        say(_headline(discovery, placement, manager))
    with ProgressDisplay(quiet=quiet) as display:
        found = run_discovery(discovery, placement, manager, display)
    if truth is not None:
        score_with_truth(found, read_truth(truth, found, unlabelled), manager)
    written = write_discovery(found, out, device=placement.device)
    if as_json:
        echo_json(_summary(discovery, found, written))
        return
    for line in _lines(discovery, found, written):
        say(line)


def _headline(discovery: Discovery, placement: Placement, manager: PluginManager) -> str:
    from gcdbench.cli.expected_time import say_expected
    from gcdbench.runs.duration import look_at

    plan, source = discovery.plan, discovery.source
    k = plan.protocol.k
    said = (
        f"{plan.method.name}, preset {plan.preset}, seed {plan.seed}: {discovery.labelled} labelled images of "
        f"{len(discovery.known)} known classes ({', '.join(discovery.known)}), "
        f"{len(source) - discovery.labelled} unlabelled images; "
        + ("the number of clusters will be estimated" if k is None else f"{k} clusters, as given")
    )
    if not plan.method.needs_backbone:
        return said
    return f"{said}; {say_expected(plan, lambda: look_at(source, plan.settings.image_size), placement, manager)}"


def _summary(discovery: Discovery, found: Discovered, written: Written) -> dict[str, object]:
    record = found.result.directory.record()
    return {
        "run": record.run_id,
        "path": str(record.path),
        "reused": found.result.reused,
        "known_classes": list(discovery.known),
        "k": written.k,
        "k_estimated": record.k_policy == "estimated",
        "images": len(written.predictions),
        "predictions": str(written.table),
        "gallery": None if written.gallery is None else str(written.gallery),
        "names": str(written.names),
        "model": None if written.model is None else str(written.model),
        "sets": {} if record.scores is None else record.scores.to_table()["sets"],
    }


def _lines(discovery: Discovery, found: Discovered, written: Written) -> list[str]:
    from collections import Counter

    from gcdbench.cli.present import score_lines

    record = found.result.directory.record()
    lines = [f"Found the finished run {record.path} again: nothing was trained."] if found.result.reused else []
    lines += [f"{count:6d}  {name}" for name, count in Counter(written.predictions.name).most_common()]
    how = "estimated" if record.k_policy == "estimated" else "given"
    filled = len(set(written.predictions.cluster.tolist()))
    lines.append(
        f"{len(written.predictions)} images in {filled} cluster{'' if filled == 1 else 's'}, "
        f"{written.new} of them new; the number of clusters, {written.k}, was {how}."
    )
    if how == "estimated" and written.k <= len(discovery.known):
        more = len(discovery.known) + 2
        lines.append(
            "The estimate leaves no room for a new class; it is uncertain, most of all with few known classes. If you "
            f"expect new ones, say how many clusters there are in total, for example --k {more}."
        )
    if record.scores is not None:
        lines += score_lines(record, record.scores)
    lines.append(f"Predictions: {written.table}")
    if written.gallery is None:
        lines.append(f"No gallery: {discovery.plan.method.name} gives no features to compare images by.")
    else:
        lines.append(f"Gallery:     {written.gallery} (open it in a browser)")
    lines.append(f"Names:       {written.names} (then: gcdbench name {record.run_id} {written.names})")
    lines.append(f"Run:         {record.path}" + (", with the model" if written.model else "; it has no model"))
    lines.append(
        "Predictions and gallery contain your paths and images: share them only as you would share the images."
    )
    return lines

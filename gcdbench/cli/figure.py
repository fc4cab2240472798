"""``gcdbench figure``: draw from stored runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gcdbench.cli.echo import say
from gcdbench.cli.options import data_root_option, runs_option

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gcdbench.runs.directory import RunDirectory

OF_SUITES = ("errors", "bars", "curves")
OF_RUNS = ("confusion", "training", "tsne", "examples")


@click.command("figure")
@click.argument("kind", type=click.Choice([*OF_SUITES, *OF_RUNS]))
@click.argument("targets", nargs=-1, required=True, metavar="SUITE | RUN...")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="File ending in .svg, .pdf or .png."
)
@click.option("--preset", help="Preset of a suite's runs (default: the suite's first preset that has runs).")
@click.option("--protocol", help="Protocol of a suite's runs (default: the suite's).")
@click.option("--seeds", help="Seeds of a suite's runs, for example 0-4.")
@click.option("--test", "inductive", is_flag=True, help="Scores on the untouched test part instead of D_u.")
@data_root_option
@runs_option
def command(
    kind: str,
    targets: tuple[str, ...],
    output: Path | None,
    preset: str | None,
    protocol: str | None,
    seeds: str | None,
    inductive: bool,
    data_root: Path | None,
    runs: Path,
) -> None:
    """Draw a figure.

    \b
    Of a suite:  errors (2×2 maps of the error decomposition), bars (accuracies), curves (swept settings).
    Of runs:     confusion, training (losses by epoch), tsne (the stored embedding), examples (old, new, false-old).
    """
    from gcdbench.core.errors import ConfigError
    from gcdbench.reporting.figures.style import save

    if kind in OF_RUNS and (preset or protocol or seeds):
        raise ConfigError(f"--preset, --protocol and --seeds choose a suite's runs; '{kind}' is drawn from named runs.")
    if kind == "training" and inductive:
        raise ConfigError("--test chooses scores; 'training' shows losses.")
    evaluation = "inductive" if inductive else "transductive"
    if kind in OF_SUITES:
        figure = _of_suite(kind, targets, runs, preset, protocol, seeds, evaluation)
    else:
        figure = _of_runs(kind, targets, runs, evaluation, data_root)
    path = output or Path(f"{kind}-{Path(targets[0]).stem}.svg")
    save(figure, path)
    say(f"Wrote {path}")


def _of_suite(
    kind: str,
    targets: tuple[str, ...],
    runs: Path,
    preset: str | None,
    protocol: str | None,
    seeds: str | None,
    evaluation: str,
) -> Figure:
    from gcdbench.core.errors import ConfigError
    from gcdbench.metrics.error_terms import HEAD_TERMS, TERMS
    from gcdbench.plugins.manager import get_manager
    from gcdbench.reporting.figures.sources import bar_figure, curve_figure, error_figure
    from gcdbench.reporting.records import cell_records
    from gcdbench.reporting.suites.read import load_suite
    from gcdbench.reporting.suites.seeds import parse_seeds
    from gcdbench.reporting.tables.bootstrap import RunBootstrap
    from gcdbench.reporting.tables.suite_table import suite_table
    from gcdbench.runs.index import load_runs

    if len(targets) != 1:
        raise ConfigError(f"A figure of kind '{kind}' is drawn from one suite.")
    suite = load_suite(targets[0], get_manager())
    table = suite_table(
        suite,
        cell_records(load_runs(runs), evaluation),
        get_manager(),
        preset=preset,
        protocol=protocol,
        seeds=parse_seeds(seeds) if seeds else None,
        scores=("all", "old", "new", *TERMS, *HEAD_TERMS),
        evaluation=evaluation,
        bootstrap=RunBootstrap(evaluation),
    )
    if kind == "errors":
        return error_figure(table)
    return bar_figure(table) if kind == "bars" else curve_figure(table, suite)


def _of_runs(kind: str, targets: tuple[str, ...], runs: Path, evaluation: str, data_root: Path | None) -> Figure:
    from gcdbench.core.errors import ConfigError
    from gcdbench.reporting.figures.sources import confusion_figure, embedding_figure, training_figure
    from gcdbench.runs.directory import RunDirectory
    from gcdbench.runs.index import find_run

    directories = [RunDirectory(find_run(runs, name)) for name in targets]
    if kind == "training":
        return training_figure(directories)
    if len(directories) != 1:
        raise ConfigError(f"A figure of kind '{kind}' is drawn from one run.")
    if kind == "examples":
        return _of_images(directories[0], evaluation, data_root)
    return (confusion_figure if kind == "confusion" else embedding_figure)(directories[0], evaluation)


def _of_images(directory: RunDirectory, evaluation: str, data_root: Path | None) -> Figure:
    """Images of the run's own dataset, which must be here, by what became of them."""
    from gcdbench.plugins.manager import get_manager
    from gcdbench.reporting.explain.confusion import assigned_classes, old_and_new_examples
    from gcdbench.reporting.explain.images import open_images, require_same_images
    from gcdbench.reporting.figures.examples import Example, draw_examples
    from gcdbench.runs.predictions import load_predictions
    from gcdbench.runs.reader import read_config

    record = directory.record()
    scored = load_predictions(record, evaluation)
    images = open_images(
        str(read_config(record).get("dataset") or record.dataset),
        get_manager(),
        image_size=record.image_size,
        options=record.dataset_options,
        data_root=data_root,
    )
    require_same_images(images, record.images)
    names, answers = record.split.classes, assigned_classes(scored)
    titles = {
        "old": "old: has labelled images, and was recognised",
        "new": "new: not labelled by anybody, and found",
        "false-old": "false-old: new, and taken for an old class",
    }

    def example(place: int) -> Example:
        truth, answer = int(scored.y_true[place]), int(answers[place])
        caption = names[truth] if truth == answer else f"{names[truth]}\ntaken for\n{names[answer]}"
        return Example(pixels=images.pixels(scored.ids[[place]])[0], caption=caption)

    chosen = old_and_new_examples(scored, count=5)
    groups = {titles[name]: [example(int(place)) for place in places] for name, places in chosen.items()}
    return draw_examples(groups, f"{record.title}: what became of unlabelled images")

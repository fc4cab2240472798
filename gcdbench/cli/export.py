"""``gcdbench export``: pack runs into an archive."""

from __future__ import annotations

from pathlib import Path

import click

from gcdbench.cli.echo import say
from gcdbench.cli.options import require_runs, runs_option


@click.command("export")
@click.argument("archive", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("run_ids", nargs=-1, metavar="[RUN]...")
@click.option("--method", "methods", multiple=True, help="Only runs of this method. May be repeated.")
@click.option("--dataset", "datasets", multiple=True, help="Only runs on this dataset. May be repeated.")
@click.option("--preset", "presets", multiple=True, help="Only runs with this preset. May be repeated.")
@click.option("--weights", is_flag=True, help="With the trained weights.")
@click.option("--embeddings", is_flag=True, help="With the stored embeddings.")
@runs_option
def command(
    archive: Path,
    run_ids: tuple[str, ...],
    methods: tuple[str, ...],
    datasets: tuple[str, ...],
    presets: tuple[str, ...],
    weights: bool,
    embeddings: bool,
    runs: Path,
) -> None:
    """Pack finished runs into ARCHIVE (a .zip): scores, predictions and provenance; weights only when asked.

    Without RUN, all finished runs that fit the options are packed.
    """
    from gcdbench.core.disk_space import format_bytes
    from gcdbench.core.errors import ConfigError, GCDBenchError, UnknownName
    from gcdbench.reporting.records import cell_records
    from gcdbench.runs.archive.pack import check_predictions, pack_runs
    from gcdbench.runs.index import find_run, load_runs
    from gcdbench.runs.record import DONE, UNREADABLE

    if archive.suffix.lower() != ".zip":
        raise ConfigError(f"The archive '{archive}' must end in .zip.", hint="gcdbench export ARCHIVE.zip [RUN]...")
    records = cell_records(load_runs(runs))
    require_runs(runs, records)
    for kind, names in (("method", methods), ("dataset", datasets), ("preset", presets)):
        known = {str(getattr(record, kind)) for record in records}
        for name in names:
            if name not in known:
                raise UnknownName(f"{kind} in '{runs}'", name, known)
    named = {find_run(runs, name).resolve() for name in run_ids}
    chosen = [
        record.path
        for record in records
        if record.status == DONE
        and (not named or record.path.resolve() in named)
        and (not methods or record.method in methods)
        and (not datasets or record.dataset in datasets)
        and (not presets or record.preset in presets)
    ]
    if not chosen:
        raise ConfigError(f"No finished run in '{runs}' fits.", hint="'gcdbench status' lists the runs.")
    if left := named - {path.resolve() for path in chosen}:
        raise ConfigError(
            f"Run '{min(left).name}' is not finished, is not in '{runs}' or does not fit the options.",
            hint="'gcdbench status' lists the runs.",
        )
    damaged = {record.path: record.problem for record in records if record.status == UNREADABLE}
    for path in chosen:
        try:
            check_predictions(path)
        except GCDBenchError as error:
            damaged[path] = error.message
    whole = [path for path in chosen if path not in damaged]
    for path, problem in damaged.items():
        say(f"left out: {path.name}: {problem}", err=True)
    if not whole:
        raise ConfigError("Every run that fits is damaged, so nothing was packed.", hint="See 'gcdbench verify'.")
    packed = pack_runs(runs, whole, archive, weights=weights, embeddings=embeddings)
    say(f"Packed {packed.runs} run(s), {packed.files} files, {format_bytes(packed.size)} into {packed.path}")
    if damaged:
        raise SystemExit(1)

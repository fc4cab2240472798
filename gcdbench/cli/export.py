"""``gcdbench export``: pack runs into an archive."""

from __future__ import annotations

from pathlib import Path

import click

from gcdbench.cli.options import runs_option


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
    from gcdbench.archive.pack import pack_runs
    from gcdbench.errors import ConfigError
    from gcdbench.store.index import find_run, load_runs
    from gcdbench.store.rundir import DONE
    from gcdbench.tables.records import cell_records

    named = {find_run(runs, name) for name in run_ids}
    chosen = [
        record.path
        for record in cell_records(load_runs(runs))
        if record.status == DONE
        and (not named or record.path in named)
        and (not methods or record.method in methods)
        and (not datasets or record.dataset in datasets)
        and (not presets or record.preset in presets)
    ]
    if not chosen:
        raise ConfigError(f"No finished run in '{runs}' fits.", hint="'gcdbench status' lists the runs.")
    packed = pack_runs(runs, chosen, archive, weights=weights, embeddings=embeddings)
    click.echo(f"Packed {packed.runs} run(s), {packed.files} files, {packed.size / 2**20:.1f} MiB into {packed.path}")

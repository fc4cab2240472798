"""``gcdbench import``: check an archive and merge its runs."""

from __future__ import annotations

from pathlib import Path

import click

from gcdbench.cli.echo import say
from gcdbench.cli.options import runs_option


@click.command("import")
@click.argument("archive", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--check", is_flag=True, help="Only check; write nothing.")
@click.option(
    "--max-gib", type=click.FloatRange(min=0.001), default=8.0, show_default=True, help="Largest unpacked size."
)
@runs_option
def command(archive: Path, check: bool, max_gib: float, runs: Path) -> None:
    """Check ARCHIVE (names, sizes, hashes, schema, scores) and merge its runs without duplicates.

    Every score is computed again from the predictions with the metrics installed here, and those are kept; where the
    same metric says something else, the archive is refused. Nothing is written unless everything is right, and no run
    that is here is ever overwritten.
    """
    from gcdbench.runs.archive.merge import merge_archive

    merged = merge_archive(archive, runs, limit=int(max_gib * 2**30), check_only=check)
    for name in merged.conflicts:
        say(f"kept ours: {name} has other predictions in the archive", err=True)
    for name, difference in merged.other_numerics.items():
        say(f"kept ours: {name} was made with other numerics in the archive ({difference}), so it differs")
    for name, keys in merged.dropped.items():
        say(f"dropped: {name} has scores of metrics that are not installed here ({_listed(keys)})")
    for name, keys in merged.replaced.items():
        say(f"computed again: {name} has scores of other versions of the metrics here ({_listed(keys)})")
    for name in merged.busy:
        say(f"left alone: {name} is running here", err=True)
    word = "would be added" if check else "added"
    say(
        f"{len(merged.added)} run(s) {word}, {len(merged.present) + len(merged.other_numerics)} already here, "
        f"{len(merged.conflicts)} in conflict."
    )
    if merged.conflicts or merged.busy:
        raise SystemExit(1)


def _listed(keys: tuple[str, ...]) -> str:
    more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
    return ", ".join(keys[:3]) + more

"""``gcdbench data cache``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gcdbench.cli.echo import say
from gcdbench.cli.options import echo_json, json_option

if TYPE_CHECKING:
    from gcdbench.core.cache_upkeep import CacheEntry


@click.group()
def cache() -> None:
    """List, trim or clear what is kept to save time: image stores, view banks, unpacked arrays."""


@cache.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List what is in the cache, the longest unused first."""
    import time
    from dataclasses import asdict

    from gcdbench.core.cache_upkeep import list_cache
    from gcdbench.core.disk_space import format_bytes
    from gcdbench.core.places import cache_dir

    entries = list_cache(cache_dir())
    total = sum(entry.bytes for entry in entries)
    if as_json:
        echo_json({"folder": str(cache_dir()), "bytes": total, "entries": [asdict(entry) for entry in entries]})
        return
    for entry in entries:
        days = (time.time() - entry.used) / 86_400
        say(f"{entry.kind:<8} {format_bytes(entry.bytes):>8}  {days:6.1f} days ago  {entry.key}  {entry.title}")
    say(f"{format_bytes(total)} in {cache_dir()}")


@cache.command()
@click.option("--kind", type=click.Choice(["stores", "banks", "features", "arrays"]), help="Only one kind.")
@click.option("--key", default=None, help="Only the entry with this key.")
def clear(kind: str | None, key: str | None) -> None:
    """Delete everything in the cache, compiled kernels included, or a part of it. It is made again when needed."""
    from gcdbench.core.cache_upkeep import clear_cache
    from gcdbench.core.places import cache_dir

    _say(clear_cache(cache_dir(), kind=kind, key=key))


@cache.command()
@click.option("--to", "limit", required=True, help="Largest size to keep, for example 20GB.")
def trim(limit: str) -> None:
    """Delete what was unused for longest until the cache is small enough."""
    from gcdbench.core.cache_upkeep import trim_cache
    from gcdbench.core.disk_space import parse_size
    from gcdbench.core.places import cache_dir

    _say(trim_cache(cache_dir(), parse_size(limit)))


def _say(gone: list[CacheEntry]) -> None:
    from gcdbench.core.disk_space import format_bytes

    freed = format_bytes(sum(entry.bytes for entry in gone))
    say(f"{len(gone)} entries deleted, {freed} freed.")

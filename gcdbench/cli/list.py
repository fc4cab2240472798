"""``gcdbench list``: what is registered, without importing any of it."""

from __future__ import annotations

import click

from gcdbench.cli.echo import say
from gcdbench.cli.options import echo_json, json_option

KINDS = ("methods", "datasets", "metrics", "backbones", "executors", "observers", "presets", "suites", "plugins")


@click.command("list")
@click.argument("kind", type=click.Choice(KINDS))
@json_option
def command(kind: str, as_json: bool) -> None:
    """List methods, datasets, metrics, backbones, executors, observers, presets, suites or plugins."""
    from contextlib import suppress
    from dataclasses import asdict

    from gcdbench.plugins.manager import get_manager
    from gcdbench.plugins.specs import MetricSpec

    manager = get_manager()
    if kind == "plugins":
        _list_plugins(as_json)
        return
    rows = []
    for spec in manager.specs(kind):
        distribution, version = manager.provider(kind, spec.name)
        rows.append(
            {
                "name": spec.name,
                "summary": spec.summary or (_title(spec.name) if kind == "suites" else ""),
                "distribution": distribution,
                "version": version,
                "citation": spec.citation,
                "tags": list(spec.tags),
                "variants": sorted(getattr(spec, "variants", {})),
                "deviations": list(getattr(spec, "deviations", ())),
                "reconstruction": getattr(spec, "reconstruction", False),
            }
        )
    if as_json:
        for row, spec in zip(rows, manager.specs(kind), strict=True):
            with suppress(Exception):  # 'gcdbench doctor' reports what a plugin's descriptions raise
                if isinstance(spec, MetricSpec):
                    row["scores"] = [asdict(score) for score in spec.describe()]
        echo_json(rows)
        return
    width = max((len(str(row["name"])) for row in rows), default=0)
    for row in rows:
        origin = "" if row["distribution"] == "gcdbench" else f"  [{row['distribution']} {row['version']}]"
        say(f"{row['name']:<{width}}  {row['summary']}{origin}")


def _title(suite: str) -> str:
    """The title in a suite's file, or what is wrong with that file."""
    from gcdbench.core.errors import GCDBenchError
    from gcdbench.plugins.manager import get_manager
    from gcdbench.reporting.suites.read import load_suite

    try:
        return load_suite(suite, get_manager()).title
    except GCDBenchError as error:
        return error.message


def _list_plugins(as_json: bool) -> None:
    from gcdbench.plugins.manager import get_manager

    records = get_manager().records()
    if as_json:
        echo_json(
            [
                {
                    "name": r.name,
                    "distribution": r.distribution,
                    "version": r.version,
                    "ok": r.ok,
                    "stage": r.stage,
                    "error": r.error,
                    "notes": list(r.notes),
                    "provides": {kind: list(names) for kind, names in r.provides.items()},
                }
                for r in records
            ]
        )
        return
    for record in records:
        if record.ok:
            offers = "; ".join(f"{len(names)} {kind}" for kind, names in record.provides.items()) or "observers only"
            say(f"ok      {record.distribution} {record.version}: {offers}")
            for note in record.notes:
                say(f"note    {record.distribution} {record.version}: {note}")
        else:
            say(f"broken  {record.distribution} {record.version} ({record.stage}): {record.error}")

"""``gcdbench doctor``: is everything that a run needs in order?"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import click

from gcdbench.cli.echo import say
from gcdbench.cli.options import echo_json, json_option, runs_option

OK, WARNING, PROBLEM = "ok", "warning", "problem"
Finding = tuple[str, str]


@click.command("doctor")
@click.option("--cluster", is_flag=True, help="Check whether a sweep will work on the cluster, and nothing else.")
@click.option(
    "--executor", type=click.Choice(["slurm", "dask"]), default="slurm", show_default=True, help="Its engine."
)
@click.option(
    "--executor-set", "assignments", multiple=True, metavar="KEY=VALUE", help="Option of the engine. May be repeated."
)
@runs_option
@json_option
def command(cluster: bool, executor: str, assignments: tuple[str, ...], runs: Path, as_json: bool) -> None:
    """Check the installation, plugins, weights, data and disk; exit code 1 when something is broken."""
    if cluster:
        findings = list(_cluster(runs, executor, assignments))
    else:
        findings = [*_packages(), *_kernels(), *_plugins(), *_scores(), *_weights(), *_data(), *_disk(), *_runs(runs)]
    if as_json:
        echo_json([{"level": level, "message": message} for level, message in findings])
    else:
        for level, message in findings:
            say(f"{level:<9}{message}")
    if any(level == PROBLEM for level, _ in findings):
        raise SystemExit(1)


def _cluster(runs: Path, executor: str, assignments: tuple[str, ...]) -> Iterator[Finding]:
    from gcdbench.core.config import apply_overrides, parse_assignment
    from gcdbench.core.errors import GCDBenchError
    from gcdbench.runs.executors.cluster_check import check_cluster

    options = dict(parse_assignment(text) for text in assignments)
    try:
        if executor == "slurm":
            from gcdbench.runs.executors.slurm import SlurmConfig, SlurmEngine, ask_nodes

            slurm = apply_overrides(SlurmConfig(), options)
            SlurmEngine().check([])
            yield from check_cluster(runs, executor, lambda folder: ask_nodes(folder, slurm))
        else:
            from gcdbench.runs.executors.dask import DaskConfig, ask_workers

            dask = apply_overrides(DaskConfig(), options)
            yield from check_cluster(runs, executor, lambda folder: ask_workers(folder, dask))
    except GCDBenchError as error:
        yield PROBLEM, f"{executor}: {error.message}" + (f" {error.hint}" if error.hint else "")


def _packages() -> Iterator[Finding]:
    from gcdbench.runs.environment import package_versions

    for name, version in package_versions().items():
        yield (OK, f"{name} {version}") if version else (PROBLEM, f"{name} is not installed")
    try:
        from gcdbench.models.torchvision_shim import import_torchvision

        import_torchvision()
    except Exception as error:  # whatever stops torchvision would stop a run as well
        yield PROBLEM, f"torchvision does not import: {error}"


def _kernels() -> Iterator[Finding]:
    from gcdbench.models.kernels import kernels_in_use

    used = kernels_in_use()
    how = {"native": "a compiled kernel", "torch": "torch's operators"}[used.name]
    yield (WARNING, used.note) if used.note else (OK, f"views are made by {how}")


def _plugins() -> Iterator[Finding]:
    from gcdbench.plugins.manager import get_manager

    for record in get_manager().records():
        if record.ok:
            yield OK, f"plugin {record.distribution} {record.version}"
            for note in record.notes:
                yield WARNING, f"plugin {record.distribution}: {note}"
        else:
            yield PROBLEM, f"plugin {record.distribution} is broken ({record.stage}): {record.error}"


def _scores() -> Iterator[Finding]:
    from gcdbench.plugins.manager import get_manager
    from gcdbench.plugins.specs import MetricSpec

    manager = get_manager()
    for spec in manager.specs("metrics"):
        assert isinstance(spec, MetricSpec)
        try:
            spec.describe()
        except Exception as error:  # a plugin's module may raise anything when it is imported
            yield PROBLEM, f"the scores of metric {spec.name} are not described: {manager.explain(error)}"


def _weights() -> Iterator[Finding]:
    from gcdbench.core.errors import GCDBenchError
    from gcdbench.plugins.manager import get_manager
    from gcdbench.plugins.specs import BackboneSpec

    for spec in get_manager().specs("backbones"):
        assert isinstance(spec, BackboneSpec)
        if spec.takes_argument:
            continue
        try:
            # A look must not download: what several backbones would fetch are gigabytes.
            yield OK, f"weights of {spec.name}: sha256 {spec.weights_sha256(None, load=False)[:12]}…"
        except (GCDBenchError, ImportError) as error:
            yield WARNING, f"weights of {spec.name}: {error}"


def _data() -> Iterator[Finding]:
    from gcdbench.datasets.roots import data_roots

    for root in data_roots():
        yield OK, f"data root {root}" + ("" if root.is_dir() else " (does not exist)")


def _disk() -> Iterator[Finding]:
    from gcdbench.core.errors import GCDBenchError
    from gcdbench.core.places import cache_dir

    try:
        folder = cache_dir()
    except GCDBenchError as error:
        yield PROBLEM, error.message
        return
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free / 2**30
    yield (OK if free > 5 else WARNING), f"{free:.1f} GiB free for the cache in {cache_dir()}"


def _runs(runs: Path) -> Iterator[Finding]:
    from gcdbench.runs.index import load_runs
    from gcdbench.runs.record import INTERRUPTED, STALE, UNREADABLE

    for entry in load_runs(runs):
        if entry.status in (INTERRUPTED, STALE):
            yield WARNING, f"run {entry.run_id} is {entry.status}: the same command continues it"
        elif entry.status == UNREADABLE:
            yield PROBLEM, f"run {entry.run_id} is unreadable: {entry.problem}"

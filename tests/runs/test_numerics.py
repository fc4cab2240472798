"""What decides the last bits of a result is recorded, shown, and compared where results of one id meet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from gcdbench.runs.archive.merge import merge_archive
from gcdbench.runs.archive.pack import pack_runs
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.events import Note
from gcdbench.runs.numerics import Numerics, _libraries, describe_numerics
from gcdbench.runs.record import Environment
from gcdbench.testing.stored import fake_environment

AddRun = Callable[..., RunDirectory]
HERE = Numerics(processor="x86_64 A 1 2", features=("avx2",), torch="2.1", threads=1, device="cpu")


def test_this_process_says_what_it_computes_with() -> None:
    import numpy as np
    import torch

    found = describe_numerics(device="cpu", threads=3)
    assert found.threads == 3
    assert found.torch == torch.__version__
    assert type(found.torch) is str  # torch's own class cannot be stored
    assert found.products in ("blas", "onednn")
    assert found.kernels == "torch" or found.kernels.startswith("native-")
    assert np.__config__.CONFIG["Build Dependencies"]["blas"]["version"] in found.libraries
    assert found.differences(found) == []
    assert describe_numerics(device="cpu", threads=None).threads == torch.get_num_threads()


def test_libraries_are_named_with_their_versions() -> None:
    said = (
        "- Intel(R) oneAPI Math Kernel Library Version 2024.2-Product Build 1\n- Intel(R) MKL-DNN v3.12.0 (Git Hash x)"
    )
    assert _libraries(said).startswith("MKL 2024.2, oneDNN 3.12.0 (torch), ")
    assert _libraries("nothing known").startswith("unknown (torch), ")


@pytest.mark.parametrize("field", list(asdict(HERE)))
def test_every_part_counts_unless_a_side_did_not_record_it(field: str) -> None:
    empty = Numerics()
    other = replace(HERE, **{field: {"features": ("sve",), "threads": 64}.get(field, "other")})  # type: ignore[arg-type]
    known = bool(getattr(HERE, field))
    assert [text.partition(":")[0] for text in HERE.differences(other)] == ([field] if known else [])
    assert HERE.differences(empty) == empty.differences(HERE) == []


def test_old_records_are_compared_by_what_they_have() -> None:
    old = fake_environment(cpu="AMD EPYC", kernels="native")
    assert old.numeric_differences(old) == []
    assert old.numeric_differences(replace(old, threads=8)) == ["threads: 1, 8"]
    new = replace(old, numerics=HERE, cpu="Intel Xeon")
    assert old.numeric_differences(new) == ["processor: AMD EPYC, Intel Xeon"]
    assert new.numeric_differences(replace(new, numerics=replace(HERE, threads=4))) == ["threads: 1, 4"]


def imported(tmp_path: Path, add_run: AddRun, ours: dict[str, Any], theirs: dict[str, Any]) -> Path:
    """An archive with another result of a run that is here."""
    there = add_run(tmp_path / "there", accuracy=0.5, environment=theirs)
    add_run(tmp_path / "here", accuracy=0.9, environment=ours)
    pack_runs(tmp_path / "there", [there.path], tmp_path / "a.zip")
    return tmp_path / "a.zip"


def test_another_result_from_other_numerics_is_kept_out_with_a_sentence(
    tmp_path: Path, add_run: AddRun, cli: Callable[..., Result]
) -> None:
    archive = imported(tmp_path, add_run, {"numerics": HERE}, {"numerics": replace(HERE, processor="aarch64 B")})
    before = {path: path.read_bytes() for path in (tmp_path / "here").rglob("*") if path.is_file()}
    result = cli("import", archive, "--runs", tmp_path / "here")
    assert result.exit_code == 0, result.output
    assert "other numerics" in result.stdout
    assert "processor: x86_64 A 1 2, aarch64 B" in result.stdout
    assert "0 in conflict" in result.stdout
    assert {path: path.read_bytes() for path in (tmp_path / "here").rglob("*") if path.is_file()} == before


def test_another_result_from_the_same_numerics_is_a_conflict(
    tmp_path: Path, add_run: AddRun, cli: Callable[..., Result]
) -> None:
    archive = imported(tmp_path, add_run, {"numerics": HERE}, {"numerics": HERE})
    result = cli("import", archive, "--runs", tmp_path / "here")
    assert result.exit_code == 1
    assert "1 in conflict" in result.stdout
    assert len(merge_archive(archive, tmp_path / "here").conflicts) == 1


def test_numerics_are_shown(tmp_path: Path, add_run: AddRun, cli: Callable[..., Result]) -> None:
    directory = add_run(tmp_path / "runs", environment={"numerics": HERE})
    shown = cli("show", directory.path.name, "--runs", tmp_path / "runs").stdout
    assert "processor x86_64 A 1 2; features avx2; torch 2.1; threads 1; device cpu" in shown
    assert cli("report", "--runs", tmp_path / "runs", "-o", tmp_path / "r.html").exit_code == 0
    assert "processor x86_64 A 1 2" in (tmp_path / "r.html").read_text()
    old = add_run(tmp_path / "runs", seed=1)
    assert "not recorded" in cli("show", old.path.name, "--runs", tmp_path / "runs").stdout


def test_a_resumed_training_is_told_of_other_numerics(tmp_path: Path) -> None:
    from gcdbench.methods.configs import SimGCDConfig
    from gcdbench.methods.simgcd import SimGCD
    from gcdbench.runs.events import make_event
    from gcdbench.testing.tiny import shrink, tiny_context, tiny_task

    heard: list[Any] = []

    class Stopping(SimGCD):
        def on_epoch_end(self, epoch: int) -> None:
            if self.ctx.numerics.get("processor") == "A":
                raise KeyboardInterrupt

    def fit(**numerics: object) -> None:
        context = tiny_context(
            epochs=2, checkpoint_dir=tmp_path, checkpoint_seconds=0, log=lambda said: heard.append(make_event(said))
        )
        data, task = tiny_task()[:2]
        shrink(Stopping)(SimGCDConfig(), task, replace(context, numerics=numerics)).fit(data)

    with pytest.raises(KeyboardInterrupt):
        fit(processor="A", torch="2")
    fit(processor="B", torch="2")
    [note] = [event for event in heard if isinstance(event, Note)]
    assert "processor was A, is B" in note.message
    assert "torch" not in note.message


def test_a_run_records_its_numerics(tmp_path: Path, example_plugin: Path) -> None:
    from gcdbench.plugins.manager import get_manager
    from gcdbench.runs.execution import Execution
    from gcdbench.runs.placement import Placement
    from gcdbench.runs.plan import make_plan
    from gcdbench.runs.request import Request
    from gcdbench.runs.runner import execute

    manager = get_manager()
    request = Request(method="nearest-mean", dataset="stripes", overrides={"image_size": "32"})
    placement = Placement(runs=tmp_path / "runs", workers=1, threads=1)
    made = execute(Execution(plan=make_plan(request, manager), placement=placement, manager=manager))
    environment = made.record.environment
    assert isinstance(environment, Environment)
    assert environment.numerics == describe_numerics(device="cpu", threads=1)
    assert "numerics" not in made.record.identity

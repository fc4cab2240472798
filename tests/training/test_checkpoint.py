from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
import torch

from gcdbench.core.errors import TrainingError
from gcdbench.training import checkpoint


def state(value: int) -> checkpoint.State:
    return {"value": value, "weights": torch.full((3,), float(value)), "names": {"a": [1, 2.5, None]}}


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    checkpoint.save_latest(tmp_path, state(1))
    back = checkpoint.load_latest(tmp_path)
    assert back is not None
    assert torch.equal(back["weights"], torch.ones(3))
    assert back["names"] == {"a": [1, 2.5, None]}


def test_nothing_there_is_none(tmp_path: Path) -> None:
    assert checkpoint.load_latest(tmp_path / "absent") is None


def test_a_damaged_newest_file_falls_back_to_the_one_before(tmp_path: Path) -> None:
    checkpoint.save_latest(tmp_path, state(1))
    checkpoint.save_latest(tmp_path, state(2))
    newest = tmp_path / checkpoint.LATEST
    newest.write_bytes(newest.read_bytes()[:100])
    back = checkpoint.load_latest(tmp_path)
    assert back is not None
    assert back["value"] == 1


@pytest.mark.parametrize("killed_at", range(8))
def test_a_kill_at_any_file_operation_leaves_a_readable_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_at: int
) -> None:
    """Every replace and sync of a save is a moment the process may die at."""
    checkpoint.save_latest(tmp_path, state(1))
    calls = iter(range(100))

    class KilledError(BaseException):
        pass

    def dying(real):  # type: ignore[no-untyped-def]
        def call(*arguments):  # type: ignore[no-untyped-def]
            if next(calls) == killed_at:
                raise KilledError
            return real(*arguments)

        return call

    monkeypatch.setattr(os, "replace", dying(os.replace))
    monkeypatch.setattr(os, "fsync", dying(os.fsync))
    with contextlib.suppress(KilledError):
        checkpoint.save_latest(tmp_path, state(2))
    monkeypatch.undo()
    back = checkpoint.load_latest(tmp_path)
    assert back is not None
    assert back["value"] in (1, 2)
    checkpoint.save_latest(tmp_path, state(3))
    after = checkpoint.load_latest(tmp_path)
    assert after is not None
    assert after["value"] == 3
    assert {path.name for path in tmp_path.iterdir()} <= {checkpoint.LATEST, checkpoint.PREVIOUS}


def test_a_file_that_is_no_checkpoint_is_told(tmp_path: Path) -> None:
    (tmp_path / checkpoint.LATEST).write_bytes(b"nonsense")
    with pytest.raises(TrainingError, match="cannot be read"):
        checkpoint.load_latest(tmp_path)


def test_code_in_a_checkpoint_is_not_run(tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> tuple[object, ...]:
            return (os.mkdir, (str(tmp_path / "owned"),))

    torch.save({"format": 1, "x": Hostile()}, tmp_path / checkpoint.LATEST)
    with pytest.raises(TrainingError):
        checkpoint.load_latest(tmp_path)
    assert not (tmp_path / "owned").exists()


def test_the_clock_waits_longer_when_writing_is_slow() -> None:
    now = [0.0]
    clock = checkpoint.Clock(10.0, now=lambda: now[0])
    now[0] = 9.9
    assert not clock.due()
    now[0] = 10.0
    assert clock.due()

    def slow_write() -> None:
        now[0] += 2.0

    clock.time(slow_write)
    now[0] = 12.0 + 59.0
    assert not clock.due()
    now[0] = 12.0 + 60.0
    assert clock.due()

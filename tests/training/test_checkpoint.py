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


@pytest.mark.parametrize("what", ["nonsense", "a directory"])
def test_what_is_no_checkpoint_is_told_and_does_not_stay_in_the_way(tmp_path: Path, what: str) -> None:
    for name in (checkpoint.LATEST, checkpoint.PREVIOUS):
        if what == "nonsense":
            (tmp_path / name).write_bytes(b"nonsense")
        else:
            (tmp_path / name / "deep").mkdir(parents=True)
    notes: list[str] = []
    assert checkpoint.load_latest(tmp_path, notes.append) is None
    assert [note.rpartition("; ")[2] for note in notes] == ["the one before it is used.", "training starts over."]
    for value in (1, 2):
        checkpoint.save_latest(tmp_path, state(value))
    back = checkpoint.load_latest(tmp_path, notes.append)
    assert back is not None
    assert back["value"] == 2
    assert len(notes) == 2


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 1.0])
def test_one_flipped_bit_anywhere_is_found(tmp_path: Path, share: float) -> None:
    """In the weights it would change a result and nothing else would notice."""
    for value in (1, 2):
        checkpoint.save_latest(tmp_path, state(value))
    newest = tmp_path / checkpoint.LATEST
    content = bytearray(newest.read_bytes())
    content[int(share * (len(content) - 1))] ^= 1
    newest.write_bytes(content)
    notes: list[str] = []
    back = checkpoint.load_latest(tmp_path, notes.append)
    assert back is not None
    assert back["value"] == 1
    assert len(notes) == 1
    checkpoint.save_latest(tmp_path, state(3))
    assert not (tmp_path / checkpoint.PREVIOUS).exists() or checkpoint.read_state(tmp_path / checkpoint.PREVIOUS)


def test_a_checkpoint_can_be_loaded_by_torch_alone(tmp_path: Path) -> None:
    checkpoint.write_state(tmp_path / checkpoint.FAILED, state(4))
    assert torch.load(tmp_path / checkpoint.FAILED, weights_only=True)["value"] == 4


def test_code_in_a_checkpoint_is_not_run(tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> tuple[object, ...]:
            return (os.mkdir, (str(tmp_path / "owned"),))

    checkpoint.write_state(tmp_path / checkpoint.LATEST, {"x": Hostile()})
    with pytest.raises(TrainingError):
        checkpoint.read_state(tmp_path / checkpoint.LATEST)
    assert checkpoint.load_latest(tmp_path) is None
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

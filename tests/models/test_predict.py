"""A model on files, folders, patterns and arrays: decoded as in the run, streamed, honest about what it cannot do."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gcdbench.core.errors import DataError
from gcdbench.images.decoding import open_image, to_square
from gcdbench.methods.configs import SimGCDConfig
from gcdbench.methods.simgcd import SimGCD
from gcdbench.models import predict as predict_module
from gcdbench.models.card_file import change_names
from gcdbench.models.image_inputs import decode_ahead, find_inputs
from gcdbench.models.model_card import Names
from gcdbench.models.predict import Model, load_model
from gcdbench.models.predictions import COLUMNS, Predictions, open_whole, write_csv
from gcdbench.testing.tiny import TinyBackbone, shrink, tiny_context, tiny_task


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    data, task, _ = tiny_task(images=120)
    method = shrink(SimGCD)(SimGCDConfig(), task, tiny_context(epochs=1))
    method.fit(data)
    folder = tmp_path_factory.mktemp("model")
    method.save_model(folder)
    change_names(folder, classes=["red", "=blue"])
    return load_model(folder, load_backbone=TinyBackbone)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures of many sizes and kinds, in folders with odd names."""
    root = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    for number in range(9):
        folder = root / f"Pazient Ä {number % 3}"
        folder.mkdir(exist_ok=True)
        pixels = rng.integers(0, 256, (20 + number, 31 - number, 3), dtype=np.uint8)
        image = Image.fromarray(pixels)
        name = folder / f"scan {number}{['.png', '.JPG', '.tif'][number % 3]}"
        (image.convert("L") if number == 4 else image).save(name)
    (root / "notes.txt").write_text("no image")
    return root


def paths_of(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*.*") if path.suffix != ".txt")


def test_squares_are_those_an_image_store_holds(files: Path) -> None:
    found, count = find_inputs(files)
    decoded = list(decode_ahead(found, 16, workers=3))
    assert count == len(decoded) == 9
    for item, path in zip(decoded, paths_of(files), strict=True):
        assert item.name == str(path)
        assert np.array_equal(item.square, to_square(open_image(path.read_bytes()), 16))  # type: ignore[arg-type]


def test_all_ways_to_name_images_give_the_same_answer(model: Model, files: Path) -> None:
    paths = paths_of(files)
    whole = model.predict(files)
    squares = np.stack([to_square(open_image(path.read_bytes()), 16) for path in paths])
    assert whole.path == tuple(map(str, paths))
    for images in (
        str(files),
        paths,
        [str(path) for path in paths],
        str(files / "**" / "scan*"),
        iter(paths),
        [files / "Pazient Ä 0", files / "Pazient Ä 1", files / "Pazient Ä 2"],
        [Image.open(path) for path in paths],
        squares,
        list(squares),
    ):
        again = model.predict(images)
        assert again.cluster.tolist() == whole.cluster.tolist()
        np.testing.assert_allclose(again.confidence, whole.confidence, atol=1e-6)
        np.testing.assert_allclose(again.unlike_score, whole.unlike_score, rtol=1e-4)
    one = model.predict(paths[3])
    assert one.cluster.tolist() == [whole.cluster[3]]


def test_images_of_the_run_get_what_the_run_gave_them(model: Model) -> None:
    """The store's squares are 16 px, so that decoding them again changes nothing."""
    data, task, _ = tiny_task(images=120)
    method = shrink(SimGCD)(SimGCDConfig(), task, tiny_context(epochs=1))
    method.fit(data)
    expected = method.predict(data.unlabelled)
    made = model.predict(data.unlabelled.pixels())
    assert np.array_equal(made.cluster, expected.cluster)
    np.testing.assert_allclose(made.confidence, expected.confidence, atol=1e-5)  # type: ignore[arg-type]


def test_images_are_streamed(model: Model, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An endless series can be begun: never more than a bounded number of images is opened ahead."""
    monkeypatch.setattr(predict_module, "chunk_size", lambda size: 5)
    path = paths_of(files)[0]
    asked = 0

    def endless():  # type: ignore[no-untyped-def]
        nonlocal asked
        while True:
            asked += 1
            yield path

    stream, total = model.stream(endless(), workers=2)
    assert total is None
    parts = [next(stream) for _ in range(4)]
    assert [len(part) for part in parts] == [5, 5, 5, 5]
    assert asked <= 20 + 2 * 8 + 1
    stream.close()  # type: ignore[attr-defined]


def test_progress_counts_to_the_end(model: Model, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predict_module, "chunk_size", lambda size: 4)
    heard: list[tuple[str, int, int]] = []
    model.predict(files, progress=lambda *event: heard.append(event))
    assert heard == [("predicting images", 4, 9), ("predicting images", 8, 9), ("predicting images", 9, 9)]


def test_what_cannot_be_read_stops_or_is_left_out(model: Model, files: Path, tmp_path: Path) -> None:
    good = paths_of(files)[:2]
    broken, empty, pipe = tmp_path / "broken.png", tmp_path / "empty.jpg", tmp_path / "pipe.png"
    broken.write_bytes(good[0].read_bytes()[:100])
    empty.write_bytes(b"")
    os.mkfifo(pipe)
    given = [good[0], broken, empty, pipe, good[1]]
    with pytest.raises(DataError, match=r"broken\.png' cannot be read"):
        model.predict(given)
    made = model.predict(given, unreadable="skip")
    assert made.path == (str(good[0]), str(good[1]))
    assert [path for path, _ in made.unreadable] == [str(broken), str(empty), str(pipe)]
    assert all(reason for _, reason in made.unreadable)
    nothing = model.predict([empty], unreadable="skip")
    assert len(nothing) == 0
    assert list(nothing.rows()) == []


@pytest.mark.parametrize(
    ("images", "said"),
    [
        ("no/such/place", "There is no 'no/such/place'"),
        ("no/such/*.png", "No file fits"),
        (np.zeros((2, 8, 8, 3)), r"bytes \(uint8\)"),
        (np.zeros((8, 8, 3), dtype=np.uint8), r"shape \(N, H, W, 3\)"),
        ([np.zeros((8, 8, 4), dtype=np.uint8)], r"shape \(H, W, 3\) or \(H, W\)"),
        ([3], "not int"),
    ],
)
def test_what_is_no_image_is_said(model: Model, images: object, said: str) -> None:
    with pytest.raises(DataError, match=said):
        model.predict(images)  # type: ignore[arg-type]


def test_an_empty_folder_is_said(model: Model, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no image in the folder"):
        model.predict(tmp_path)


def make_predictions(**changes: object) -> Predictions:
    given = {
        "path": ("=a.png", "b.png"),
        "cluster": np.array([0, 3]),
        "confidence": np.array([0.75, 0.5], dtype=np.float32),
        "nearest": np.array([0, 1]),
        "likeness": np.array([-0.5, 0.25], dtype=np.float32),
        "unlike_score": np.array([0.5, 1.5], dtype=np.float32),
        "unlike": np.array([False, True]),
        "names": Names(known=(0, 1, -1, -1), classes=("=SUM(A1)", "b")),
    }
    return Predictions(**{**given, **changes})  # type: ignore[arg-type]


def test_the_csv_holds_text_and_no_formulas() -> None:
    out = io.StringIO()
    write_csv([make_predictions(), make_predictions()], out)
    rows = list(csv.DictReader(io.StringIO(out.getvalue())))
    assert len(rows) == 4
    assert tuple(rows[0]) == COLUMNS
    assert rows[0] == {
        "path": "=a.png",  # a path stays what it is, so that it can be opened
        "cluster": "0",
        "name": "'=SUM(A1)",
        "kind": "known",
        "confidence": "0.75",
        "nearest_known_class": "'=SUM(A1)",
        "likeness": "-0.5",
        "unlike": "no",
        "unlike_score": "0.5",
    }
    assert (rows[1]["name"], rows[1]["kind"], rows[1]["unlike"]) == ("cluster 3", "new", "yes")


def test_what_a_model_cannot_tell_is_empty() -> None:
    nan = np.full(2, np.nan, dtype=np.float32)
    made = make_predictions(nearest=np.array([-1, -1]), likeness=nan, unlike_score=nan, unlike=np.zeros(2, dtype=bool))
    out = io.StringIO()
    write_csv([made], out)
    row = next(csv.DictReader(io.StringIO(out.getvalue())))
    assert (row["nearest_known_class"], row["likeness"], row["unlike"], row["unlike_score"]) == ("", "", "", "")
    frame = made.to_frame()
    assert list(frame.columns) == list(COLUMNS)
    assert frame["unlike"].isna().all()


def test_a_table_that_was_not_finished_has_no_name(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"

    def fail() -> None:
        with open_whole(target) as file:
            file.write("half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert not list(tmp_path.iterdir())
    with open_whole(target) as file:
        file.write("\udce4 whole")  # a file name that is not UTF-8
    assert target.read_bytes() == b"\xe4 whole"

"""Whatever the method, the model of a run says of the run's images what the run said."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from gcdbench.core.errors import StoreError, WeightsError
from gcdbench.core.places import cache_dir
from gcdbench.datasets.catalogue import open_dataset
from gcdbench.images.image_store import prepare_store
from gcdbench.models.card_file import CARD
from gcdbench.plugins.manager import get_manager
from gcdbench.runs.saved_models import model_directory, open_model

SIZE = 64
SMALL = ("--dataset", "phantom", "--preset", "smoke", "--dataset-set", "n_per_class=8", "--set", f"image_size={SIZE}")
RUN = ("run", *SMALL, "--set", "epochs=1", "--workers", "1", "-q", "--json")
QUICK = ("simgcd", "gcd", "kmeans", "ss-kmeans", "cms")
SLOW = ("dccl", "orca", "uno-plus", "rs-plus", "legogcd", "nguf-approx", "medxplore")


@pytest.fixture
def ran(cli: Callable[..., Result], tmp_path: Path) -> Callable[..., Path]:
    """Run a method on a small phantom; gives the run's directory."""

    def run(method: str, *options: str) -> Path:
        if method == "medxplore":
            pytest.importorskip("gcdbench_medxplore")
            options = ("--set", "faac.k=4", *options)
        result = cli(*RUN, "--method", method, "--runs", tmp_path / "runs", *options)
        assert result.exit_code == 0, result.output
        [directory] = (tmp_path / "runs" / "phantom" / method).iterdir()
        return directory

    return run


def stored_pixels() -> np.ndarray:
    source = open_dataset("phantom", get_manager(), image_size=SIZE, options={"n_per_class": "8"})
    return prepare_store(source, SIZE, cache_dir(), workers=1).pixels


@pytest.mark.parametrize("method", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_the_model_repeats_what_the_run_predicted(ran: Callable[..., Path], method: str) -> None:
    directory = ran(method)
    with np.load(directory / "predictions" / "transductive.npz") as stored:
        ids, cluster, confidence = stored["ids"], stored["cluster"], stored["confidence"]
        anchored = bool(stored["anchored"])
    model = open_model(directory, directory.parent)
    made = model.predict_squares(stored_pixels()[ids])
    # CMS groups the images it is trained on in a way of its own; its model knows the groups' means.
    same = made.cluster == cluster
    assert same.all() or (method == "cms" and same.mean() > 0.5)
    np.testing.assert_allclose(made.confidence[same], confidence[same], atol=1e-4)
    split = json.loads((directory / "run.json").read_text())["split"]
    assert model.card.names.classes == tuple(split["old_classes"])
    if anchored:
        assert model.card.names.known[: len(split["old_classes"])] == tuple(range(len(split["old_classes"])))
    assert set(made.nearest_class) <= set(split["old_classes"])
    assert np.isfinite(made.unlike_score).all()


@pytest.mark.parametrize("views", ["online", "bank:2", "bank8:2", "rolling:2", "auto"])
def test_a_model_sees_images_in_the_precision_of_the_runs_test_views(ran: Callable[..., Path], views: str) -> None:
    directory = ran("simgcd", "--set", f"views={views}")
    model = open_model(directory, Path())
    with np.load(directory / "predictions" / "transductive.npz") as stored:
        made = model.predict_squares(stored_pixels()[stored["ids"]])
        assert np.array_equal(made.cluster, stored["cluster"])
        np.testing.assert_allclose(made.confidence, stored["confidence"], atol=2e-6)


def test_kmeans_on_features_as_they_are(ran: Callable[..., Path]) -> None:
    directory = ran("kmeans", "--set", "normalise=false")
    model = open_model(directory, directory.parent)
    assert model.card.predictor == "distance/1"
    with np.load(directory / "predictions" / "transductive.npz") as stored:
        made = model.predict_squares(stored_pixels()[stored["ids"]])
        assert np.array_equal(made.cluster, stored["cluster"])
        np.testing.assert_allclose(made.confidence, stored["confidence"], atol=1e-4)


def test_a_method_without_a_network_has_no_model_and_says_so(ran: Callable[..., Path]) -> None:
    directory = ran("pixels-kmeans")
    assert not (directory / CARD).exists()
    with pytest.raises(StoreError, match=r"\(pixels-kmeans, done\) has no saved model"):
        open_model(directory.name, directory.parents[2])


def test_a_model_is_found_by_id_path_and_card(ran: Callable[..., Path], tmp_path: Path) -> None:
    directory = ran("kmeans")
    runs = directory.parents[2]
    for name in (directory, str(directory), directory / CARD, directory.name, directory.name[:6]):
        assert model_directory(name, runs) == directory
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for file in (CARD, "model.safetensors"):
        (moved / file).write_bytes((directory / file).read_bytes())
    assert open_model(moved, tmp_path).card.method == "KMeans"
    with pytest.raises(StoreError, match="There is no run 'nonsense'"):
        model_directory("nonsense", runs)


def test_a_run_remembers_its_weights_and_a_model_alone_asks_for_them(ran: Callable[..., Path], tmp_path: Path) -> None:
    directory = ran("kmeans", "--set", "weights=none")
    assert open_model(directory, tmp_path).card.weights_sha256 == "none"
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for file in (CARD, "model.safetensors"):
        (moved / file).write_bytes((directory / file).read_bytes())
    with pytest.raises(WeightsError, match="trained on 'efficientnet-lite0' with weights none"):
        open_model(moved, tmp_path)
    assert open_model(moved, tmp_path, weights="none").card.backbone == "efficientnet-lite0"


def test_a_model_holds_no_name_of_a_file(cli: Callable[..., Result], tmp_path: Path) -> None:
    """Folder and file names of a patient are in no byte of what is passed on."""
    from PIL import Image

    rng = np.random.default_rng(0)
    root = tmp_path / "Doe-Jane-1970"
    for name in ("benign", "malignant"):
        for number in range(10):
            folder = root / name
            folder.mkdir(parents=True, exist_ok=True)
            pixels = rng.integers(0, 256, (40, 40, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"SmithJohn-{name}-{number}.png")
    options = ("--set", "epochs=1", "--set", f"image_size={SIZE}", "--set", "batch_size=8", "--preset", "smoke")
    dataset = f"folder:{root}"
    run = ("run", "-m", "simgcd", "-d", dataset, *options, "--workers", "1", "-q", "--accept-data-issues")
    result = cli(*run, "--runs", tmp_path / "runs")
    assert result.exit_code == 0, result.output
    [card] = (tmp_path / "runs").glob(f"*/*/*/{CARD}")
    for file in (CARD, "model.safetensors", "auxiliary.safetensors"):
        content = (card.parent / file).read_bytes()
        for telling in (b"SmithJohn", b"Doe-Jane", str(tmp_path).encode()):
            assert telling not in content, (file, telling)

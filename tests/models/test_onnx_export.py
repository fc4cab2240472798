"""An exported model predicts in onnxruntime what it predicts here, and says how to feed it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from gcdbench.core.errors import ConfigError, StoreError
from gcdbench.methods.configs import SimGCDConfig
from gcdbench.methods.simgcd import SimGCD
from gcdbench.models.card_file import change_names
from gcdbench.models.onnx_export import OUTPUTS, compare, export_onnx, run_session
from gcdbench.models.predict import Model, load_model
from gcdbench.testing.tiny import TinyBackbone, shrink, tiny_context, tiny_task
from gcdbench.views.augmentation import crop_centre, to_float

onnxruntime = pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxscript")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    data, task, _ = tiny_task()
    method = shrink(SimGCD)(SimGCDConfig(), task, tiny_context(epochs=1))
    method.fit(data)
    folder = tmp_path_factory.mktemp("model")
    method.save_model(folder)
    change_names(folder, classes=["Läsion", "normal"])
    return load_model(folder, load_backbone=TinyBackbone)


@pytest.fixture(scope="module")
def exported(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("onnx") / "model.onnx"
    agreement = export_onnx(model, target)
    assert agreement.good
    assert agreement.images == 16
    return target


def test_onnxruntime_gives_our_answer_for_any_number_of_images(model: Model, exported: Path) -> None:
    session = onnxruntime.InferenceSession(str(exported), providers=["CPUExecutionProvider"])
    data, _, _ = tiny_task(images=31, seed=4)
    for count in (1, 2, 31):
        pixels = data.unlabelled.store[:count]
        theirs = run_session(session, to_float(crop_centre(pixels, 14)).numpy())
        ours = model.predict_squares(pixels, embeddings=True)
        assert np.array_equal(theirs["cluster"], ours.cluster)
        np.testing.assert_allclose(theirs["confidence"], ours.confidence, atol=1e-5)
        np.testing.assert_allclose(theirs["embedding"], ours.embedding, atol=1e-4)
        np.testing.assert_allclose(theirs["likeness"].max(axis=1), ours.likeness, atol=1e-5)
        np.testing.assert_allclose(theirs["unlike_score"], ours.unlike_score, rtol=1e-3)
        np.testing.assert_allclose(theirs["probabilities"].sum(axis=1), 1.0, atol=1e-5)


def test_the_file_says_how_to_feed_it_and_what_clusters_are_called(exported: Path) -> None:
    held = onnx.load(exported)
    onnx.checker.check_model(held)
    said = {entry.key: entry.value for entry in held.metadata_props}
    assert json.loads(said["clusters"]) == ["Läsion", "normal", "cluster 2", "cluster 3"]
    card = json.loads(said["gcdbench.card"])
    assert card["preprocessing"]["image_size"] == 14
    assert "16 px" in said["preprocessing"]
    assert [output.name for output in held.graph.output] == list(OUTPUTS)
    assert [entry.name for entry in held.graph.input] == ["images"]


def test_the_file_holds_no_path_of_this_machine(exported: Path) -> None:
    content = exported.read_bytes()
    for telling in (str(Path(__file__).parents[2]), sys.prefix, str(Path.home()), ".py"):
        assert telling.encode() not in content


def test_a_file_that_predicts_something_else_is_not_written(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an exporter's fault would: the graph is another one than ours."""
    changed = torch.nn.Parameter(model.head.weight.flip(0))  # type: ignore[union-attr]
    before = model.head.weight  # type: ignore[union-attr]

    def exporting(*arguments: object, **settings: object) -> object:
        model.head.weight = changed  # type: ignore[union-attr]
        try:
            return export(*arguments, **settings)
        finally:
            model.head.weight = before  # type: ignore[union-attr]

    export = torch.onnx.export
    monkeypatch.setattr(torch.onnx, "export", exporting)
    with pytest.raises(StoreError, match="does not predict what this one does"):
        export_onnx(model, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_what_is_missing_is_said(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="no folder"):
        export_onnx(model, tmp_path / "no" / "model.onnx")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ConfigError, match="'onnxruntime', which is not installed") as caught:
        export_onnx(model, tmp_path / "model.onnx")
    assert "gcdbench[onnx]" in str(caught.value.hint)


def test_real_images_can_be_compared(model: Model, exported: Path) -> None:
    data, _, _ = tiny_task(images=70, seed=2)
    agreement = compare(model, exported, data.unlabelled.store)
    assert agreement.images == 70
    assert agreement.good

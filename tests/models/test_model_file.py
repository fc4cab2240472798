"""A saved model predicts by itself, as the method did, and a damaged or foreign one is refused."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import nn

from gcdbench.core.errors import StoreError, WeightsError
from gcdbench.core.identity import digest
from gcdbench.methods.configs import SimGCDConfig
from gcdbench.methods.simgcd import SimGCD
from gcdbench.models.card_file import change_names, read_card
from gcdbench.models.model_card import ModelCard
from gcdbench.models.model_file import read_auxiliary
from gcdbench.models.predict import load_model
from gcdbench.testing.tiny import TinyBackbone, shrink, tiny_context, tiny_task


class WithExtra(shrink(SimGCD)):  # type: ignore[misc]
    def extra_modules(self) -> dict[str, nn.Module]:
        return {"gate": nn.Conv2d(3, 4, 3)}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[WithExtra, Path]:
    data, task, _ = tiny_task()
    method = WithExtra(SimGCDConfig(), task, tiny_context())
    method.fit(data)
    directory = tmp_path_factory.mktemp("model")
    method.save_model(directory)
    return method, directory


@pytest.fixture
def copy(trained: tuple[WithExtra, Path], tmp_path: Path) -> Path:
    for file in trained[1].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def write_first_version(directory: Path, trained: tuple[WithExtra, Path]) -> None:
    """The files as they were before names and calibration."""
    tensors = load_file(trained[1] / "model.safetensors")
    save_file({k: v for k, v in tensors.items() if not k.startswith("reference.")}, directory / "model.safetensors")
    card = {
        "predictor": "cosine/1",
        "backbone": "tiny",
        "weights_sha256": "none",
        "image_size": 14,
        "k": 4,
        "k_old": 2,
        "temperature": 0.1,
        "method": "SimGCD",
    }
    (directory / "model.json").write_text(json.dumps(card))


def test_the_saved_model_predicts_the_same(trained: tuple[WithExtra, Path]) -> None:
    method, directory = trained
    data, _, _ = tiny_task()
    expected = method.predict(data.unlabelled)
    got = load_model(directory, load_backbone=TinyBackbone).predict_squares(data.unlabelled.pixels(), embeddings=True)
    assert np.array_equal(got.cluster, expected.cluster)
    assert got.embedding is not None
    assert expected.embedding is not None
    np.testing.assert_allclose(got.embedding, expected.embedding, atol=1e-6)
    np.testing.assert_allclose(got.confidence, expected.confidence, atol=1e-6)  # type: ignore[arg-type]


def test_a_file_of_the_first_version_loads_and_predicts(trained: tuple[WithExtra, Path], tmp_path: Path) -> None:
    write_first_version(tmp_path, trained)
    data, _, _ = tiny_task()
    expected = trained[0].predict(data.unlabelled)
    got = load_model(tmp_path, load_backbone=TinyBackbone).predict_squares(data.unlabelled.pixels())
    assert np.array_equal(got.cluster, expected.cluster)
    np.testing.assert_allclose(got.confidence, expected.confidence, atol=1e-6)  # type: ignore[arg-type]
    assert set(got.name) <= {"class 0", "class 1", "cluster 2", "cluster 3"}
    assert not got.unlike.any()
    assert np.isnan(got.unlike_score).all()
    named = change_names(tmp_path, classes=["a", "b"])
    assert named.names.classes == ("a", "b")
    assert load_model(tmp_path, load_backbone=TinyBackbone).card.names.of_cluster(1) == "b"


def test_loading_needs_no_method_code(trained: tuple[WithExtra, Path]) -> None:
    """Neither a method nor the engine: only what is below training."""
    code = f"""
import sys
from pathlib import Path
from gcdbench.models.predict import load_model
from gcdbench.models.backbone import Backbone
from torch import nn
import torch
class TinyBackbone(Backbone):
    name, weights_sha256, channels, stride = "tiny", "none", 12, 4
    def __init__(self):
        super().__init__()
        self.prefix = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.ReLU())
        self.tail = nn.Sequential(nn.Conv2d(8, 12, 3, 2, 1, bias=False), nn.BatchNorm2d(12), nn.ReLU())
load_model(Path({str(trained[1])!r}), load_backbone=TinyBackbone)
assert not [name for name in sys.modules if name.startswith(("gcdbench.methods", "gcdbench.training"))]
"""
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})


def test_the_model_holds_what_predicts_and_the_rest_lies_apart(trained: tuple[WithExtra, Path]) -> None:
    method, directory = trained
    model, rest = load_file(directory / "model.safetensors"), read_auxiliary(directory)
    assert {name.split(".")[0] for name in model} == {"tail", "prototypes", "reference"}
    assert {name.split(".")[0] for name in rest} == {"projector", "gate"}
    assert torch.equal(rest["gate.weight"], method.extras["gate"].weight)  # type: ignore[arg-type]
    card = json.loads((directory / "model.json").read_text())
    assert card["predictor"] == "cosine/1"
    assert card["hidden"] == "float32"
    assert (card["backbone"], card["k"], card["k_old"], card["preprocessing"]["image_size"]) == ("tiny", 4, 2, 14)


def test_state_dict_and_auxiliary_state_restore_a_fresh_method(trained: tuple[WithExtra, Path]) -> None:
    method, directory = trained
    data, task, _ = tiny_task()
    fresh = WithExtra(SimGCDConfig(), task, tiny_context(seed=5))
    fresh.load_state_dict(load_file(directory / "model.safetensors"))
    fresh.load_auxiliary_state(read_auxiliary(directory))
    assert np.array_equal(fresh.predict(data.unlabelled).cluster, method.predict(data.unlabelled).cluster)
    assert torch.equal(fresh.extras["gate"].weight, method.extras["gate"].weight)  # type: ignore[arg-type]


def test_another_backbone_is_refused(trained: tuple[WithExtra, Path]) -> None:
    def other() -> TinyBackbone:
        backbone = TinyBackbone()
        backbone.weights_sha256 = "f" * 64
        return backbone

    with pytest.raises(WeightsError, match="trained on 'tiny'"):
        load_model(trained[1], load_backbone=other)


def edit(directory: Path, sealed: bool = False, **changes: Any) -> None:
    table = json.loads((directory / "model.json").read_text())
    for key, value in changes.items():
        outer, _, inner = key.partition("__")
        if inner:
            table[outer][inner] = value
        else:
            table[outer] = value
    if sealed:
        del table["sha256"]
        table["sha256"] = digest(table)
    (directory / "model.json").write_text(json.dumps(table))


def test_what_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no saved model"):
        load_model(tmp_path, load_backbone=TinyBackbone)
    (tmp_path / "model.json").write_text(json.dumps({"a": 1}))
    with pytest.raises(StoreError, match="not the card"):
        load_model(tmp_path, load_backbone=TinyBackbone)


def test_a_run_that_was_imported_without_weights_is_said(copy: Path) -> None:
    (copy / "model.safetensors").unlink()
    with pytest.raises(StoreError, match=r"'model\.safetensors' of the model in .* are missing"):
        load_model(copy, load_backbone=TinyBackbone)


def test_a_changed_digit_is_noticed(copy: Path) -> None:
    edit(copy, temperature=0.2)
    with pytest.raises(StoreError, match="damaged"):
        read_card(copy)


@pytest.mark.parametrize("where", [0.3, 0.6, 0.99])
def test_a_flipped_byte_of_the_weights_is_noticed(copy: Path, where: float) -> None:
    content = bytearray((copy / "model.safetensors").read_bytes())
    content[int(where * len(content))] ^= 1
    (copy / "model.safetensors").write_bytes(bytes(content))
    with pytest.raises(StoreError, match="damaged"):
        load_model(copy, load_backbone=TinyBackbone)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"predictor": "cosine/9"}, "cosine/9"),
        ({"schema": 3}, "newer version"),
        ({"k": 5}, "do not fit"),
        ({"k": -4}, "do not make a model"),
        ({"k": True}, "whole number"),
        ({"temperature": 0.0}, "above 0"),
        ({"temperature": "warm"}, "above 0"),
        ({"temperature": 10**400}, "above 0"),
        ({"preprocessing__mean": [0, 10**400, 0]}, "three numbers"),
        ({"tail": "borrowed"}, "not one of"),
        ({"names__known": [0, 1, 7, -1]}, "do not fit the number"),
        ({"names__clusters": ["x"]}, "do not fit the number"),
        ({"names__rejected": [9]}, "do not fit the number"),
        ({"names__classes": [1, 2]}, "list of strings"),
        ({"preprocessing__stored_side": 10**9}, "not cut from"),
        ({"preprocessing": []}, "not a table"),
    ],
)
def test_a_card_that_makes_no_sense_is_one_sentence(copy: Path, changes: dict[str, Any], said: str) -> None:
    """Also where whoever changed it made the seal fit again."""
    edit(copy, sealed=True, **changes)
    with pytest.raises(StoreError, match=said):
        load_model(copy, load_backbone=TinyBackbone)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = ("schema", "predictor", "k", "k_old", "temperature", "names", "preprocessing", "unlikeness", "hidden", "method")


@settings(max_examples=200, deadline=None)
@given(changes=st.dictionaries(st.sampled_from(KEYS), JSON, min_size=1, max_size=3))
def test_no_card_breaks_the_reader(
    trained: tuple[WithExtra, Path], tmp_path_factory: pytest.TempPathFactory, changes: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("card")
    table = {**json.loads((trained[1] / "model.json").read_text()), **changes}
    del table["sha256"]
    with contextlib.suppress(ValueError):  # NaN has no digest
        table["sha256"] = digest(table)
    (folder / "model.json").write_text(json.dumps(table))
    with contextlib.suppress(StoreError):  # refused in a sentence is as good as read
        assert isinstance(read_card(folder), ModelCard)


@pytest.mark.parametrize("content", ["[" * 100_000, '{"k": ' + "9" * 5000 + "}", "[]", "null", '"x"', ""])
def test_no_text_breaks_the_reader(tmp_path: Path, content: str) -> None:
    (tmp_path / "model.json").write_text(content)
    with pytest.raises(StoreError):
        read_card(tmp_path)


def test_names_are_stored_merged_and_rejected(copy: Path) -> None:
    change_names(copy, classes=["polyps", "colitis"])
    names = change_names(copy, clusters={2: "scar", 3: "polyps"}, rejected=[2]).names
    assert [names.of_cluster(c) for c in range(4)] == ["polyps", "colitis", "scar", "polyps"]
    assert [names.is_known(c) for c in range(4)] == [True, True, False, True]
    assert names.rejected == (2,)
    assert read_card(copy).names == names
    data, _, _ = tiny_task()
    made = load_model(copy, load_backbone=TinyBackbone).predict_squares(data.unlabelled.pixels())
    assert set(made.name) <= {"polyps", "colitis", "scar"}
    assert {kind for cluster, kind in zip(made.cluster, made.kind, strict=True) if cluster == 2} <= {"rejected"}
    with pytest.raises(StoreError, match="no cluster 4"):
        change_names(copy, clusters={4: "x"})
    with pytest.raises(StoreError, match="knows 2 classes"):
        change_names(copy, classes=["one"])

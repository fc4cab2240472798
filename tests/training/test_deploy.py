"""A saved model predicts by itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from gcdbench.core.errors import StoreError, WeightsError
from gcdbench.methods.simgcd import SimGCD, SimGCDConfig
from gcdbench.testing.tiny import TinyBackbone, shrink, tiny_context, tiny_task
from gcdbench.training.deploy import load_auxiliary, load_model


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


def test_the_saved_model_predicts_the_same(trained: tuple[WithExtra, Path]) -> None:
    method, directory = trained
    data, _, _ = tiny_task()
    expected = method.predict(data.unlabelled)
    got = load_model(directory, load_backbone=TinyBackbone).predict(data.unlabelled)
    assert np.array_equal(got.cluster, expected.cluster)
    assert got.embedding is not None
    assert expected.embedding is not None
    assert got.embedding.tobytes() == expected.embedding.tobytes()
    assert got.confidence is not None
    assert np.array_equal(got.confidence, expected.confidence)  # type: ignore[arg-type]
    assert got.anchored
    assert got.k_hat == 4


def test_loading_needs_no_method_code(trained: tuple[WithExtra, Path]) -> None:
    code = f"""
import sys
from pathlib import Path
from gcdbench.training.deploy import load_model
from gcdbench.testing.tiny import TinyBackbone
load_model(Path({str(trained[1])!r}), load_backbone=TinyBackbone)
assert not [name for name in sys.modules if name.startswith("gcdbench.methods.") and not name.endswith(".base")]
"""
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})


def test_the_model_holds_tail_and_prototypes_and_the_rest_lies_apart(trained: tuple[WithExtra, Path]) -> None:
    method, directory = trained
    model, rest = load_file(directory / "model.safetensors"), load_auxiliary(directory)
    assert {name.split(".")[0] for name in model} == {"tail", "prototypes"}
    assert {name.split(".")[0] for name in rest} == {"projector", "gate"}
    assert torch.equal(rest["gate.weight"], method.extras["gate"].weight)  # type: ignore[arg-type]
    card = json.loads((directory / "model.json").read_text())
    assert card["predictor"] == "cosine/1"
    assert (card["backbone"], card["k"], card["k_old"], card["image_size"]) == ("tiny", 4, 2, 14)


def test_state_dict_and_auxiliary_state_restore_a_fresh_method(trained: tuple[WithExtra, Path]) -> None:
    method, directory = trained
    data, task, _ = tiny_task()
    fresh = WithExtra(SimGCDConfig(), task, tiny_context(seed=5))
    fresh.load_state_dict(load_file(directory / "model.safetensors"))
    fresh.load_auxiliary_state(load_auxiliary(directory))
    assert np.array_equal(fresh.predict(data.unlabelled).cluster, method.predict(data.unlabelled).cluster)
    assert torch.equal(fresh.extras["gate"].weight, method.extras["gate"].weight)  # type: ignore[arg-type]


def test_another_backbone_is_refused(trained: tuple[WithExtra, Path]) -> None:
    def other() -> TinyBackbone:
        backbone = TinyBackbone()
        backbone.weights_sha256 = "f" * 64
        return backbone

    with pytest.raises(WeightsError, match="trained on 'tiny'"):
        load_model(trained[1], load_backbone=other)


def test_what_is_missing_or_unknown_is_told(trained: tuple[WithExtra, Path], tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no saved model"):
        load_model(tmp_path, load_backbone=TinyBackbone)
    card = json.loads((trained[1] / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps({**card, "predictor": "cosine/9"}))
    with pytest.raises(StoreError, match="cosine/9"):
        load_model(tmp_path, load_backbone=TinyBackbone)
    (tmp_path / "model.json").write_text(json.dumps({"a": 1}))
    with pytest.raises(StoreError, match="not the card"):
        load_model(tmp_path, load_backbone=TinyBackbone)

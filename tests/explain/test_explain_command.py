"""``gcdbench explain`` and ``gcdbench cost`` on real run directories, made with a tiny network."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from PIL import Image

from gcdbench.plugins.manager import PluginManager, get_manager
from gcdbench.runs.execution import Execution
from gcdbench.runs.placement import Placement
from gcdbench.runs.plan import make_plan
from gcdbench.runs.request import Request
from gcdbench.runs.runner import execute
from gcdbench.testing.stored import edit_sealed

PLUGIN = '''
import torch
from gcdbench.api import SimGCD
from gcdbench.plugins import BackboneSpec, MethodSpec, hookimpl
from gcdbench.testing.tiny import TinyBackbone, shrink


def load_tiny(weights):
    return TinyBackbone()


class Small(shrink(SimGCD)):
    """No attention of its own."""


class Looking(Small):
    """A learnt channel weighting as attention, to see that training-only weights come back."""

    def extra_modules(self):
        return {"gaze": torch.nn.Conv2d(self.backbone.channels, 1, 1)}

    def attention(self, tail):
        return self.extras["gaze"](tail.map).squeeze(1)

    def attention_alternatives(self, tail):
        return {"first channel": tail.map[:, 0]}


@hookimpl
def gcdbench_methods():
    config = "gcdbench.api:SimGCDConfig"
    return [
        MethodSpec(name="small", factory=f"{__name__}:Small", config=config, trained=True),
        MethodSpec(name="looking", factory=f"{__name__}:Looking", config=config, trained=True),
    ]


@hookimpl
def gcdbench_backbones():
    return [BackboneSpec(name="tiny", factory=f"{__name__}:load_tiny")]
'''


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> tuple[Path, Path, dict[str, str]]:
    """The plugin file, the run store, and the run ids by method."""
    folder = tmp_path_factory.mktemp("explained")
    file = folder / "plugin_for_explain.py"
    file.write_text(PLUGIN)
    manager = PluginManager(points=[], files=[file])
    ids = {}
    for method in ("small", "looking"):
        request = Request(
            method=method,
            dataset="phantom",
            overrides={"backbone": "tiny", "image_size": "32", "views": "bank:2", "epochs": "2", "batch_size": "16"},
            dataset_options={"n_per_class": "12"},
        )
        placement = Placement(runs=folder / "runs", workers=1, cache=shared_cache)
        ids[method] = execute(
            Execution(plan=make_plan(request, manager), placement=placement, manager=manager)
        ).directory.path.name
    return file, folder / "runs", ids


@pytest.fixture
def call(
    trained: tuple[Path, Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch, cli: Callable[..., Result]
) -> Iterator[Callable[..., Result]]:
    file, runs, _ = trained
    monkeypatch.setenv("GCDBENCH_PLUGINS", str(file))
    get_manager.cache_clear()
    yield lambda *arguments: cli(*arguments, "--runs", runs)
    get_manager.cache_clear()


def test_pictures_and_numbers_of_one_run(call: Callable[..., Result], trained: tuple, tmp_path: Path) -> None:
    result = call("explain", trained[2]["looking"], "--count", "3", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "pointing game" in result.output
    numbers = json.loads((tmp_path / "out" / "explanation.json").read_text())
    maps = numbers["localisation"]["looking"]
    assert list(maps) == ["attention", "feature energy", "first channel"]
    assert all(0 <= score["pointing"] <= 100 and score["n"] > 0 for score in maps.values())
    pictures = sorted(path.name for path in (tmp_path / "out" / "maps").iterdir())
    assert len(pictures) == 3
    for path in (tmp_path / "out").rglob("*.png"):
        assert np.asarray(Image.open(path)).std() > 0


def test_a_run_on_a_folder_of_ones_own(call: Callable[..., Result], trained: tuple, tmp_path: Path) -> None:
    """The record names the dataset by its made card; the images are found again by what the user wrote."""
    rng = np.random.default_rng(0)
    for label in "ab":
        (tmp_path / "mine" / label).mkdir(parents=True)
        for index in range(12):
            pixels = rng.integers(0, 256, (36, 36, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "mine" / label / f"{index}.png")
    settings = ("backbone=tiny", "image_size=32", "views=bank:2", "epochs=1", "batch_size=8")
    assigned = [text for setting in settings for text in ("--set", setting)]
    ran = call("run", "-m", "small", "-d", f"folder:{tmp_path / 'mine'}", *assigned)
    assert ran.exit_code == 0, ran.output
    assert "duration unknown" not in ran.stdout
    run = Path(ran.stdout.rpartition("Stored in ")[2].splitlines()[0].strip()).name
    result = call("explain", run, "--count", "2", "--out", tmp_path / "out", "--json")
    assert result.exit_code == 0, result.output
    assert len(list((tmp_path / "out" / "maps").iterdir())) == 2


def test_masks_are_scored_without_pictures(call: Callable[..., Result], trained: tuple, tmp_path: Path) -> None:
    result = call("explain", trained[2]["small"], "--count", "0", "--out", tmp_path / "out", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["localisation"]["small"]["feature energy"]["n"] > 0
    assert not (tmp_path / "out" / "maps").exists()


def test_images_without_a_lesion_are_drawn_and_not_scored(
    call: Callable[..., Result], trained: tuple, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gcdbench.reporting.explain.images import Images

    monkeypatch.setattr(Images, "masks", lambda self, ids: np.zeros((len(ids), 32, 32), dtype=np.bool_))
    result = call("explain", trained[2]["small"], "--count", "1", "--out", tmp_path / "out", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["localisation"] == {}
    assert "shows no lesion in these images" in found["notes"][-1]


def test_a_run_of_another_split_is_named(call: Callable[..., Result], trained: tuple, tmp_path: Path) -> None:
    _, runs, ids = trained
    record = next(runs.glob(f"*/*/{ids['small']}")) / "run.json"
    content = record.read_text()
    edit_sealed(record, lambda other: other["identity"].update(manifest_sha256="0" * 64))
    try:
        arguments = ("explain", ids["looking"], ids["small"], "--count", "0", "--out", tmp_path / "out", "--json")
        notes = json.loads(call(*arguments).stdout)["notes"]
    finally:
        record.write_text(content)
    assert [note for note in notes if "another split" in note and note.startswith("small")]
    assert not [note for note in notes if "another split" in note and note.startswith("looking")]


def test_a_method_without_attention_shows_its_energy(
    call: Callable[..., Result], trained: tuple, tmp_path: Path
) -> None:
    result = call("explain", trained[2]["small"], "--count", "1", "--out", tmp_path / "out", "--json")
    assert list(json.loads(result.stdout)["localisation"]["small"]) == ["feature energy"]


def test_chosen_images_and_another_evaluation_set(call: Callable[..., Result], trained: tuple, tmp_path: Path) -> None:
    with np.load(next(trained[1].glob(f"*/*/{trained[2]['small']}/predictions/inductive.npz"))) as archive:
        number = int(archive["ids"][1])
    result = call("explain", trained[2]["small"], "--on", "inductive", "--images", number, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out" / "maps" / f"000-image-{number}.png").exists()
    missing = call("explain", trained[2]["small"], "--images", number, "--out", tmp_path / "out")
    assert missing.exit_code == 2
    assert "not in the evaluation set" in missing.stderr


def test_several_runs_are_compared_in_one_figure(call: Callable[..., Result], trained: tuple, tmp_path: Path) -> None:
    result = call("explain", trained[2]["looking"], trained[2]["small"], "--out", tmp_path / "out", "--json")
    found = json.loads(result.stdout)
    assert set(found["localisation"]) == {"looking", "small"}
    assert any(path.endswith("comparison.png") for path in found["files"])


def test_masks_of_another_dataset(call: Callable[..., Result], trained: tuple, tmp_path: Path) -> None:
    arguments = ("explain", trained[2]["small"], "--dataset", "phantom", "--dataset-set", "n_per_class=4")
    found = json.loads(call(*arguments, "--out", tmp_path / "out", "--json").stdout)
    assert found["localisation"]["small"]["feature energy"]["n"] == 32
    assert not found["confused_pairs"]
    refused = call("explain", trained[2]["small"], "--dataset-set", "n_per_class=4")
    assert "needs --dataset" in refused.stderr


def test_the_attention_is_the_trained_one(trained: tuple) -> None:
    """What comes back from auxiliary.safetensors is what the run ended with, not a fresh initialisation."""
    from gcdbench.models.model_file import read_auxiliary
    from gcdbench.reporting.explain.restore import restore
    from gcdbench.runs.directory import RunDirectory

    file, runs, ids = trained
    manager = PluginManager(points=[], files=[file])
    path = next(runs.glob(f"*/*/{ids['looking']}"))
    method = restore(RunDirectory(path), manager).method
    stored = read_auxiliary(path)["gaze.weight"]
    assert np.array_equal(method.extras["gaze"].weight.detach().numpy(), stored.numpy())


def test_without_the_plugin_the_saved_model_still_serves(trained: tuple, tmp_path: Path) -> None:
    from gcdbench.reporting.explain.restore import restore
    from gcdbench.runs.directory import RunDirectory

    file, runs, ids = trained
    backbone_only = tmp_path / "plugin_with_backbone_only.py"
    backbone_only.write_text(file.read_text().replace("@hookimpl\ndef gcdbench_methods", "def no_methods"))
    manager = PluginManager(points=[], files=[backbone_only])
    found = restore(RunDirectory(next(runs.glob(f"*/*/{ids['looking']}"))), manager)
    assert "looking" in found.note
    assert found.method is None
    assert found.model.card.method == "Looking"


def test_an_unfinished_run_is_refused(trained: tuple, tmp_path: Path) -> None:
    import shutil

    from gcdbench.core.errors import StoreError
    from gcdbench.reporting.explain.restore import restore
    from gcdbench.runs.directory import RunDirectory

    file, runs, ids = trained
    copy = tmp_path / "copy"
    shutil.copytree(next(runs.glob(f"*/*/{ids['small']}")), copy)
    edit_sealed(copy / "run.json", lambda record: record.update(status="failed"))
    with pytest.raises(StoreError, match="failed, not done"):
        restore(RunDirectory(copy), PluginManager(points=[], files=[file]))


def test_cost_is_the_same_for_a_method_with_training_only_modules(call: Callable[..., Result], trained: tuple) -> None:
    ids = trained[2]
    result = call("cost", ids["small"], ids["looking"], "--repeats", "2", "--batch", "2", "--json")
    small, looking = json.loads(result.stdout)
    for key in ("parameters", "trained_parameters", "flops", "weights_mb", "activations_mb"):
        assert small[key] == looking[key], key
    assert small["latency_ms"] > 0
    text = call("cost", ids["small"], "--repeats", "1", "--batch", "1").output
    assert "FLOPs" in text
    assert "peak memory" in text


def test_cost_is_not_measured_on_a_device_that_is_not_there(call: Callable[..., Result], trained: tuple) -> None:
    refused = call("cost", trained[2]["small"], "--device", "cuda:99")
    assert refused.exit_code == 2
    assert "no device 'cuda:99'" in refused.stderr

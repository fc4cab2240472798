"""timm's networks as backbones: cut where they should be, with the weights they should have, or refused."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from click.testing import Result

from gcdbench.core.errors import ConfigError, UnknownName, WeightsError
from gcdbench.models.timm_weights import locate_timm
from gcdbench.models.torchvision_shim import import_torchvision
from gcdbench.models.weights import file_sha256
from gcdbench.plugins.manager import get_manager

pytest.importorskip("huggingface_hub")
import_torchvision()
timm = pytest.importorskip("timm")


def load(name: str, weights: str | None = "none") -> Any:
    return get_manager().get("backbones", f"timm:{name}").load()(weights)


def images(count: int, size: int) -> torch.Tensor:
    return torch.randn(count, 3, size, size, generator=torch.Generator().manual_seed(0))


CASES = {
    "resnet18": ("layer4.", (512, 3, 3), True, 32),
    "convnext_atto": ("stages.3.", (320, 3, 3), True, 32),
    "mobilenetv3_small_100": ("blocks.4.", (576, 3, 3), True, 32),
    "densenet121": ("features.transition3.", (1024, 3, 3), True, 32),
    "vit_tiny_patch16_224": ("blocks.11.", (192, 6, 6), False, 16),
    "mambaout_femto": ("stages.3.", (288, 3, 3), True, 32),  # channels last
    "deit_tiny_distilled_patch16_224": ("blocks.11.", (192, 6, 6), False, 16),  # two tokens before the patches
    "vit_tiny_r_s16_p8_224": ("blocks.11.", (192, 3, 3), False, 32),  # convolutions before patches of several cells
    "vit_small_r26_s32_224": ("blocks.11.", (384, 3, 3), False, 32),  # and before patches of one cell
    "vitamin_small_224": ("blocks.13.", (384, 6, 6), False, 16),  # the same without a class token
}


@pytest.mark.parametrize("name", CASES)
def test_the_last_stage_trains_and_the_map_is_timms(name: str) -> None:
    """At a size that is not the network's own; the tail's first parameters tell where the cut is."""
    begins, shape, pools_map, stride = CASES[name]
    network = load(name).eval()
    flexible = {"dynamic_img_size": True} if name.startswith(("vit", "deit")) else {}
    whole = timm.create_model(name, num_classes=0, **flexible).eval()
    parts = {**network.prefix.part.network.state_dict(), **network.tail.part.state_dict()}
    whole.load_state_dict(parts, strict="fc_norm" not in dict(whole.named_children()))
    assert next(iter(network.tail.part.state_dict())).startswith(begins)
    assert not any(parameter.requires_grad for parameter in network.prefix.parameters())
    with torch.no_grad():
        output = network.run_tail(network.prefix(images(2, 96)))
        expected = whole.forward_features(images(2, 96))
    if expected.ndim == 3:
        special = expected.shape[1] - shape[1] * shape[2]
        mean = whole.fc_norm(expected.mean(dim=1))
        torch.testing.assert_close(output.pooled, expected[:, 0] if special else mean)
        expected = expected[:, special:].transpose(1, 2).reshape(2, *shape)
    elif expected.shape[1:] != shape:
        expected = expected.permute(0, 3, 1, 2)
    torch.testing.assert_close(output.map, expected, rtol=1e-4, atol=1e-5)
    assert tuple(output.map.shape[1:]) == shape
    assert (network.channels, network.pools_map, network.stride) == (shape[0], pools_map, stride)
    if pools_map:
        torch.testing.assert_close(output.pooled, output.map.mean(dim=(2, 3)))
    assert (network.name, network.weights_sha256) == (f"timm:{name}", "none")
    assert tuple(network.mean) == tuple(whole.pretrained_cfg["mean"])


def test_gradients_reach_the_tail_and_nothing_else() -> None:
    network = load("vit_tiny_patch16_224")
    network.train()
    assert not network.prefix.training
    hidden = network.prefix(images(2, 64))
    assert hidden.ndim == 4
    assert not hidden.requires_grad
    network.run_tail(hidden).pooled.square().sum().backward()
    assert all(parameter.grad is not None for parameter in network.tail.parameters())


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("crossvit_tiny_240", "neither a feature map nor tokens"),
        ("pit_ti_224", "not a square grid"),
        ("cait_xxs24_224", "no last stage"),
        ("mvitv2_tiny", "no last stage"),
        ("nest_tiny", "no last stage"),
        ("coat_tiny", "neither a feature map nor tokens"),
        ("tnt_s_patch16_224", "no last stage"),
    ],
)
def test_networks_without_a_map_or_a_last_stage_are_refused_in_a_sentence(name: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        load(name)
    assert f"timm:{name}" in caught.value.message


def test_unknown_names_get_the_nearest_match() -> None:
    with pytest.raises(UnknownName, match="did you mean 'resnet50'"):
        load("resnet5o")
    with pytest.raises(UnknownName, match=r"did you mean 'vit_small_patch16_224\.dino'"):
        load("vit_small_patch16_224.dina")
    for name, problem in (("timm", "needs an argument"), ("timm:", "needs an argument"), ("resnet18:x", "takes no")):
        with pytest.raises(ConfigError, match=problem):
            get_manager().get("backbones", name)


def test_a_size_that_does_not_fit_is_refused_in_a_sentence() -> None:
    with pytest.raises(ConfigError, match="multiple of 16 px, not of 90 px"):
        load("vit_tiny_patch16_224").prefix(images(1, 90))
    with pytest.raises(ConfigError, match="of 224 px, not of 96 px"):
        load("eva02_tiny_patch14_224").prefix(images(1, 96))


@pytest.mark.parametrize(
    ("name", "side", "said", "advice"),
    [
        ("maxvit_rmlp_pico_rw_256", 128, "of 256 px, not of 128 px", "image_size=256"),
        ("efficientformer_l1", 96, "of 224 px, not of 96 px", "image_size=224"),
        ("vit_tiny_patch16_224", 90, "multiple of 16 px, not of 90 px", "nearest is --set image_size=96"),
        ("vit_tiny_patch16_224", 5, "multiple of 16 px, not of 5 px", "nearest is --set image_size=16"),
    ],
)
def test_a_size_that_either_half_cannot_take_is_refused(name: str, side: int, said: str, advice: str) -> None:
    """Of the first two only the tail stumbles: the first half runs, and a bank of its outputs would be made."""
    network = load(name)
    network.train()
    with pytest.raises(ConfigError, match=said) as caught:
        network.check_size(side)
    assert advice in str(caught.value.hint)
    network.check_size(network.prefix.native)
    assert network.tail.training
    assert all(parameter.grad is None for parameter in network.parameters())


def test_the_authors_networks_name_the_nearest_size() -> None:
    with pytest.raises(ConfigError, match="multiple of 14 px, not of 96 px") as caught:
        get_manager().get("backbones", "dinov2-vits14").load()("none").check_size(96)
    assert "nearest is --set image_size=98;" in str(caught.value.hint)
    assert "image_size=518" in str(caught.value.hint)


@pytest.mark.parametrize("method", ["kmeans", "simgcd"])
def test_a_run_at_a_wrong_size_ends_in_a_sentence(
    method: str, cli: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With frozen features as with views, and before any of them is made."""
    monkeypatch.setenv("GCDBENCH_CACHE", str(tmp_path / "cache"))
    command = ["run", "-m", method, "-d", "phantom", "--preset", "smoke", "--set", "weights=none", "--quiet"]
    result = cli(*command, "--backbone", "timm:efficientformer_l1")
    assert result.exit_code == 2
    assert "takes images of 224 px, not of 96 px" in result.stderr
    assert not [path.name for path in (tmp_path / "cache").iterdir() if path.name in ("banks", "features")]


def test_random_networks_are_always_the_same_and_leave_the_global_stream_alone() -> None:
    state = torch.get_rng_state()
    first, second = load("mobilenetv3_small_100"), load("mobilenetv3_small_100")
    assert torch.equal(torch.get_rng_state(), state)
    for name, value in first.state_dict().items():
        assert torch.equal(value, second.state_dict()[name])


def save(name: str, path: Path) -> dict[str, torch.Tensor]:
    """A weight file as timm publishes it: with a classifier."""
    state: dict[str, torch.Tensor] = timm.create_model(name, num_classes=10).state_dict()
    torch.save(state, path)
    return state


def test_a_given_file_is_loaded_and_its_digest_is_the_identity(tmp_path: Path) -> None:
    path = tmp_path / "mine.pth"
    state = save("mobilenetv3_small_100", path)
    network = load("mobilenetv3_small_100", str(path))
    assert torch.equal(network.tail.part.blocks.get_submodule("5")[0].conv.weight, state["blocks.5.0.conv.weight"])
    digest = file_sha256(path)
    assert network.weights_sha256 == digest
    spec = get_manager().get("backbones", "timm:mobilenetv3_small_100")
    assert spec.weights_sha256(str(path), load=False) == digest
    with pytest.raises(WeightsError, match="does not fit"):
        load("resnet18", str(path))
    with pytest.raises(WeightsError, match="no weight file"):
        load("resnet18", str(tmp_path / "absent.pth"))


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("vit_tiny_patch16_224", {"pos_embed": torch.zeros(3)}),
        ("vit_tiny_patch16_224", {"patch_embed.proj.weight": torch.zeros(2, 3, 4)}),
        ("eva02_tiny_patch14_224", {"patch_embed.proj.weight": torch.zeros(3)}),
    ],
)
def test_entries_of_odd_shapes_are_one_sentence(name: str, changes: dict[str, torch.Tensor], tmp_path: Path) -> None:
    """timm's own renaming, which runs where a name is missing, stumbles over them in many ways."""
    state = timm.create_model(name).state_dict() | changes
    del state["norm.weight" if "norm.weight" in state else "fc_norm.weight"]
    torch.save(state, tmp_path / "odd.pth")
    with pytest.raises(WeightsError, match="does not fit") as caught:
        load(name, str(tmp_path / "odd.pth"))
    assert "\n" not in caught.value.message


def test_weights_come_from_timms_cache_and_are_asked_for_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is downloaded where the cache has the file; a machine that is offline is told what to do."""
    import huggingface_hub
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    published = timm.get_pretrained_cfg("mobilenetv3_small_100")
    asked: list[str] = []

    def offline(url: str) -> None:
        asked.append(url.rpartition("/")[2])
        raise ConnectionError("no connection")

    def lost(repository: str, name: str) -> str:
        asked.append(f"download of {name}")
        raise LocalEntryNotFoundError("no connection any more")

    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", offline)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lost)
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda repository, name: None)
    monkeypatch.setattr("gcdbench.models.weights.download", lambda url, target: False)
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    with pytest.raises(WeightsError) as caught:
        locate_timm("mobilenetv3_small_100", published, None)
    assert asked == ["model.safetensors"]  # and no download was begun, which would ask for half a minute
    assert "--set weights=" in str(caught.value.hint)
    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", lambda url: None)
    with pytest.raises(WeightsError):
        locate_timm("mobilenetv3_small_100", published, None)
    assert asked == ["model.safetensors", "download of model.safetensors"]

    kept = tmp_path / "model.safetensors"
    kept.write_bytes(b"weights")
    monkeypatch.setattr(
        huggingface_hub,
        "try_to_load_from_cache",
        lambda repository, name: str(kept) if repository == published.hf_hub_id and name == kept.name else None,
    )
    assert locate_timm("mobilenetv3_small_100", published, None) == (kept, file_sha256(kept))
    assert len(asked) == 2

    def no_such_file(url: str) -> None:
        raise EntryNotFoundError("404")

    def second_name(repository: str, name: str) -> str:
        if name == "model.safetensors":
            raise EntryNotFoundError("404")
        return str(kept)

    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda repository, name: None)
    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", no_such_file)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", second_name)
    assert locate_timm("mobilenetv3_small_100", published, None)[0] == kept
    nothing = SimpleNamespace(hf_hub_id=None, hf_hub_filename=None, url="https://host/weights.npz")
    with pytest.raises(WeightsError, match="not found"):
        locate_timm("any", nothing, None)


class Canary:
    """A pickle that runs a command when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("backbone", ["timm:mobilenetv3_small_100", "dino-vits16", "resnet50", "efficientnet-lite2"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_code_in_a_weight_file_is_not_run(backbone: str, wrapped: bool, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    evil = tmp_path / "evil.pth"
    torch.save({"teacher": {"norm.weight": Canary(canary)}} if wrapped else Canary(canary), evil)
    with pytest.raises(WeightsError, match="cannot be read"):
        get_manager().get("backbones", backbone).load()(str(evil))
    assert not canary.exists()
    torch.load(evil, weights_only=False)  # the trap is sharp: an unrestricted reader falls into it
    assert canary.exists()


def test_without_timm_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(WeightsError, match="timm") as caught:
        load("resnet50")
    assert "gcdbench[timm]" in str(caught.value.hint)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["timm:resnet50", "timm:convnext_atto", "timm:vit_small_patch16_224", "timm:mobilenetv3_small_100"]
)
def test_a_smoke_run(name: str, cli: Callable[..., Result], tmp_path: Path) -> None:
    """From images to scores with random weights, stored under the name that was given; then found again."""
    command = ["run", "-m", "simgcd", "-d", "phantom", "--preset", "smoke", "--backbone", name, "--set", "weights=none"]
    result = cli(*command, "--quiet", "--threads", 1)
    assert result.exit_code == 0, result.output
    assert "Stored in" in result.output
    assert "Reused" in cli(*command, "--quiet", "--threads", 1).output
    (model,) = (tmp_path / "runs").glob("*/*/*/model.json")
    assert f'"{name}"' in model.read_text()


def test_a_mistyped_name_leaves_no_run_behind(cli: Callable[..., Result], tmp_path: Path) -> None:
    command = ["run", "-m", "kmeans", "-d", "phantom", "--preset", "smoke", "--set", "weights=none", "--quiet"]
    result = cli(*command, "--backbone", "timm:mobilenetv3_smal_100")
    assert result.exit_code == 2
    assert "mobilenetv3_small_100" in result.stderr
    assert not list((tmp_path / "runs").glob("*/*/*/run.json"))


@pytest.mark.parametrize("name", ["vit_tiny_patch16_224", "mobilenetv3_small_100"])
def test_a_prefix_can_be_exported(name: str) -> None:
    """What ``export-model`` needs: a graph of the first half that computes what the first half computes."""
    prefix, given = load(name).prefix, images(2, 64)
    graph = torch.export.export(prefix, (given,)).module()
    torch.testing.assert_close(graph(given), prefix(given), rtol=1e-4, atol=1e-4)

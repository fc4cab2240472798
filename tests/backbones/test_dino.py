"""DINO's and DINOv2's files, written here as their authors lay them out, against a transformer written out here."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from gcdbench.core.errors import WeightsError
from gcdbench.models.torchvision_shim import import_torchvision
from gcdbench.models.weights import file_sha256
from gcdbench.plugins.manager import get_manager

import_torchvision()
pytest.importorskip("timm")

State = dict[str, Tensor]


def published_state(width: int, patch: int, tokens: int, *, scale: bool, seed: int = 0) -> State:
    """A network's tensors under the names and in the shapes of the published files: twelve blocks, a wide hidden layer.

    DINOv2's (``scale``) have two further vectors in each block, and a token for masked patches.
    """
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int, spread: float = 0.02, mean: float = 0.0) -> Tensor:
        return torch.randn(*shape, generator=generator) * spread + mean

    state = {
        "cls_token": draw(1, 1, width),
        "pos_embed": draw(1, tokens, width, spread=0.5),
        "patch_embed.proj.weight": draw(width, 3, patch, patch),
        "patch_embed.proj.bias": draw(width),
        "norm.weight": draw(width, mean=1.0),
        "norm.bias": draw(width),
    }
    for number in range(12):
        name = f"blocks.{number}"
        layers = (("attn.qkv", 3, 1), ("attn.proj", 1, 1), ("mlp.fc1", 4, 1), ("mlp.fc2", 1, 4))
        for layer, outputs, inputs in layers:
            state[f"{name}.{layer}.weight"] = draw(outputs * width, inputs * width, spread=0.05)
            state[f"{name}.{layer}.bias"] = draw(outputs * width)
        for norm in ("norm1", "norm2"):
            state[f"{name}.{norm}.weight"], state[f"{name}.{norm}.bias"] = draw(width, mean=1.0), draw(width)
        if scale:
            state[f"{name}.ls1.gamma"], state[f"{name}.ls2.gamma"] = draw(width, mean=0.5), draw(width, mean=0.5)
    if scale:
        state["mask_token"] = draw(1, width)
    return state


def transformer(state: State, images: Tensor, heads: int) -> Tensor:
    """Dosovitskiy et al. 2021, with the norms first: (B, N, C) tokens behind the final norm, the class token first."""

    def linear(x: Tensor, name: str) -> Tensor:
        return x @ state[f"{name}.weight"].T + state[f"{name}.bias"]

    def norm(x: Tensor, name: str) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return (
            centred / (centred.square().mean(-1, keepdim=True) + 1e-6).sqrt() * state[f"{name}.weight"]
            + state[f"{name}.bias"]
        )

    patch = state["patch_embed.proj.weight"].shape[-1]
    patches = functional.unfold(images, patch, stride=patch).transpose(1, 2)
    x = patches @ state["patch_embed.proj.weight"].flatten(1).T + state["patch_embed.proj.bias"]
    x = torch.cat([state["cls_token"].expand(len(x), -1, -1), x], dim=1) + state["pos_embed"]
    for number in range(12):
        name = f"blocks.{number}"
        q, k, v = linear(norm(x, f"{name}.norm1"), f"{name}.attn.qkv").chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in (q, k, v))
        weights = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(dim=-1)
        mixed = linear((weights @ v).transpose(1, 2).flatten(2), f"{name}.attn.proj")
        x = x + mixed * state.get(f"{name}.ls1.gamma", torch.ones(1))
        hidden = linear(norm(x, f"{name}.norm2"), f"{name}.mlp.fc1")
        hidden = hidden * 0.5 * (1 + torch.erf(hidden / 2**0.5))
        x = x + linear(hidden, f"{name}.mlp.fc2") * state.get(f"{name}.ls2.gamma", torch.ones(1))
    return norm(x, "norm")


def load(name: str, path: Path) -> Any:
    return get_manager().get("backbones", name).load()(str(path)).eval()


def as_pretrained(state: State) -> Any:
    return state


def as_checkpoint(state: State) -> Any:
    """What training with DINO leaves: two networks, each with a head, behind the names of wrappers, and options."""
    networks = {
        "student": {f"module.backbone.{key}": torch.zeros_like(value) for key, value in state.items()},
        "teacher": {
            **{f"backbone.{key}": value for key, value in state.items()},
            "head.mlp.0.weight": torch.zeros(2, 2),
        },
    }
    return {**networks, "epoch": 3, "args": argparse.Namespace(arch="vit_small", lr=0.1)}


def as_chunks(state: State) -> Any:
    """What training with DINOv2 leaves: blocks in groups of three, numbered through, and two heads."""
    renamed = {}
    for key, value in state.items():
        first, _, rest = key.partition(".")
        number, _, tail = rest.partition(".")
        renamed[f"blocks.{int(number) // 3}.{number}.{tail}" if first == "blocks" else key] = value
    heads = {"dino_head.mlp.0.weight": torch.zeros(2, 2), "ibot_head.last_layer.weight": torch.zeros(2, 2)}
    return {"teacher": {f"backbone.{key}": value for key, value in renamed.items()} | heads}


@pytest.mark.parametrize("wrap", [as_pretrained, as_checkpoint])
def test_dinos_files_give_the_transformer_they_describe(wrap: Any, tmp_path: Path) -> None:
    state = published_state(384, 16, 197, scale=False)
    path = tmp_path / "dino.pth"
    torch.save(wrap(state), path)
    network = load("dino-vits16", path)
    images = torch.randn(1, 3, 224, 224, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        output = network.run_tail(network.prefix(images))
        tokens = transformer(state, images, heads=6)
    torch.testing.assert_close(output.pooled, tokens[:, 0], rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(output.tokens, tokens[:, 1:], rtol=1e-3, atol=1e-3)
    assert output.map.shape == (1, 384, 14, 14)
    assert network.weights_sha256 == file_sha256(path)
    assert not network.pools_map
    trained = {name.split(".")[1] for name in network.tail.state_dict()}
    assert trained == {"blocks", "norm"}
    assert {name.split(".")[2] for name in network.tail.state_dict() if ".blocks." in name} == {"11"}


@pytest.mark.parametrize("wrap", [pytest.param(as_pretrained, marks=pytest.mark.slow), as_chunks])
def test_dinov2s_files_give_the_transformer_they_describe(wrap: Any, tmp_path: Path) -> None:
    """Positions are those of 518 px; at that size the written-out transformer needs no interpolation."""
    state = published_state(384, 14, 37 * 37 + 1, scale=True)
    path = tmp_path / "dinov2.pth"
    torch.save(wrap(state), path)
    network = load("dinov2-vits14", path)
    with torch.no_grad():
        if wrap is as_pretrained:
            images = torch.randn(1, 3, 518, 518, generator=torch.Generator().manual_seed(1))
            output = network.run_tail(network.prefix(images))
            tokens = transformer(state, images, heads=6)
            torch.testing.assert_close(output.pooled, tokens[:, 0], rtol=1e-3, atol=1e-3)
            torch.testing.assert_close(output.tokens, tokens[:, 1:], rtol=1e-3, atol=1e-3)
        smaller = network.run_tail(network.prefix(torch.zeros(1, 3, 224, 224)))
    assert smaller.map.shape == (1, 384, 16, 16)
    assert torch.equal(network.tail.part.blocks.get_submodule("11").attn.qkv.weight, state["blocks.11.attn.qkv.weight"])
    assert torch.equal(network.prefix.part.network.blocks[4].ls2.gamma, state["blocks.4.ls2.gamma"])


@pytest.mark.parametrize(
    ("backbone", "width", "patch", "tokens", "scale"),
    [
        ("dino-vits16", 768, 16, 197, False),
        ("dino-vitb16", 384, 16, 197, False),
        ("dino-vits16", 384, 14, 1370, True),
        ("dinov2-vits14", 384, 16, 197, False),
    ],
)
def test_a_file_of_another_network_is_one_sentence(
    backbone: str, width: int, patch: int, tokens: int, scale: bool, tmp_path: Path
) -> None:
    path = tmp_path / "other.pth"
    state = published_state(width, patch, tokens, scale=scale)
    torch.save({key: value[:1].expand_as(value) if value.ndim > 1 else value for key, value in state.items()}, path)
    with pytest.raises(WeightsError, match="does not fit") as caught:
        load(backbone, path)
    assert "\n" not in caught.value.message


def test_missing_files_name_the_published_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    monkeypatch.setattr("gcdbench.models.weights.download", lambda url, target: False)
    for name in ("dino-vits16", "dino-vitb16", "dinov2-vits14", "dinov2-vitb14"):
        spec = get_manager().get("backbones", name)
        with pytest.raises(WeightsError, match=r"_pretrain\.pth"):
            spec.weights_sha256(None, load=False)
        assert spec.weights_sha256("none", load=False) == "none"


@pytest.mark.parametrize("name", ["dino-vits16", "dinov2-vits14", "vit-b16"])
def test_the_last_block_trains_and_nothing_else(name: str) -> None:
    """As in the published code, which frees what is called a block: the final norm stays."""
    backbone = get_manager().get("backbones", name).load()("none")
    trained = {key for key, value in backbone.named_parameters() if value.requires_grad}
    assert trained
    assert all("block" in key for key in trained)
    assert any(key.endswith("norm.weight") for key, _ in backbone.tail.named_parameters())

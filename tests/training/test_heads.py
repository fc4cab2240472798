from __future__ import annotations

import torch
from torch.nn.utils.parametrizations import weight_norm

from gcdbench.models.heads import Projector, Prototypes


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_prototypes_are_a_weight_normalised_layer_with_fixed_length() -> None:
    """Against torch's own weight normalisation with g = 1, in value and gradient."""
    ours = Prototypes(6, 5, seeded(0))
    theirs = weight_norm(torch.nn.Linear(6, 5, bias=False))
    parts = theirs.parametrizations.weight
    with torch.no_grad():
        parts.original0.fill_(1.0)
        parts.original1.copy_(ours.weight)
    feature = torch.randn(7, 6, generator=seeded(1))
    expected = theirs(torch.nn.functional.normalize(feature, dim=-1))
    torch.testing.assert_close(ours(feature), expected)
    ours(feature).square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(ours.weight.grad, parts.original1.grad)


def test_cosines_ignore_lengths() -> None:
    head, feature = Prototypes(6, 5, seeded(0)), torch.randn(7, 6, generator=seeded(1))
    torch.testing.assert_close(head(feature), head(feature * 100))
    assert head(feature).abs().max() <= 1 + 1e-6


def test_the_projector_is_the_published_mlp() -> None:
    head = Projector(1280, seeded(0))
    assert [tuple(layer.weight.shape) for layer in head.layers] == [(2048, 1280), (2048, 2048), (256, 2048)]  # type: ignore[union-attr]
    for layer in head.layers:
        assert torch.equal(layer.bias, torch.zeros_like(layer.bias))  # type: ignore[arg-type]
        assert abs(layer.weight.std().item() - 0.02) < 2e-4  # type: ignore[operator]
    feature = torch.randn(4, 1280, generator=seeded(1))
    first, second, third = head.layers
    gelu = torch.nn.GELU()
    torch.testing.assert_close(head(feature), third(gelu(second(gelu(first(feature))))))


def test_initialisation_comes_from_the_generator_and_leaves_the_global_stream_alone() -> None:
    before = torch.get_rng_state()
    first, same, other = (Projector(8, seeded(s), hidden=8, out=4) for s in (0, 0, 1))
    Prototypes(8, 3, seeded(0))
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(first.layers[0].weight, same.layers[0].weight)  # type: ignore[arg-type]
    assert not torch.equal(first.layers[0].weight, other.layers[0].weight)  # type: ignore[arg-type]

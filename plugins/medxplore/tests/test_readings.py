"""Readings of gradients and heads: who learns from which loss, against finite differences of the loops."""

from __future__ import annotations

import medxplore_loops as loops
import numpy as np
import pytest
import torch
from gcdbench_medxplore.anchors import find_anchors
from gcdbench_medxplore.config import FAACConfig, MedXploreConfig
from gcdbench_medxplore.consistency import pair_weights, patch_consistency
from gcdbench_medxplore.faac import FAAC
from gcdbench_medxplore.method import MedXplore
from gcdbench_medxplore.patches import TokenProjection
from medxplore_training import configured, make_batch, train, variant_config

from gcdbench.core.config import to_plain
from gcdbench.testing.tiny import built, shrink, tiny_context

DELTA = 0.2


def patch_loss(x, attention, weight=None):
    """L_pc of maps (2B, C, H, W) with given attention, by the loops; the tokens' map, where there is one, is (D, C)."""
    size, channels = len(x) // 2, x.shape[1]
    tokens = x.reshape(2 * size, channels, -1).transpose(0, 2, 1)
    tokens = tokens if weight is None else loops.project(tokens, weight)
    scores = attention.reshape(2 * size, -1)
    chosen = loops.top_k(scores.tolist(), 3)
    s = loops.similarity(tokens[:size], tokens[size:], chosen[:size], chosen[size:])
    a = [[scores[b, n] for n in chosen[b]] for b in range(2 * size)]
    return loops.pc_loss(s, loops.mutual(s, DELTA), a[:size], a[size:], 1e-6)


def example(seed=0):
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(2, 3, 2, 3))
    x = np.concatenate([common, common + 0.4 * rng.normal(size=common.shape)])
    return x, rng.uniform(0.1, 0.9, size=(4, 2, 3))


def our_patch_loss(x, attention, **settings):
    anchors = find_anchors(x, torch.from_numpy(attention), k=3, delta=DELTA, **settings)
    assert anchors.matches.any()
    return patch_consistency(anchors.similarity, anchors.matches, pair_weights(anchors.first, anchors.second))


@pytest.mark.parametrize("held", [None, "first", "second"])
def test_the_view_that_is_held_is_a_constant_of_the_patch_loss(held):
    x, attention = example()
    leaf = torch.from_numpy(x.copy()).requires_grad_()
    loss = our_patch_loss(leaf, attention, held=held)
    loss.backward()
    assert float(loss.detach()) == pytest.approx(patch_loss(x, attention))

    def with_moving(part):
        moved = x.copy()
        moved[moving] = part
        return patch_loss(moved, attention)

    expected = np.zeros_like(x)
    for view, moving in (("first", slice(0, 2)), ("second", slice(2, 4))):
        if view != held:
            expected[moving] = loops.numeric_gradient(with_moving, x[moving])
            assert np.abs(expected[moving]).max() > 1e-3
    np.testing.assert_allclose(leaf.grad.numpy(), expected, atol=1e-7)


@pytest.mark.parametrize("width", [2, 7])
def test_projected_tokens_and_their_map_learn_from_the_patch_loss(width):
    x, attention = example(1)
    module = TokenProjection(3, width, torch.Generator().manual_seed(3)).double()
    weight = module.weight.detach().numpy().copy()
    leaf = torch.from_numpy(x.copy()).requires_grad_()
    loss = our_patch_loss(leaf, attention, project=module)
    loss.backward()
    assert float(loss.detach()) == pytest.approx(patch_loss(x, attention, weight))
    by_map = loops.numeric_gradient(lambda changed: patch_loss(changed, attention, weight), x)
    by_weight = loops.numeric_gradient(lambda changed: patch_loss(x, attention, changed), weight)
    np.testing.assert_allclose(leaf.grad.numpy(), by_map, atol=1e-7)
    np.testing.assert_allclose(module.weight.grad.numpy(), by_weight, atol=1e-7)
    assert np.abs(by_weight).max() > 1e-3


def test_an_attention_without_gradient_weighs_x_out_as_a_constant():
    module = FAAC(
        FAACConfig(init="uniform", attention_gradient=False), 2, 3, 4, torch.Generator().manual_seed(1)
    ).double()
    x = np.random.default_rng(0).normal(size=(1, 2, 3, 4)) + 0.5
    weight = np.random.default_rng(1).normal(size=(1, 2))
    leaf = torch.from_numpy(x.copy()).requires_grad_()
    attention = module.attention(leaf)
    feature = module.feature(leaf, leaf.mean((2, 3)), attention)
    (feature * torch.from_numpy(weight)).sum().backward()
    held = attention.detach().numpy()
    expected = loops.numeric_gradient(
        lambda changed: float((loops.x_out(changed, held).mean((2, 3)) * weight).sum()), x
    )
    np.testing.assert_allclose(feature.detach().numpy(), loops.x_out(x, held).mean((2, 3)), atol=1e-12)
    np.testing.assert_allclose(leaf.grad.numpy(), expected, atol=1e-7)
    assert all(parameter.grad is None for parameter in module.parameters())


def acam_gradients(method):
    """Norms of the gradient of the ACAM term at the classifier's old and new prototypes and at a head of its own."""
    terms = method.losses(make_batch(method))
    own = method.extras.get("acam_head")
    weights = [method.prototypes.weight, *([] if own is None else [own.weight])]
    gradients = torch.autograd.grad(terms["acam"], weights, allow_unused=True)
    shared = torch.zeros_like(weights[0]) if gradients[0] is None else gradients[0]
    return [float(part.norm()) for part in (shared[:2], shared[2:], *gradients[1:])]


def test_over_the_old_outputs_acam_leaves_new_prototypes_alone():
    old, new = acam_gradients(built(MedXplore, MedXploreConfig()))
    assert old > 0
    assert new > 0  # over all K it pushes them away from the old classes' features
    old, new = acam_gradients(built(MedXplore, variant_config("outputs-old")))
    assert old > 0
    assert new == 0


@pytest.mark.parametrize(("name", "outputs"), [("head-own", 4), ("head-own-outputs-old", 2)])
def test_a_head_of_its_own_leaves_the_classifier_alone_and_is_not_deployed(name, outputs):
    method = built(MedXplore, variant_config(name))
    old, new, own = acam_gradients(method)
    assert old == new == 0
    assert own > 0
    assert len(method.extras["acam_head"].weight) == outputs
    method, data, _ = train(MedXplore, variant_config(name))
    assert not any("acam" in key for key in method.state_dict())
    assert any("acam_head" in key for key in method.auxiliary_state())
    before = method.extras["acam_head"].weight.detach().clone()
    again = shrink(MedXplore)(method.config, method.task, tiny_context())
    again.load_state_dict(method.state_dict())
    again.load_auxiliary_state(method.auxiliary_state())
    assert torch.equal(again.extras["acam_head"].weight, before)
    assert np.array_equal(again.predict(data.unlabelled).cluster, method.predict(data.unlabelled).cluster)


def test_modules_of_a_reading_are_made_only_where_it_acts():
    assert "tokens" in built(MedXplore, configured(faac__token_dim=4)).extras
    assert "tokens" not in built(MedXplore, configured(faac__token_dim=4, alpha=0.0, beta=0.0)).extras
    assert "acam_head" not in built(MedXplore, configured(acam__head="own", beta=0.0)).extras


def test_readings_that_came_later_are_part_of_an_identity_only_when_they_are_chosen():
    plain = to_plain(MedXploreConfig())
    for settings in ({"faac__token_dim": 4}, {"faac__stop_gradient": "first"}, {"faac__attention_gradient": False},
                     {"acam__outputs": "old"}, {"acam__head": "own"}):  # fmt: skip
        ((key, value),) = settings.items()
        part, _, name = key.partition("__")
        assert name not in plain[part]
        assert to_plain(configured(**settings)) == {**plain, part: {**plain[part], name: value}}

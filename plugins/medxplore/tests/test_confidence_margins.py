"""Confidence signals, percentiles and margins against loops and scipy-like references, and on odd batches."""

from __future__ import annotations

import math

import medxplore_loops as loops
import numpy as np
import pytest
import torch
from gcdbench_medxplore.confidence import (
    RankPercentile,
    RunningPercentile,
    attention_confidence,
    fuse,
    match_confidence,
    positive_gap,
)
from gcdbench_medxplore.consistency import pair_weights
from gcdbench_medxplore.margins import acam_loss, hard_negatives, margin_cosine, margin_logits
from hypothesis import given
from hypothesis import strategies as st


def cosines(n=6, classes=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    z = torch.rand(n, classes, dtype=torch.float64, generator=generator) * 1.9 - 0.95
    return z, torch.randint(classes, (n,), generator=generator)


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 3.0]), min_size=1, max_size=12))
def test_rank_percentile_shares_the_mean_rank(values):
    ours = RankPercentile()(torch.tensor(values, dtype=torch.float64)).numpy()
    np.testing.assert_allclose(ours, loops.rank_percentile(values))
    np.testing.assert_allclose(ours.mean(), 0.5)


def test_rank_percentile_of_nothing_one_and_equals():
    rank = RankPercentile()
    assert rank(torch.zeros(0)).shape == (0,)
    assert rank(torch.tensor([7.0])).tolist() == [0.5]
    assert rank(torch.full((4,), 2.0)).tolist() == [0.5] * 4


def test_running_percentile_follows_the_quantiles():
    rng = np.random.default_rng(0)
    module = RunningPercentile(momentum=0.9)
    low = high = 0.0
    for step in range(30):
        values = rng.normal(loc=step, size=40)
        keep = min(0.9, 1 - 1 / (step + 1))
        low = keep * low + (1 - keep) * np.quantile(values, 0.05)
        high = keep * high + (1 - keep) * np.quantile(values, 0.95)
        ours = module(torch.from_numpy(values)).numpy()
        np.testing.assert_allclose(ours, np.clip((values - low) / (high - low), 0, 1), atol=1e-4)
    assert ours.mean() > 0.75  # what ranks cannot do: confidence that grows with training
    module.eval()
    before = module.low.clone()
    module(torch.randn(5))
    assert torch.equal(module.low, before)


def test_running_percentile_without_spread_and_through_a_checkpoint():
    module = RunningPercentile()
    assert module(torch.full((3,), 1.5)).tolist() == [0.5] * 3
    assert module(torch.zeros(0)).shape == (0,)
    module(torch.randn(9))
    other = RunningPercentile()
    other.load_state_dict(module.state_dict())
    values = torch.randn(4)
    assert torch.equal(other(values), module(values))


@pytest.mark.parametrize("weighted", [False, True])
def test_signals_are_their_definitions(weighted):
    rng = np.random.default_rng(0)
    a1, a2 = rng.random((3, 4)), rng.random((3, 4))
    first, second = torch.from_numpy(a1), torch.from_numpy(a2)
    np.testing.assert_allclose(attention_confidence(first, second).numpy(), loops.attention_confidence(a1, a2))

    s = rng.random((3, 4, 4))
    pairs = [[(1, 2), (3, 0)], [(2, 2)], []]
    matches = torch.zeros(3, 4, 4, dtype=torch.bool)
    for b, found in enumerate(pairs):
        for i, j in found:
            matches[b, i, j] = True
    weights = pair_weights(first, second) if weighted else None
    ours = match_confidence(torch.from_numpy(s), matches, weights)
    np.testing.assert_allclose(ours.numpy(), loops.match_confidence(s, pairs, a1, a2, weighted))


def test_gap_is_the_distance_to_the_hardest_negative():
    z, y = cosines()
    np.testing.assert_allclose(positive_gap(z, y).numpy(), loops.gap(z.numpy(), y.tolist()))
    np.testing.assert_allclose(positive_gap(torch.tensor([[0.25]]), torch.tensor([0])).numpy(), [1.25])


def test_u_is_the_mean_of_the_chosen_signals():
    a, g = torch.tensor([0.0, 1.0]), torch.tensor([0.5, 0.5])
    torch.testing.assert_close(fuse([a, g], a), torch.tensor(loops.fuse(a.tolist(), g.tolist())))
    assert torch.equal(fuse([a], a), a)
    assert fuse([], a).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("negative_margin", ["as-written", "raised"])
@pytest.mark.parametrize("gate", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("top", [0.0, 0.2, 1.5, math.pi])
def test_logits_and_loss_are_the_equations(top, gate, negative_margin):
    z, y = cosines()
    u = torch.rand(len(z), dtype=torch.float64)
    raised = negative_margin == "raised"
    ours = margin_logits(z, y, top * u, 0.2 * u, scale=7.0, gate=gate, negative_margin=negative_margin)
    expected = loops.margin_logits(z.numpy(), y.tolist(), (top * u).tolist(), (0.2 * u).tolist(), 7.0, gate, raised)
    np.testing.assert_allclose(ours.numpy(), expected, atol=1e-9)
    np.testing.assert_allclose(float(acam_loss(ours, y)), loops.acam(expected, y.tolist()), atol=1e-9)


@pytest.mark.parametrize("negative_margin", ["as-written", "raised"])
def test_gradient_of_the_loss_against_finite_differences(negative_margin):
    z, y = cosines(seed=3)
    u = torch.linspace(0, 1, len(z), dtype=torch.float64)
    x = z.clone().requires_grad_()
    acam_loss(margin_logits(x, y, u, 0.2 * u, negative_margin=negative_margin), y).backward()

    def scalar(values):
        arguments = (u.tolist(), (0.2 * u).tolist(), 10.0, 0.3, negative_margin == "raised")
        return loops.acam(loops.margin_logits(values, y.tolist(), *arguments), y.tolist())

    np.testing.assert_allclose(x.grad.numpy(), loops.numeric_gradient(scalar, z.numpy()), atol=1e-6)


def test_the_two_readings_move_hard_negatives_in_opposite_directions():
    z = torch.tensor([[0.5, 0.6, 0.1]])
    margin = torch.tensor([0.2])
    plain = margin_logits(z, torch.tensor([0]), margin * 0, margin * 0, scale=1.0)
    lowered = margin_logits(z, torch.tensor([0]), margin * 0, margin, scale=1.0)
    raised = margin_logits(z, torch.tensor([0]), margin * 0, margin, scale=1.0, negative_margin="raised")
    assert lowered[0, 1] < plain[0, 1] < raised[0, 1]
    assert lowered[0, 2] == plain[0, 2] == raised[0, 2]  # below the gate


@pytest.mark.parametrize("gate", [0.0, 0.3, 0.99])
def test_the_share_of_hard_negatives_is_counted_over_other_classes(gate):
    z = torch.stack([cosines(seed=seed)[0] for seed in (0, 1)])
    _, y = cosines()
    others = [float(z[v, b, c]) for v in range(2) for b in range(len(y)) for c in range(5) if c != y[b]]
    np.testing.assert_allclose(float(hard_negatives(z, y, gate)), sum(value > gate for value in others) / len(others))
    assert float(hard_negatives(torch.zeros(2, 0, 5), torch.zeros(0, dtype=torch.long), gate)) == 0.0


@given(st.floats(-1, 1), st.floats(0, math.pi))
def test_the_margin_never_rewards_and_stays_a_cosine(cosine, margin):
    c = torch.tensor([cosine], dtype=torch.float64, requires_grad=True)
    m = torch.tensor([margin], dtype=torch.float64)
    shifted = margin_cosine(c, m)
    shifted.sum().backward()
    assert -1 - 1e-9 <= float(shifted.detach()) <= cosine + 1e-9 + 2e-3 * (abs(cosine) > 1 - 1e-6)
    assert torch.isfinite(c.grad).all()


@pytest.mark.parametrize("cosine", [-1.0, 1.0, -1.0 - 1e-7, 1.0 + 1e-7])
def test_cosines_at_the_ends_have_finite_gradients(cosine):
    c = torch.tensor([cosine], requires_grad=True)
    shifted = margin_cosine(c, torch.tensor([0.2]))
    shifted.sum().backward()
    assert torch.isfinite(shifted).all()
    assert torch.isfinite(c.grad).all()


def test_beyond_pi_clamp_and_wrap():
    c, m = torch.tensor([math.cos(3.0)], dtype=torch.float64), torch.tensor([0.5], dtype=torch.float64)
    assert float(margin_cosine(c, m)) == -1.0
    np.testing.assert_allclose(float(margin_cosine(c, m, overshoot="wrap")), math.cos(3.5))


def test_no_labelled_sample_one_and_one_class():
    z = torch.zeros(0, 4, requires_grad=True)
    loss = acam_loss(
        margin_logits(z, torch.zeros(0, dtype=torch.long), torch.zeros(0), torch.zeros(0)),
        torch.zeros(0, dtype=torch.long),
    )
    assert float(loss.detach()) == 0.0
    loss.backward()
    for n in (1, 5):
        z = (torch.rand(n, 4) * 2 - 1).requires_grad_()
        y = torch.full((n,), 2)
        u = RankPercentile()(positive_gap(z, y))
        loss = acam_loss(margin_logits(z, y, 0.2 * u, 0.2 * u), y)
        loss.backward()
        assert torch.isfinite(loss)
        assert torch.isfinite(z.grad).all()

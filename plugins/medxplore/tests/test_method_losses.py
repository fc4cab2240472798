"""MedXplore's added losses on one batch: the paper's equations end to end, every setting, odd batches, gradients."""

from __future__ import annotations

import dataclasses

import medxplore_loops as loops
import numpy as np
import pytest
import torch
from gcdbench_medxplore.acam import ACAM
from gcdbench_medxplore.config import ACAMConfig, MedXploreConfig
from gcdbench_medxplore.method import MedXplore
from medxplore_training import SIMGCD_TERMS, configured, make_batch, variant_config

from gcdbench.api import SimGCD, TailOutput
from gcdbench.testing.tiny import built


@pytest.fixture
def build():
    def make(config):
        return built(MedXplore, config)

    return make


def reference_terms(method, batch):
    """α L_pc and β L_ACAM of a batch, and its matched pairs by image, by the loop transcriptions alone."""
    c = method.config
    x = batch.tail.map.detach().double().numpy()
    faac = method.extras["faac"]
    kernels = [k.detach().double().numpy()[:, 0] for k in (faac.filter.real, faac.filter.imag)]
    energy = loops.energy_map(loops.spectral_conv(x, *kernels))
    variance = loops.local_variance(energy, ddof=c.faac.ddof)
    attention = loops.glec(variance, float(faac.activation.gamma.detach()), c.faac.eps, ddof=c.faac.ddof)
    feature = loops.x_out(x, attention).mean((2, 3))
    np.testing.assert_allclose(batch.feature.detach().numpy(), feature, atol=1e-5)

    size = len(batch.ids)
    scores = attention.reshape(2 * size, -1)
    chosen = loops.top_k(scores.tolist(), c.faac.k)
    tokens = x.reshape(2 * size, 12, 16).transpose(0, 2, 1)
    if c.faac.token_dim is not None:
        tokens = loops.project(tokens, method.extras["tokens"].weight.detach().double().numpy())
    s = loops.similarity(tokens[:size], tokens[size:], chosen[:size], chosen[size:])
    pairs = loops.mutual(s, c.faac.delta)
    a1 = [[scores[b, n] for n in chosen[b]] for b in range(size)]
    a2 = [[scores[size + b, n] for n in chosen[size + b]] for b in range(size)]
    pc = loops.pc_loss(s, pairs, a1, a2, c.faac.eps)

    known = [b for b in range(size) if batch.labels[b] >= 0]
    y = [int(batch.labels[b]) for b in known]
    head = method.extras["acam_head"] if c.acam.head == "own" else method.prototypes
    prototypes = head.weight.detach().double().numpy()[: 2 if c.acam.outputs == "old" else 4]
    z = np.array([[loops.cosine(row, p) for p in prototypes] for row in feature])
    weighted = c.acam.match == "weighted"
    a = loops.rank_percentile([loops.attention_confidence(a1, a2)[b] for b in known])
    w = loops.rank_percentile([loops.match_confidence(s, pairs, a1, a2, weighted)[b] for b in known])
    logits, targets = [], []
    for view in (z[:size], z[size:])[: 2 if c.acam.views == "both" else 1]:
        own = view[known]
        u = np.array(loops.fuse(a, w, loops.rank_percentile(loops.gap(own, y).tolist())))
        u = 1 - u if c.acam.direction == "ambiguous" else u
        margins = ((c.acam.angular_max * u).tolist(), (c.acam.cosine_max * u).tolist())
        raised = c.acam.negative_margin == "raised"
        logits.append(loops.margin_logits(own, y, *margins, c.acam.scale, c.acam.gate, raised))
        targets += y
    return c.alpha * pc, c.beta * loops.acam(np.concatenate(logits), targets), pairs


# Cosines of an untrained network are small and its tokens alike: the gate and δ are where they divide them.
END_TO_END = {"faac__init": "uniform", "acam__angular_max": 0.5, "acam__gate": 0.0, "faac__delta": 0.82}


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"alpha": 0.1},
        {"beta": 1.5},
        {"faac__eps": 0.1},
        {"faac__ddof": 1},
        {"faac__delta": 0.65},
        {"faac__delta": 0.9},
        {"acam__gate": 0.1},
        {"acam__cosine_max": 1.0},
        {"acam__negative_margin": "raised"},
        {"acam__direction": "ambiguous"},
        {"acam__views": "first"},
        {"acam__match": "weighted"},
        {"acam__outputs": "old"},
        {"acam__head": "own"},
        {"acam__head": "own", "acam__outputs": "old"},
        {"faac__token_dim": 5},
        {"faac__token_dim": 40, "faac__delta": 0.65},
        {"faac__stop_gradient": "first"},
        {"faac__stop_gradient": "second"},
        {"faac__attention_gradient": False},
    ],
    ids=str,
)
def test_added_losses_are_the_papers_equations_end_to_end(build, overrides):
    method = build(configured(**{**END_TO_END, **overrides}))
    batch = make_batch(method)
    pc, acam, pairs = reference_terms(method, batch)
    terms = method.losses(batch)
    assert set(terms) == SIMGCD_TERMS | {"pc", "acam"}
    np.testing.assert_allclose(terms["pc"].detach(), pc, atol=1e-5)
    np.testing.assert_allclose(terms["acam"].detach(), acam, atol=1e-5)
    np.testing.assert_allclose(terms["rep_u"].detach(), SimGCD.losses(method, batch)["rep_u"].detach())
    matches = [len(found) for found in pairs]
    assert float(method._figures["matches"]) == pytest.approx(np.mean(matches))
    assert float(method._figures["images_matched"]) == pytest.approx(np.mean([count > 0 for count in matches]))


@pytest.mark.parametrize(
    ("term", "overrides"),
    [
        ("pc", {"faac__delta": 0.9}),
        ("pc", {"faac__k": 5}),
        ("pc", {"faac__k_scaled": True}),
        ("pc", {"faac__k": 3, "faac__grid": 2}),
        ("pc", {"faac__min_matches": 5}),
        ("pc", {"faac__border": "replicate"}),
        ("pc", {"faac__gamma": 3.0}),
        ("pc", {"faac__filter": "low-pass"}),
        ("acam", {"acam__angular_max": 0.2}),
        ("acam", {"acam__cosine_max": 0.0}),
        ("acam", {"acam__gate": 0.1}),
        ("acam", {"acam__scale": 30.0}),
        ("acam", {"acam__negative_margin": "raised"}),
        ("acam", {"acam__direction": "ambiguous"}),
        ("acam", {"acam__views": "first"}),
        ("acam", {"acam__signals": "A"}),
        ("acam", {"acam__percentile": "running"}),
        ("acam", {"acam__percentile": "running", "acam__match": "weighted"}),
        ("acam", {"acam__angular_max": 3.0, "acam__overshoot": "wrap"}),
        ("acam", {"acam__outputs": "old"}),
        ("acam", {"acam__head": "own"}),
        ("acam", {"acam__head": "own", "acam__outputs": "old"}),
        ("pc", {"faac__token_dim": 6}),
    ],
    ids=str,
)
def test_every_setting_reaches_its_term(build, term, overrides):
    """Each compared with the same settings but for the last one."""
    *before, (last, _) = overrides.items()
    values = []
    for settings in (dict(before), overrides):
        method = build(configured(**{**END_TO_END, **settings}))
        values.append(float(method.losses(make_batch(method))[term].detach()))
    assert values[0] != pytest.approx(values[1], rel=1e-6), last


def test_confidence_passes_a_gradient_only_when_told():
    cosines = torch.rand(2, 5, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    for detach in (True, False):
        acam = ACAM(ACAMConfig(percentile="running", detach=detach, signals=("G",)), ("G",))
        u = acam.confidence(cosines, torch.arange(5) % 4, {})
        assert u.requires_grad != detach


@pytest.mark.parametrize(
    "case",
    [
        {"labelled": 0},
        {"labelled": 1},
        {"labels": torch.zeros(6, dtype=torch.long)},
        {"same": True},
        {"same": True, "labelled": 0},
    ],
    ids=["no labelled", "one labelled", "one class", "constant maps", "constant and unlabelled"],
)
@pytest.mark.parametrize("percentile", ["rank", "running"])
def test_odd_batches_give_finite_losses_and_gradients(build, case, percentile):
    method = build(configured(acam__percentile=percentile))
    batch = make_batch(method, **case)
    terms = method.losses(batch)
    sum(terms.values()).backward()
    assert all(torch.isfinite(value) for value in terms.values())
    for module in method.trained_modules().values():
        for parameter in module.parameters():
            assert parameter.grad is None or torch.isfinite(parameter.grad).all()
    if case.get("labelled") == 0:
        assert float(terms["acam"].detach()) == 0.0


def test_no_match_at_all_leaves_the_patch_loss_at_zero(build):
    method = build(configured(faac__delta=1.0))  # no two tokens are exactly alike
    terms = method.losses(make_batch(method))
    assert float(terms["pc"].detach()) == 0.0
    assert terms["pc"].requires_grad


def test_gradients_reach_faac_through_the_feature_but_not_through_weights(build):
    method = build(configured(beta=0.0))
    batch = make_batch(method)
    method.losses(batch)["pc"].backward(retain_graph=True)
    assert method.extras["faac"].activation.gamma.grad is None
    method.losses(dataclasses.replace(batch))["cls_u"].backward()
    assert method.extras["faac"].activation.gamma.grad is not None
    learning = build(configured(beta=0.0, faac__weight_gradient=True))
    learning.losses(make_batch(learning))["pc"].backward()
    assert learning.extras["faac"].activation.gamma.grad is not None


def test_feature_both_averages_the_two_branches(build):
    method = build(configured(faac__feature="both"))
    batch = make_batch(method)
    plain = method._plain_branch(batch)
    assert torch.equal(plain.feature, batch.tail.pooled)
    expected = {
        name: (SimGCD.losses(method, batch)[name] + SimGCD.losses(method, plain)[name]) / 2 for name in SIMGCD_TERMS
    }
    terms = method.losses(batch)
    anchors = method._anchors(batch)
    margins = [method._acam(branch, anchors) for branch in (batch, plain)]
    assert margins[0].item() != pytest.approx(margins[1].item(), rel=1e-4)
    expected["acam"] = method.config.beta * (margins[0] + margins[1]) / 2
    for name, value in expected.items():
        torch.testing.assert_close(terms[name], value)


def test_the_patch_loss_starts_when_told(build):
    method = build(configured(faac__start=0.5))
    assert "pc" not in method.losses(make_batch(method, progress=0.49))
    assert "pc" in method.losses(make_batch(method, progress=0.5))


def test_acam_without_margins_is_the_labelled_cross_entropy_once_more(build):
    method = build(variant_config("acam-margins-none"))
    terms = method.losses(make_batch(method))
    share = method.config.beta / method.config.lambda_
    torch.testing.assert_close(terms["acam"], share * terms["cls_s"])
    # With margins it is more than that: the comparison above must be able to fail.
    with_margins = build(variant_config("acam"))
    terms = with_margins.losses(make_batch(with_margins))
    assert terms["acam"].item() > 1.01 * share * terms["cls_s"].item()


def test_row_b_feeds_the_filtered_map(build):
    method = build(variant_config("filter"))
    x = torch.rand(4, 12, 4, 4)
    tail = TailOutput(map=x, pooled=x.mean((2, 3)))
    torch.testing.assert_close(method.feature(tail), tail.pooled)  # the identity at step 0, in scale too
    assert method.attention(tail) is None


def test_the_fixed_filters_are_offered_for_comparison(build):
    method = build(MedXploreConfig())
    x = torch.rand(3, 12, 4, 4)
    tail = TailOutput(map=x, pooled=x.mean((2, 3)))
    maps = method.attention_alternatives(tail)
    assert set(maps) == {"spatial variance", "high-pass", "low-pass"}
    expected = loops.glec(loops.local_variance(loops.energy_map(x.double().numpy())), 1.0, 1e-6)
    np.testing.assert_allclose(maps["spatial variance"].detach().numpy(), expected, atol=1e-4)
    assert "spatial variance" not in build(variant_config("spatial-variance")).attention_alternatives(tail)
    assert build(variant_config("acam")).attention_alternatives(tail) == {}

"""MedXplore in the training engine: equal to SimGCD where it must be, every variant trains, the model deploys."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import medxplore_loops as loops
import numpy as np
import pytest
import torch
from gcdbench_medxplore.acam import ACAM
from gcdbench_medxplore.config import ACAMConfig, FAACConfig, MedXploreConfig
from gcdbench_medxplore.method import MedXplore
from gcdbench_medxplore.plugin import gcdbench_methods
from gcdbench_medxplore.variants import VARIANTS

from gcdbench.api import Batch, ConfigError, SimGCD, SimGCDConfig, TailOutput
from gcdbench.config import apply_overrides
from gcdbench.testing.tiny import TinyBackbone, shrink, tiny_context, tiny_task


def configured(**overrides):
    return apply_overrides(MedXploreConfig(), {key.replace("__", "."): value for key, value in overrides.items()})


def variant_config(name):
    return apply_overrides(MedXploreConfig(), {key: v for key, v in VARIANTS[name].items() if key != "image_size"})


def train(method_class, config, *, seed=0, epochs=2, **context):
    events = []
    data, task, _ = tiny_task()
    method = shrink(method_class)(config, task, tiny_context(seed=seed, epochs=epochs, log=events.append, **context))
    method.fit(data)
    return method, data, events


def losses_of(events):
    return [event["losses"] for event in events if event["type"] == "epoch"]


SIMGCD_TERMS = {"cls_u", "memax", "cls_s", "rep_u", "rep_s"}


@pytest.mark.parametrize(
    "config",
    [
        configured(alpha=0.0, beta=0.0, faac__feature="none"),
        variant_config("baseline"),
        configured(alpha=0.0, beta=0.0, faac__enabled=False, faac__init="uniform"),
    ],
    ids=["weights zero, feature off", "variant baseline", "disabled"],
)
def test_with_everything_off_a_run_is_bit_identical_to_simgcd(config):
    ours, data, our_events = train(MedXplore, config)
    plain, _, events = train(SimGCD, SimGCDConfig())
    assert losses_of(our_events) == losses_of(events)
    for name, value in plain.state_dict().items():
        assert torch.equal(value, ours.state_dict()[name]), name
    assert np.array_equal(plain.predict(data.unlabelled).embedding, ours.predict(data.unlabelled).embedding)


def test_modules_on_the_side_do_not_move_simgcd():
    """ACAM of weight 0 or a patch loss that never starts builds modules, but the run stays SimGCD's."""
    config = configured(beta=0.0, faac__feature="none", faac__start=1.0)
    ours, _, _ = train(MedXplore, config)
    plain, _, _ = train(SimGCD, SimGCDConfig())
    assert "faac" in ours.extras
    for name, value in plain.state_dict().items():
        assert torch.equal(value, ours.state_dict()[name]), name


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_every_variant_takes_finite_steps(name):
    method, data, events = train(MedXplore, variant_config(name), epochs=1)
    config = method.config
    expected = SIMGCD_TERMS | ({"pc"} if config.alpha else set())
    expected |= {"acam"} if config.beta else set()
    (values,) = losses_of(events)
    assert set(values) == expected
    assert all(np.isfinite(value) for value in values.values())
    assert method.predict(data.unlabelled).cluster.shape == (len(data.unlabelled),)


def test_variants_are_registered_with_existing_settings():
    (spec,) = gcdbench_methods()
    for name in ("baseline", "faac", "acam", "faac+acam", "filter", "filter+glec", "filter+glec+pc"):
        assert name in spec.variants
    assert variant_config("faac+acam") == MedXploreConfig()
    assert variant_config("filter+glec+pc") == variant_config("faac")
    assert spec.load() is MedXplore


def make_batch(method, *, size=6, labelled=4, classes=4, labels=None, same=False, progress=0.5):
    """A batch with the method's own modules, as the engine would make it, from random maps."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(2 * size, 12, 4, 4, generator=generator)
    if same:
        x = torch.full_like(x, 0.5)
    x.requires_grad_()
    tail = TailOutput(map=x, pooled=x.mean((2, 3)))
    feature = method.feature(tail)
    if labels is None:
        labels = torch.arange(size) % 2
    labels = labels.masked_fill(torch.arange(size) >= labelled, -1)
    return Batch(
        ids=torch.arange(size),
        labels=labels,
        tail=tail,
        feature=feature,
        projection=method.projector(feature),
        logits=method.prototypes(feature),
        progress=progress,
        epoch=0,
        step=0,
        k_old=2,
    )


@pytest.fixture
def build():
    def make(config):
        data, task, _ = tiny_task()
        method = shrink(MedXplore)(config, task, tiny_context())
        method._open(data.labelled.store)
        method._build(4)
        return method

    return make


def reference_terms(method, batch):
    """α L_pc and β L_ACAM of a batch, by the loop transcriptions alone."""
    c = method.config
    x = batch.tail.map.detach().double().numpy()
    faac = method.extras["faac"]
    kernels = [k.detach().double().numpy()[:, 0] for k in (faac.filter.real, faac.filter.imag)]
    energy = loops.energy_map(loops.spectral_conv(x, *kernels))
    attention = loops.glec(loops.local_variance(energy), float(faac.activation.gamma.detach()), c.faac.eps)
    feature = loops.x_out(x, attention).mean((2, 3))
    np.testing.assert_allclose(batch.feature.detach().numpy(), feature, atol=1e-5)

    size = len(batch.ids)
    scores = attention.reshape(2 * size, -1)
    chosen = loops.top_k(scores.tolist(), c.faac.k)
    tokens = x.reshape(2 * size, 12, 16).transpose(0, 2, 1)
    s = loops.similarity(tokens[:size], tokens[size:], chosen[:size], chosen[size:])
    pairs = loops.mutual(s, c.faac.delta)
    a1 = [[scores[b, n] for n in chosen[b]] for b in range(size)]
    a2 = [[scores[size + b, n] for n in chosen[size + b]] for b in range(size)]
    pc = loops.pc_loss(s, pairs, a1, a2, c.faac.eps)

    known = [b for b in range(size) if batch.labels[b] >= 0]
    y = [int(batch.labels[b]) for b in known]
    prototypes = method.prototypes.weight.detach().double().numpy()
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
    return c.alpha * pc, c.beta * loops.acam(np.concatenate(logits), targets)


# Cosines of an untrained network are small and its tokens alike: the gate and δ lie where they divide them.
END_TO_END = {"faac__init": "uniform", "acam__angular_max": 0.5, "acam__gate": 0.0, "faac__delta": 0.82}


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"faac__delta": 0.65},
        {"faac__delta": 0.9},
        {"acam__gate": 0.1},
        {"acam__cosine_max": 1.0},
        {"acam__negative_margin": "raised"},
        {"acam__direction": "ambiguous"},
        {"acam__views": "first"},
        {"acam__match": "weighted"},
    ],
    ids=str,
)
def test_added_losses_are_the_papers_equations_end_to_end(build, overrides):
    method = build(configured(**{**END_TO_END, **overrides}))
    batch = make_batch(method)
    pc, acam = reference_terms(method, batch)
    terms = method.losses(batch)
    assert set(terms) == SIMGCD_TERMS | {"pc", "acam"}
    np.testing.assert_allclose(terms["pc"].detach(), pc, atol=1e-5)
    np.testing.assert_allclose(terms["acam"].detach(), acam, atol=1e-5)
    np.testing.assert_allclose(terms["rep_u"].detach(), SimGCD.losses(method, batch)["rep_u"].detach())


@pytest.mark.parametrize(
    ("term", "overrides"),
    [
        ("pc", {"faac__delta": 0.9}),
        ("pc", {"faac__k": 5}),
        ("pc", {"faac__k_scaled": True}),
        ("pc", {"faac__k": 3, "faac__grid": 2}),
        ("pc", {"faac__min_matches": 5}),
        ("pc", {"faac__border": "replicate"}),
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
    method = build(configured(faac__delta=1.5))
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
    for name, value in expected.items():
        torch.testing.assert_close(terms[name], value)


def test_the_patch_loss_starts_when_told(build):
    method = build(configured(faac__start=0.5))
    assert "pc" not in method.losses(make_batch(method, progress=0.49))
    assert "pc" in method.losses(make_batch(method, progress=0.5))


def test_row_b_feeds_the_filtered_map(build):
    method = build(variant_config("filter"))
    x = torch.rand(4, 12, 4, 4)
    tail = TailOutput(map=x, pooled=x.mean((2, 3)))
    torch.testing.assert_close(method.feature(tail), tail.pooled)  # the identity at step 0, in scale too
    assert method.attention(tail) is None


def test_too_many_patches_are_refused_before_training_with_the_smallest_size():
    data, task, _ = tiny_task()
    method = MedXplore(configured(faac__k=17), task, tiny_context())
    with pytest.raises(ConfigError) as error:
        method.fit(data)
    assert "image_size=20" in error.value.hint
    method, _, _ = train(MedXplore, configured(faac__k=16), epochs=1)
    assert method.patches == 16


def test_a_backbone_with_a_class_token_has_no_pooled_x_out():
    class Summarised(TinyBackbone):
        pools_map = False

    data, task, _ = tiny_task()
    context = dataclasses.replace(tiny_context(epochs=1), load_backbone=Summarised)
    with pytest.raises(ConfigError, match="class token"):
        shrink(MedXplore)(MedXploreConfig(), task, context).fit(data)
    shrink(MedXplore)(configured(faac__feature="none"), task, context).fit(data)


def test_no_patches_are_asked_for_where_none_are_used():
    train(MedXplore, configured(faac__k=17, alpha=0.0, beta=0.0), epochs=1)


@pytest.mark.parametrize(
    "overrides",
    [
        {"faac.enabled": False},
        {"faac.glec": False},
        {"faac.enabled": False, "alpha": 0.0, "acam.signals": "A,W"},
        {"faac.glec": False, "alpha": 0.0, "faac.filter": "high-pass"},
        {"faac.kernel": 4},
        {"faac.k": 0},
        {"faac.start": 1.5},
        {"faac.ddof": 2},
        {"faac.eps": 0.0},
        {"faac.min_matches": 0},
        {"acam.gate": 1.0},
        {"acam.angular_max": 4.0},
        {"acam.cosine_max": 2.0},
        {"acam.scale": 0.0},
        {"acam.low": 0.9, "acam.high": 0.1},
        {"acam.momentum": 1.0},
        {"acam.signals": "X"},
        {"alpha": -1.0},
        {"faac.filter": "band-pass"},
    ],
    ids=str,
)
def test_settings_that_contradict_each_other_are_refused(overrides):
    with pytest.raises(ConfigError):
        apply_overrides(MedXploreConfig(), overrides)


def test_defaults_are_the_papers_and_the_notes():
    config = MedXploreConfig()
    assert (config.alpha, config.beta, config.lambda_) == (1.0, 0.5, 0.35)
    assert config.faac == FAACConfig(k=8, delta=0.65, filter="spectral-conv", feature="x_out", border="valid")
    assert config.acam == ACAMConfig(angular_max=0.2, cosine_max=0.2, scale=10.0, gate=0.3)
    assert config.acam.signals == ("A", "W", "G")


def test_the_deployed_state_is_simgcds_and_the_auxiliary_state_brings_the_attention_back():
    method, data, _ = train(MedXplore, configured(faac__init="uniform"))
    plain = shrink(SimGCD)(SimGCDConfig(), method.task, tiny_context())
    plain.load_state_dict(method.state_dict())
    ours, theirs = method.predict(data.unlabelled), plain.predict(data.unlabelled)
    assert np.array_equal(ours.cluster, theirs.cluster)
    assert np.array_equal(ours.embedding, theirs.embedding)

    again = shrink(MedXplore)(method.config, method.task, tiny_context())
    again.load_state_dict(method.state_dict())
    again.load_auxiliary_state(method.auxiliary_state())
    x = torch.rand(3, 12, 4, 4)
    tail = TailOutput(map=x, pooled=x.mean((2, 3)))
    assert torch.equal(again.attention(tail), method.attention(tail))
    assert method.attention(tail).shape == (3, 4, 4)


def test_the_inside_of_an_epoch_is_logged():
    _, _, events = train(MedXplore, MedXploreConfig(), epochs=3)
    figures = [event for event in events if event["type"] == "medxplore"]
    assert [event["epoch"] for event in figures] == [0, 1, 2]
    assert 0 <= figures[-1]["images_matched"] <= 1
    assert 0 <= figures[-1]["hard_negatives"] <= 1
    assert figures[-1]["u"] == pytest.approx(0.5)  # ranks pin it there for ever


def test_a_resumed_run_is_the_uninterrupted_one(tmp_path):
    """The running percentiles and FAAC's weights are part of a checkpoint."""
    config = configured(acam__percentile="running", faac__init="uniform")
    whole, _, _ = train(MedXplore, config, epochs=3)
    data, task, _ = tiny_task()

    class Interrupted(Exception):
        pass

    def stop(event):
        if event["type"] == "epoch" and event["epoch"] == 1:
            raise Interrupted

    context = tiny_context(epochs=3, checkpoint_dir=tmp_path, checkpoint_seconds=0.0, log=stop)
    with pytest.raises(Interrupted):
        shrink(MedXplore)(config, task, context).fit(data)
    context = tiny_context(epochs=3, checkpoint_dir=tmp_path, checkpoint_seconds=0.0)
    resumed = shrink(MedXplore)(config, task, context)
    resumed.fit(data)
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name
    for name, value in whole.auxiliary_state().items():
        assert torch.equal(value, resumed.auxiliary_state()[name]), name


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


WITHOUT_PLUGIN = """
import sys
sys.modules["gcdbench_medxplore"] = None  # what an import meets where the plugin is not installed
import numpy as np
from pathlib import Path
from gcdbench.testing.tiny import TinyBackbone, tiny_task
from gcdbench.training.deploy import load_model

folder = Path(sys.argv[1])
data, _, _ = tiny_task()
prediction = load_model(folder, load_backbone=TinyBackbone).predict(data.unlabelled)
np.savez(folder / "found.npz", cluster=prediction.cluster, embedding=prediction.embedding)
"""


def test_the_saved_model_predicts_the_same_where_the_plugin_is_missing(tmp_path):
    method, data, _ = train(MedXplore, MedXploreConfig())
    method.save_model(tmp_path)
    subprocess.run([sys.executable, "-c", WITHOUT_PLUGIN, str(tmp_path)], check=True)
    found, expected = np.load(tmp_path / "found.npz"), method.predict(data.unlabelled)
    assert np.array_equal(found["cluster"], expected.cluster)
    assert np.array_equal(found["embedding"], expected.embedding)

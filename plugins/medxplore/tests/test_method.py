"""MedXplore in the training engine: equal to SimGCD where it must be, every variant trains, the model deploys."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
import torch
from gcdbench_medxplore.config import MedXploreConfig
from gcdbench_medxplore.method import MedXplore
from gcdbench_medxplore.plugin import gcdbench_methods
from gcdbench_medxplore.variants import VARIANTS
from medxplore_training import SIMGCD_TERMS, configured, train, variant_config

from gcdbench.api import ConfigError, SimGCD, SimGCDConfig, TailOutput
from gcdbench.core.config import apply_overrides
from gcdbench.testing import conformance
from gcdbench.testing.tiny import TinyBackbone, shrink, tiny_context, tiny_task


def losses_of(events):
    return [event["losses"] for event in events if event["type"] == "epoch"]


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
    """A patch loss that never starts builds FAAC, but the run stays SimGCD's."""
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


def test_too_many_patches_are_refused_before_views_are_made_with_the_smallest_size():
    data, task, _ = tiny_task()
    method = MedXplore(configured(faac__k=17), task, tiny_context())
    with pytest.raises(ConfigError) as error:
        method.fit(data)
    assert "image_size=20" in error.value.hint
    assert not hasattr(method, "views")
    method, _, _ = train(MedXplore, configured(faac__k=16), epochs=1)
    assert method.patches == 16


def test_a_backbone_with_a_class_token_has_no_pooled_x_out():
    class Summarised(TinyBackbone):
        pools_map = False

    data, task, _ = tiny_task()
    context = dataclasses.replace(tiny_context(epochs=1), load_backbone=Summarised)
    with pytest.raises(ConfigError, match="the mean of its map: a class token, or a norm after the mean"):
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
        {"acam.signals": "", "acam.direction": "ambiguous"},
        {"acam.cos_eps": 0.0},
        {"faac.delta": 65},
        {"faac.cutoff": -0.1},
        {"lambda_": 35},
        {"alpha": -1.0},
        {"faac.filter": "band-pass"},
        {"faac.token_dim": 0},
        {"faac.stop_gradient": "both"},
        {"acam.outputs": "new"},
    ],
    ids=str,
)
def test_settings_that_contradict_each_other_are_refused(overrides):
    with pytest.raises(ConfigError):
        apply_overrides(MedXploreConfig(), overrides)


def test_defaults_are_the_papers_and_the_notes():
    config = MedXploreConfig()
    assert (config.alpha, config.beta, config.lambda_) == (1.0, 0.5, 0.35)
    assert dataclasses.asdict(config.faac) == {
        "enabled": True, "feature": "x_out", "glec": True, "filter": "spectral-conv", "kernel": 3,
        "padding": "circular", "init": "delta", "cutoff": 0.25, "border": "valid", "ddof": 0, "gamma": 1.0,
        "learn_gamma": True, "eps": 1e-6, "k": 8, "k_scaled": False, "grid": None, "delta": 0.65, "min_matches": 1,
        "weight_gradient": False, "start": 0.0, "token_dim": None, "stop_gradient": "none", "attention_gradient": True,
    }  # fmt: skip
    assert dataclasses.asdict(config.acam) == {
        "signals": ("A", "W", "G"), "percentile": "rank", "momentum": 0.99, "low": 0.05, "high": 0.95, "match": "mean",
        "views": "both", "detach": True, "direction": "confident", "angular_max": 0.2, "cosine_max": 0.2, "scale": 10.0,
        "gate": 0.3, "overshoot": "clamp", "cos_eps": 1e-6, "negative_margin": "as-written", "outputs": "all",
        "head": "shared",
    }  # fmt: skip


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
    figures = figures_of(events)
    assert [event["epoch"] for event in figures] == [0, 1, 2]
    assert 0 <= figures[-1]["images_matched"] <= 1
    assert 0 <= figures[-1]["hard_negatives"] <= 1
    assert figures[-1]["u"] == pytest.approx(0.5)  # ranks pin it there for ever
    assert figures[-1]["u_sd"] > 0.05
    assert {"gamma", "A_sd", "W_sd"} <= set(figures[-1])


def test_gamma_is_logged_without_patches_and_without_acam():
    _, _, events = train(MedXplore, variant_config("filter+glec"), epochs=2)
    assert [set(event) for event in figures_of(events)] == [{"type", "epoch", "gamma"}] * 2


@pytest.mark.parametrize("check", conformance.CHECKS)
def test_medxplore_keeps_to_what_the_harness_promises(check, tmp_path):
    conformance.run_check(check, MedXplore, MedXploreConfig(), folder=tmp_path)


def test_a_resumed_run_is_the_uninterrupted_one(tmp_path):
    """The running percentiles, FAAC's weights and the figures that are still to be logged are part of a checkpoint."""
    config = configured(acam__percentile="running", faac__init="uniform")
    whole, _, events = train(MedXplore, config, epochs=3)
    data, task, _ = tiny_task()

    class Interrupted(Exception):
        pass

    def stop(event):
        if event["type"] == "epoch" and event["epoch"] == 1:
            raise Interrupted

    context = tiny_context(epochs=3, checkpoint_dir=tmp_path, checkpoint_seconds=0.0, log=stop)
    with pytest.raises(Interrupted):
        shrink(MedXplore)(config, task, context).fit(data)
    later = []
    context = tiny_context(epochs=3, checkpoint_dir=tmp_path, checkpoint_seconds=0.0, log=later.append)
    resumed = shrink(MedXplore)(config, task, context)
    resumed.fit(data)
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name
    for name, value in whole.auxiliary_state().items():
        assert torch.equal(value, resumed.auxiliary_state()[name]), name
    # Killed after the last step of epoch 1: no step is left that could give its figures.
    assert figures_of(later) == figures_of(events)[1:]


def figures_of(events):
    return [event for event in events if event["type"] == "medxplore"]


WITHOUT_PLUGIN = """
import sys
sys.modules["gcdbench_medxplore"] = None  # what an import meets where the plugin is not installed
import numpy as np
from pathlib import Path
from gcdbench.testing.tiny import TinyBackbone, tiny_task
from gcdbench.api import load_model

folder = Path(sys.argv[1])
data, _, _ = tiny_task()
model = load_model(folder, load_backbone=TinyBackbone)
prediction = model.predict_squares(data.unlabelled.pixels(), embeddings=True)
np.savez(folder / "found.npz", cluster=prediction.cluster, embedding=prediction.embedding)
"""


def test_the_saved_model_predicts_the_same_where_the_plugin_is_missing(tmp_path):
    method, data, _ = train(MedXplore, MedXploreConfig())
    method.save_model(tmp_path)
    subprocess.run([sys.executable, "-c", WITHOUT_PLUGIN, str(tmp_path)], check=True)
    found, expected = np.load(tmp_path / "found.npz"), method.predict(data.unlabelled)
    assert np.array_equal(found["cluster"], expected.cluster)
    assert np.array_equal(found["embedding"], expected.embedding)

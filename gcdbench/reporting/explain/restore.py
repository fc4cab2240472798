"""A finished run's method, brought back from its directory."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gcdbench.core.config import apply_overrides, flatten
from gcdbench.core.errors import PluginError, StoreError, UnknownName
from gcdbench.models.heads import HEADS
from gcdbench.models.model_file import read_auxiliary
from gcdbench.models.predict import Model, load_model
from gcdbench.plugins.manager import PluginManager
from gcdbench.plugins.specs import load_attribute
from gcdbench.runs.directory import DONE, RunDirectory
from gcdbench.runs.plan import NoConfig
from gcdbench.training.context import RunContext
from gcdbench.training.method import HasAuxiliaryState, TaskInfo
from gcdbench.training.naming import merge_states

if TYPE_CHECKING:
    from gcdbench.training.parametric import ParametricMethod


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A run and its model, ready to look at images.

    method: the run's method with its training-only modules, sharing the model's network; None where its code is not
    at hand, which ``note`` then says, or where it is not one that trains a tail.
    """

    directory: RunDirectory
    record: Mapping[str, Any]
    model: Model
    method: ParametricMethod | None
    note: str = ""

    @property
    def name(self) -> str:
        """Method and variant, for tables and titles."""
        variant = self.record.get("variant")
        return f"{self.record['method']}/{variant}" if variant else str(self.record["method"])

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names, old ones first: what the stored true classes index."""
        split = self.record["split"]
        return (*split["old_classes"], *split["new_classes"])


def restore(directory: RunDirectory, manager: PluginManager, *, device: str = "cpu") -> Trained:
    """The saved model, and the trained method with its training-only modules.

    Where the method's plugin is not installed the saved model still is: it comes back without an attention of its own.
    """
    record = directory.record()
    if directory.status() != DONE:
        raise StoreError(
            f"The run '{directory.path.name}' is {directory.status()}, not done.", hint="Finish it with 'gcdbench run'."
        )
    ctx = run_context(directory, manager, device=device)
    model = load_model(directory.path, load_backbone=lambda: ctx.backbone, device=device)
    card = model.card
    if card.tail != "trained" or card.predictor not in HEADS:
        return Trained(directory=directory, record=record, model=model, method=None)
    try:
        spec = manager.get("methods", record["method"])
        factory = spec.load()
        config_class = load_attribute(spec.config) if spec.config else NoConfig
    except (UnknownName, PluginError, ImportError) as error:
        note = f"The method '{record['method']}' cannot be loaded here ({error}): its own attention is left out."
        return Trained(directory=directory, record=record, model=model, method=None, note=note)
    config = apply_overrides(config_class(), flatten(record["identity"]["config"]))
    method = factory(config, TaskInfo(k_old=card.k_old, k=card.k, image_size=card.image_size), ctx)
    method.load_state_dict(merge_states({"tail": model.backbone.tail, "prototypes": model.head}))
    if isinstance(method, HasAuxiliaryState):
        method.load_auxiliary_state(read_auxiliary(directory.path))
    method.backbone.eval()
    for module in method.extras.values():
        module.eval()
    return Trained(directory=directory, record=record, model=model, method=method)


def run_context(directory: RunDirectory, manager: PluginManager, *, device: str = "cpu") -> RunContext:
    """A context with the run's backbone and size. Views are made online: a look must not build a bank of views."""
    record = directory.record()
    settings = tomllib.loads((directory.path / "config.toml").read_text(encoding="utf-8")).get("settings", {})
    spec = manager.get("backbones", record["backbone"])
    return RunContext(
        seed=int(record["seed"]),
        image_size=int(record["image_size"]),
        device=device,
        views="online",
        augmentation=str(settings.get("augmentation", "paper")),
        load_backbone=lambda: spec.load()(settings.get("weights")),
    )

"""A finished run's method, brought back from its directory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gcdbench.core.config import apply_overrides, flatten
from gcdbench.core.errors import PluginError, StoreError, UnknownName
from gcdbench.models.heads import HEADS
from gcdbench.models.model_file import read_auxiliary
from gcdbench.models.predict import Model, load_model
from gcdbench.plugins.manager import PluginManager
from gcdbench.plugins.specs import load_attribute
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.plan import NoConfig
from gcdbench.runs.reader import CONFIG, read_config
from gcdbench.runs.record import DONE, Record
from gcdbench.runs.strict_json import Fields
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
    record: Record
    model: Model
    method: ParametricMethod | None
    note: str = ""

    @property
    def name(self) -> str:
        """Method and variant, for tables and titles."""
        return f"{self.record.method}/{self.record.variant}" if self.record.variant else self.record.method

    @property
    def dataset_text(self) -> str:
        """The dataset as it was written for the run: the name on its card opens no ``folder:`` and no ``csv:``."""
        return str(read_config(self.record).get("dataset") or self.record.dataset)

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names, old ones first: what the stored true classes index."""
        return self.record.split.classes


def restore(directory: RunDirectory, manager: PluginManager, *, device: str = "cpu") -> Trained:
    """The saved model, and the trained method with its training-only modules.

    Where the method's plugin is not installed the saved model still is: it comes back without an attention of its own.
    """
    record = directory.record()
    if record.status != DONE:
        raise StoreError(
            f"The run '{directory.path.name}' is {directory.state_of(record)}, not done.",
            hint="Finish it with 'gcdbench run'.",
        )
    ctx = run_context(record, manager, device=device)
    model = load_model(record.home, load_backbone=lambda: ctx.backbone, device=device)
    card = model.card
    if card.tail != "trained" or card.predictor not in HEADS:
        return Trained(directory=directory, record=record, model=model, method=None)
    try:
        spec = manager.get("methods", record.method)
        factory = spec.load()
        config_class = load_attribute(spec.config) if spec.config else NoConfig
    except (UnknownName, PluginError, ImportError) as error:
        note = f"The method '{record.method}' cannot be loaded here ({error}): its own attention is left out."
        return Trained(directory=directory, record=record, model=model, method=None, note=note)
    config = apply_overrides(config_class(), flatten(record.config))
    method = factory(config, TaskInfo(k_old=card.k_old, k=card.k, image_size=card.image_size), ctx)
    method.load_state_dict(merge_states({"tail": model.backbone.tail, "prototypes": model.head}))
    if isinstance(method, HasAuxiliaryState):
        method.load_auxiliary_state(read_auxiliary(record.home))
    method.backbone.eval()
    for module in method.extras.values():
        module.eval()
    return Trained(directory=directory, record=record, model=model, method=method)


def run_context(record: Record, manager: PluginManager, *, device: str = "cpu") -> RunContext:
    """A context with the run's backbone and size. Views are made online: a look must not build a bank of views."""
    settings = Fields(read_config(record), str(record.home / CONFIG)).inner("settings", {})
    spec = manager.get("backbones", record.backbone)
    return RunContext(
        seed=record.seed,
        image_size=record.image_size,
        device=device,
        views="online",
        augmentation=settings.text("augmentation", "paper"),
        load_backbone=lambda: spec.load()(settings.optional_text("weights")),
    )

"""From what the user asked for to a complete, checked description of a run. Nothing is trained or decoded here."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcdbench.core.config import apply_overrides, field_types, to_plain, to_settable, unknown_key
from gcdbench.core.errors import ConfigError, UnknownName
from gcdbench.datasets.protocols import named_protocol, planning_card
from gcdbench.plugins.manager import PluginManager
from gcdbench.plugins.specs import DatasetSpec, MethodSpec, load_attribute
from gcdbench.runs.presets import RunSettings, default_preset, get_preset
from gcdbench.runs.request import Request
from gcdbench.splits.manifest import SplitManifest
from gcdbench.splits.protocol import Protocol, renamed
from gcdbench.splits.split_file import read_split
from gcdbench.training.config import TrainingConfig
from gcdbench.views.setting import parse_views

PROTOCOL_PREFIX = "protocol."


@dataclass(frozen=True, kw_only=True)
class NoConfig:
    """Config of a method that has nothing to set."""


@dataclass(frozen=True, kw_only=True)
class Materials:
    """What only the data, the weights and the processes in use can tell of a run: it completes a plan's identity.

    Empty where a plan is compared with stored runs without opening its dataset.
    """

    dataset: str
    manifest_sha256: str = ""
    images: str = ""
    weights_sha256: str = ""
    world_size: int = 1
    accepted_data_issues: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class OwnData:
    """Data that is registered nowhere: how it is called, and what is known of it."""

    dataset: DatasetSpec
    protocol: Protocol


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A run, resolved: every setting has its final value.

    ``split`` is a manifest given by the user, read from ``split_file``, or None.
    """

    method: MethodSpec
    dataset: DatasetSpec
    dataset_name: str
    dataset_argument: str | None
    dataset_options: Mapping[str, str]
    variant: str | None
    preset: str
    protocol: Protocol
    seed: int
    settings: RunSettings
    training: TrainingConfig
    config: Any
    split: SplitManifest | None = None
    split_file: str | None = None

    @property
    def dataset_text(self) -> str:
        """The dataset as the user wrote it."""
        return self.dataset_name if self.dataset_argument is None else f"{self.dataset_name}:{self.dataset_argument}"

    def without_effect(self, keys: Iterable[str]) -> list[str]:
        """Those of these settings that a run of this method never looks at."""
        idle: set[str] = set()
        if not self.method.needs_backbone:
            idle |= {"backbone", "weights"}
        if not self.method.trained:
            idle |= {"views", "augmentation", *field_types(TrainingConfig)}
        return [key for key in keys if key.removeprefix("settings.").removeprefix("training.") in idle]

    def resolved(self) -> dict[str, Any]:
        """The content of ``config.toml``; ``gcdbench run --config`` reads it back."""
        said = {
            "method": self.method.name,
            "variant": self.variant,
            "dataset": self.dataset_text,
            "preset": self.preset,
            "split": self.split_file,
            "seed": self.seed,
        }
        return {key: value for key, value in said.items() if value is not None} | {
            "settings": to_settable(self.settings),
            "training": to_settable(self.training) if self.method.trained else {},
            "protocol": {
                key: value for key, value in to_settable(self.protocol).items() if key in self.protocol.card()
            },
            "config": to_settable(self.config),
            "dataset_set": dict(self.dataset_options),
        }

    def identity(self, materials: Materials) -> dict[str, Any]:
        """The allow-list that names a run. Device, workers, threads and paths are not in it.

        A field that is added later stays out while it has its default, so that the ids of stored runs do not change.
        """
        identity: dict[str, Any] = {
            "method": self.method.name,
            "method_version": self.method.version,
            "config": to_plain(self.config),
            "dataset": materials.dataset,
            "manifest_sha256": materials.manifest_sha256,
            "images": materials.images,
            "protocol": self.protocol.card(),
            "image_size": self.settings.image_size,
            "seed": self.seed,
            "precision": self.settings.precision,
        }
        if self.method.needs_backbone:
            identity |= {"backbone": self.settings.backbone, "weights_sha256": materials.weights_sha256}
        if self.method.trained:
            identity |= {
                "training": to_plain(self.training),
                "views": self.settings.views,
                "augmentation": self.settings.augmentation,
                "world_size": materials.world_size,
            }
        if materials.accepted_data_issues:
            identity["accepted_data_issues"] = sorted(materials.accepted_data_issues)
        return identity


def detect_gpu() -> bool:
    """Whether a CUDA device is likely here, without importing torch."""
    import ctypes.util
    import shutil

    return shutil.which("nvidia-smi") is not None and ctypes.util.find_library("cuda") is not None


def split_dataset_name(text: str) -> tuple[str, str | None]:
    """``folder:some/path`` into the registered name and its argument."""
    name, separator, argument = text.partition(":")
    return (name, argument) if separator else (text, None)


def make_plan(request: Request, manager: PluginManager, *, own: OwnData | None = None) -> Plan:
    """Resolve a request: look every name up, merge preset, variant and ``--set``, check every value.

    ``own`` takes the place of the dataset's and the protocol's name where the data is registered nowhere.
    """
    method: MethodSpec = manager.get("methods", request.method)
    dataset_key, argument = split_dataset_name(request.dataset)
    dataset: DatasetSpec = own.dataset if own else manager.get("datasets", dataset_key)
    if dataset.takes_argument and not argument:
        raise ConfigError(f"The dataset '{dataset_key}' needs an argument: {dataset_key}:<path>.")
    if argument and not dataset.takes_argument:
        raise ConfigError(f"The dataset '{dataset_key}' takes no argument, but '{argument}' was given.")

    preset_name = request.preset or default_preset(has_gpu=detect_gpu())
    preset = get_preset(preset_name, manager)
    config_class = load_attribute(method.config) if method.config else NoConfig
    own_keys = _own_keys(method.name, config_class)
    variant: Mapping[str, object] = {}
    if request.variant is not None:
        if request.variant not in method.variants:
            raise UnknownName(f"variant of '{method.name}'", request.variant, method.variants)
        variant = method.variants[request.variant]

    sections: dict[str, dict[str, object]] = {"settings": {}, "training": {}, "protocol": {}, "config": {}}
    places = _places(own_keys)
    # One after the other: a setting has two names, and what was said last counts.
    for key, value in (*variant.items(), *request.overrides.items()):
        found = places.get(key)
        if not found:
            raise unknown_key(key, places)
        if len(found) > 1:
            meant = " or ".join(f"{section}.{key}" for section, _ in found)
            raise ConfigError(f"'{key}' is a setting of the run and of method '{method.name}': write {meant}.")
        [(section, name)] = found
        sections[section][name] = value

    settings = apply_overrides(preset.settings, sections["settings"])
    parse_views(settings.views)
    if method.needs_backbone or "backbone" in sections["settings"]:
        manager.get("backbones", settings.backbone)  # a name that is not used must be right, too
    if not method.needs_backbone:
        settings = dataclasses.replace(settings, backbone="none", weights=None)
    if not method.trained:
        settings = dataclasses.replace(settings, views="none", augmentation="none")
    training = apply_overrides(preset.training, sections["training"])
    manifest = _given_split(request, sections["protocol"])
    if own is not None and sections["protocol"]:
        raise ConfigError("Your files say what is labelled: leave --set protocol.… out.")
    given = manifest.protocol if manifest else own.protocol if own else None
    protocol = given or named_protocol(request.protocol, planning_card(dataset), dataset_key)
    changed = renamed(protocol, apply_overrides(protocol, sections["protocol"], prefix=PROTOCOL_PREFIX))
    return Plan(
        method=method,
        dataset=dataset,
        dataset_name=dataset_key,
        dataset_argument=argument,
        dataset_options={
            **{key: value for key, value in preset.dataset_options.items() if key in dataset.options},
            **request.dataset_options,
        },
        variant=request.variant,
        preset=preset_name,
        protocol=dataclasses.replace(changed, k_policy=request.k_policy),
        seed=request.seed,
        settings=settings,
        training=training,
        config=apply_overrides(config_class(), sections["config"]),
        split=manifest,
        split_file=request.split,
    )


def _own_keys(method: str, config_class: type[Any]) -> dict[str, Any]:
    """The settings of a method; a config that could not be set, or be changed behind the record's back, is refused."""
    if not dataclasses.is_dataclass(config_class) or not config_class.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise ConfigError(
            f"The config of method '{method}' must be a frozen dataclass.",
            hint=f"Write @dataclass(frozen=True, kw_only=True) above class {config_class.__name__}.",
        )
    required = [
        field.name
        for field in dataclasses.fields(config_class)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    if required:
        raise ConfigError(f"The setting '{required[0]}' of method '{method}' needs a default value.")
    return field_types(config_class)


def _places(own_keys: Iterable[str]) -> dict[str, list[tuple[str, str]]]:
    """What a key may mean, as (section, name): its plain name, or the name after its section and a dot."""
    protocol = [key for key in field_types(Protocol) if key not in ("name", "k_policy")]
    places: dict[str, list[tuple[str, str]]] = {f"{PROTOCOL_PREFIX}{key}": [("protocol", key)] for key in protocol}
    names = {"settings": field_types(RunSettings), "training": field_types(TrainingConfig), "config": own_keys}
    for section, keys in names.items():
        for key in keys:
            places.setdefault(key, []).append((section, key))
            places[f"{section}.{key}"] = [(section, key)]
    return places


def _given_split(request: Request, protocol_overrides: Mapping[str, object]) -> SplitManifest | None:
    """The manifest of ``--split``; it brings its protocol, so no other may be asked for."""
    if request.split is None:
        return None
    if request.protocol is not None or protocol_overrides:
        raise ConfigError("--split brings its own protocol: leave --protocol and --set protocol.… out.")
    return read_split(Path(request.split))

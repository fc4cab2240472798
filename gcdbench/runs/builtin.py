"""The presets that come with gcdbench, registered through the same hook as everybody else's."""

from __future__ import annotations

from collections.abc import Iterable

from gcdbench.plugins.hookspecs import hookimpl
from gcdbench.plugins.specs import PresetSpec


@hookimpl
def gcdbench_presets() -> Iterable[PresetSpec]:
    """For a GPU, for a laptop, and for seeing that everything runs."""
    return [
        PresetSpec(
            name="gpu",
            summary="hours on a GPU: ResNet-18, 224 px, 200 epochs, fresh augmentation in every step",
            settings={"backbone": "resnet18", "image_size": 224, "views": "online", "epochs": 200},
        ),
        PresetSpec(
            name="laptop",
            # Captions of stored tables quote this line.
            summary="minutes on two cores: EfficientNet-Lite0, 128 px, 20 epochs, 16 stored views per image",
            settings={"backbone": "efficientnet-lite0", "image_size": 128, "views": "bank:16", "epochs": 20},
        ),
        PresetSpec(
            name="smoke",
            summary="seconds, to see that everything runs: EfficientNet-Lite0, 96 px, 2 epochs, 2 stored views",
            settings={
                "backbone": "efficientnet-lite0",
                "image_size": 96,
                "views": "bank:2",
                "epochs": 2,
                "batch_size": 32,
            },
            dataset_options={"n_per_class": "16"},
        ),
    ]

"""Real ImageNet weights on real images: what a frozen network sees must say something about the class."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor

from gcdbench.models.backbone import Backbone
from gcdbench.models.weight_notes import note_on_weights
from gcdbench.plugins.manager import get_manager

PER_CLASS = 12
GUESSING = 1 / 8


def found(place: str) -> Path:
    """A file or folder below GCDBENCH_DATA, or skip."""
    for root in filter(None, os.environ.get("GCDBENCH_DATA", "").split(os.pathsep)):
        if (Path(root) / place).exists():
            return Path(root) / place
    pytest.skip(f"{place} is not in GCDBENCH_DATA")


def kvasir(size: int, backbone: Backbone) -> tuple[Tensor, np.ndarray]:
    """Standardised images (N, 3, size, size), the first of each class, and their classes."""
    folders = sorted(path for path in (found("kvasir") / "kvasir-dataset").iterdir() if path.is_dir())
    files = [sorted(folder.glob("*.jpg"))[:PER_CLASS] for folder in folders]
    pixels = np.stack(
        [
            np.asarray(Image.open(file).convert("RGB").resize((size, size), Image.Resampling.BICUBIC))
            for part in files
            for file in part
        ]
    )
    images = torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (backbone.mean, backbone.std))
    return (images - mean) / std, np.repeat(np.arange(len(files)), [len(part) for part in files])


def neighbours_accuracy(backbone: Backbone, size: int) -> float:
    """Share of images whose five nearest others by cosine name their class."""
    images, classes = kvasir(size, backbone)
    backbone.eval()
    with torch.no_grad():
        pooled = torch.cat([backbone.run_tail(backbone.prefix(part)).pooled for part in images.split(40)])
    points = torch.nn.functional.normalize(pooled, dim=1).numpy()
    model = KNeighborsClassifier(n_neighbors=5, algorithm="brute")
    return float(cross_val_score(model, points, classes, cv=5).mean())


@pytest.mark.parametrize(
    ("name", "file", "size"),
    [
        ("resnet50", "weights/resnet50-imagenet.safetensors", 128),
        ("timm:deit_tiny_patch16_224", "weights/deit-tiny-patch16-224-imagenet.safetensors", 224),
    ],
)
def test_real_weights_tell_real_classes_apart(name: str, file: str, size: int) -> None:
    spec = get_manager().get("backbones", name)
    path = str(found(file))
    backbone = spec.load()(path)
    assert neighbours_accuracy(backbone, size) > 4 * GUESSING
    digest = spec.weights_sha256(path, load=False)
    assert backbone.weights_sha256 == digest
    assert "cannot be redistributed" in str(note_on_weights(digest))

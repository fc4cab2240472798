"""Small copies of the field's datasets in their real formats, written by the tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.io import savemat

from gcdbench.datasets.card import load_card
from tests.data.conftest import noise_image

TRAIN, TEST = 3, 1
"""Images per class and part of a copy."""


def save(path: Path, seed: int) -> None:
    """One small picture of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    noise_image(seed, 24, 20).save(path, format="JPEG")


def records(count: int, label_bytes: int, classes: int, seed: int) -> bytes:
    """Records of CIFAR's binary edition: labels (coarse first), then the red, green and blue planes."""
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 256, (count, label_bytes + 3072), dtype=np.uint8)
    table[:, label_bytes - 1] = np.arange(count) % classes
    if label_bytes == 2:
        table[:, 0] = table[:, 1] // 5
    return table.tobytes()


def cifar10(root: Path) -> Path:
    folder = root / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    for number in range(1, 6):
        (folder / f"data_batch_{number}.bin").write_bytes(records(10, 1, 10, number))
    (folder / "test_batch.bin").write_bytes(records(10, 1, 10, 9))
    (folder / "batches.meta.txt").write_text("\n".join(load_card("cifar10").classes) + "\n")
    return folder


def cifar100(root: Path) -> Path:
    folder = root / "cifar-100-binary"
    folder.mkdir(parents=True)
    (folder / "train.bin").write_bytes(records(300, 2, 100, 1))
    (folder / "test.bin").write_bytes(records(100, 2, 100, 2))
    return folder


def cub(root: Path) -> Path:
    folder = root / "CUB_200_2011"
    classes = load_card("cub-200-2011").classes
    images, labels, parts = [], [], []
    for label, name in enumerate(classes):
        for index in range(TRAIN + TEST):
            number = len(images) + 1
            file = f"{name}/{name[4:]}_{index:04d}_{number}.jpg"
            save(folder / "images" / file, number)
            images.append(f"{number} {file}")
            labels.append(f"{number} {label + 1}")
            parts.append(f"{number} {int(index < TRAIN)}")
    lists = {"images.txt": images, "image_class_labels.txt": labels, "train_test_split.txt": parts}
    lists["classes.txt"] = [f"{label + 1} {name}" for label, name in enumerate(classes)]
    for name, lines in lists.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    return folder


def annotations(file: Path, rows: list[tuple[str, int]], *, with_class: bool = True) -> None:
    """A structure array as the publishers' devkit has it: bounding box, class from 1 on, file name."""
    kinds = [("bbox_x1", object), ("fname", object)] + ([("class", object)] if with_class else [])
    table = np.zeros((1, len(rows)), dtype=kinds)
    for position, (name, label) in enumerate(rows):
        table["bbox_x1"][0, position] = np.uint16(1)
        table["fname"][0, position] = name
        if with_class:
            table["class"][0, position] = np.uint8(label)
    file.parent.mkdir(parents=True, exist_ok=True)
    savemat(file, {"annotations": table}, do_compression=True)


def cars(root: Path) -> Path:
    folder = root / "stanford_cars"
    classes = load_card("stanford-cars").classes
    names = np.empty((1, len(classes)), dtype=object)
    names[0] = classes
    (folder / "devkit").mkdir(parents=True)
    savemat(folder / "devkit" / "cars_meta.mat", {"class_names": names})
    for part, per_class in (("train", TRAIN), ("test", TEST)):
        rows = [(f"{i + 1:05d}.jpg", i % len(classes) + 1) for i in range(per_class * len(classes))]
        for number, (name, _) in enumerate(rows):
            save(folder / f"cars_{part}" / name, number + (0 if part == "train" else 50_000))
        file = "devkit/cars_train_annos.mat" if part == "train" else "cars_test_annos_withlabels.mat"
        annotations(folder / file, rows)
    return folder


def aircraft(root: Path) -> Path:
    folder = root / "fgvc-aircraft-2013b" / "data"
    classes = load_card("fgvc-aircraft").classes
    number = 1_000_000
    for part, per_class in (("trainval", TRAIN), ("test", TEST)):
        lines = []
        for name in classes:
            for _ in range(per_class):
                number += 1
                save(folder / "images" / f"{number}.jpg", number)
                lines.append(f"{number} {name}")
        (folder / f"images_variant_{part}.txt").write_text("\n".join(lines) + "\n")
    (folder / "variants.txt").write_text("\n".join(classes) + "\n")
    return folder


def herbarium(root: Path) -> Path:
    folder = root / "herbarium-19"
    for part, per_class in (("small-train", 2), ("small-validation", 1)):
        for name in load_card("herbarium-19").classes:
            for index in range(per_class):
                save(folder / part / name / f"{index:05d}.jpg", 10 * int(name) + index + (5 if "val" in part else 0))
    return folder


def imagenet(root: Path) -> Path:
    folder = root / "imagenet"
    for part, per_class in (("train", TRAIN), ("val", TEST)):
        for label, name in enumerate((*load_card("imagenet-100").classes, "n99999999")):
            for index in range(per_class):
                save(folder / part / name / f"{name}_{index}.JPEG", 100 * label + index + (50 if part == "val" else 0))
    return folder


COPIES: dict[str, Callable[[Path], Path]] = {
    "cifar10": cifar10,
    "cifar100": cifar100,
    "imagenet-100": imagenet,
    "cub-200-2011": cub,
    "stanford-cars": cars,
    "fgvc-aircraft": aircraft,
    "herbarium-19": herbarium,
}

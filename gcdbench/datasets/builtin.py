"""The datasets that come with gcdbench, registered through the same hook as everybody else's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gcdbench.datasets.card import card_path
from gcdbench.plugins.hookspecs import hookimpl
from gcdbench.plugins.specs import DatasetSpec

_SOURCES = "gcdbench.datasets.sources"

_NAMED = (
    ("kvasir", "folder:make_named_folder", "endoscopy, 8 classes of 500 images", ()),
    ("kvasir-v2", "folder:make_named_folder", "endoscopy, 8 classes of 1,000 images", ()),
    ("nct-crc-he-100k", "nct_crc:make_nct_crc", "histology, 9 classes, 100,000 + 7,180 images", ()),
    ("ham10000", "ham10000:make_ham10000", "skin lesions, 7 classes, 10,015 images, grouped by lesion", ()),
    ("pbc", "folder:make_named_folder", "blood cells, 8 classes, 17,092 images", ()),
    ("kvasir-seg", "kvasir_seg:make_kvasir_seg", "polyps with masks, for attention scores only", ("masks",)),
    (
        "cifar10",
        "records:make_cifar",
        "photographs of 32 x 32 pixels, 10 classes, 50,000 + 10,000 images",
        ("natural",),
    ),
    (
        "cifar100",
        "records:make_cifar",
        "photographs of 32 x 32 pixels, 100 classes, 50,000 + 10,000 images",
        ("natural",),
    ),
    ("imagenet-100", "imagenet:make_imagenet_subset", "photographs, 100 classes of an ImageNet folder", ("natural",)),
    ("cub-200-2011", "cub:make_cub", "birds, 200 species, 5,994 + 5,794 images", ("natural",)),
    ("stanford-cars", "cars:make_cars", "cars, 196 models, 8,144 + 8,041 images", ("natural",)),
    ("fgvc-aircraft", "aircraft:make_aircraft", "aircraft, 100 variants, 6,667 + 3,333 images", ("natural",)),
    ("herbarium-19", "herbarium:make_herbarium", "herbarium sheets, 683 species, 34,225 + 2,679 images", ("natural",)),
)

MEDMNIST = {
    "organamnist": "CT slices (axial), 11 organs",
    "organcmnist": "CT slices (coronal), 11 organs",
    "organsmnist": "CT slices (sagittal), 11 organs",
    "pathmnist": "histology, 9 classes",
    "dermamnist": "skin lesions, 7 classes",
    "octmnist": "retinal OCT, 4 classes",
    "pneumoniamnist": "chest X-ray, 2 classes",
    "retinamnist": "fundus, 5 grades",
    "breastmnist": "breast ultrasound, 2 classes",
    "bloodmnist": "blood cells, 8 classes",
    "tissuemnist": "kidney tissue, 8 classes",
}
"""The 2-D sets of MedMNIST with one label per image; ChestMNIST has several and is left out."""

_WITH_ARGUMENT = (
    ("folder", "folder:make_folder", "folder:<path>, any folder of class folders"),
    ("csv", "listed:make_csv", "csv:<file>, a list of path,label[,group][,part]"),
    ("npz", "arrays:make_npz", "npz:<file>, arrays in MedMNIST's format"),
)


@hookimpl
def gcdbench_datasets() -> Iterator[DatasetSpec]:
    """Specs of all built-in datasets; no card is read and nothing heavy imported for this."""
    for name, factory, summary, tags in _NAMED:
        yield _named(name, factory, summary, tags)
    for name, summary in MEDMNIST.items():
        yield _named(name, "medmnist:make_medmnist", f"MedMNIST: {summary}", ("medmnist",))
    yield replace(
        _named("phantom", "phantom:make_phantom", "synthetic lesions, made by code", ()),
        options=("n_per_class", "size"),
        count=f"{_SOURCES}.phantom:count_images",
    )
    for name, factory, summary in _WITH_ARGUMENT:
        yield DatasetSpec(name=name, factory=f"{_SOURCES}.{factory}", summary=summary, takes_argument=True)


def _named(name: str, factory: str, summary: str, tags: tuple[str, ...]) -> DatasetSpec:
    return DatasetSpec(
        name=name, factory=f"{_SOURCES}.{factory}", summary=summary, tags=tags, card=str(card_path(name))
    )

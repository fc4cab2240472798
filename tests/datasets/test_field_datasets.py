"""The field's datasets: small copies in the real format load, audit and run; wrong and partial ones are refused."""

from __future__ import annotations

import shutil
import struct
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from gcdbench.datasets.card import load_card
from gcdbench.datasets.integrity.counts import count_findings
from gcdbench.datasets.sources import matlab
from gcdbench.datasets.sources.records import decode_planes
from gcdbench.runs.events import EpochEnd
from gcdbench.runs.predictions import load_predictions
from gcdbench.runs.reader import read_record
from gcdbench.runs.record import DONE, INDUCTIVE, TRANSDUCTIVE
from tests.data.conftest import noise_image
from tests.data.loading import opened, refused
from tests.datasets.field_copies import COPIES, TEST, TRAIN, annotations, records

NAMES = tuple(COPIES)


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Copies:
    """Data roots by dataset, each written once."""
    return Copies(tmp_path_factory)


class Copies:
    """``copies["cifar10"]`` is a data root with a copy of that set in it."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self.folders, self.roots, self.inside = folders, {}, {}

    def __getitem__(self, name: str) -> Path:
        if name not in self.roots:
            self.roots[name] = self.folders.mktemp(name)
            self.inside[name] = COPIES[name](self.roots[name]).relative_to(self.roots[name])
        return self.roots[name]


@pytest.fixture
def breakable(copies: Copies, tmp_path: Path):
    """``breakable("cifar10")`` gives the test a copy of its own: (data root, the copy's folder)."""

    def copied(name: str) -> tuple[Path, Path]:
        shutil.copytree(copies[name], tmp_path / "own")
        return tmp_path / "own", tmp_path / "own" / copies.inside[name]

    return copied


@pytest.mark.parametrize("name", NAMES)
def test_every_class_and_part_is_there(copies: Copies, name: str) -> None:
    source = opened(name, copies[name])
    assert source.partition is not None
    classes = len(load_card(name).classes)
    for part in ("train", "test"):
        counts = np.bincount(source.labels[source.partition == part], minlength=classes)
        assert counts.min() == counts.max() > 0
    pixels = source.decode(source.raw(0)) if source.decode else None
    assert pixels is None or pixels.shape == (32, 32, 3)


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_set_says_where_to_get_it(name: str, tmp_path: Path) -> None:
    message = refused(name, tmp_path)
    card = load_card(name)
    assert (f"gcdbench data fetch {name}" if card.downloads else card.source) in message
    assert str(tmp_path) in message


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "herbarium-19" else ()) for name in NAMES]
)
def test_a_copy_audits_and_runs(copies: Copies, name: str, cli, no_data: Path) -> None:
    """A small copy is a partial one: a run refuses it with the reason, and goes on when it is accepted."""
    where = ("--data-root", copies[name])
    audit = cli("data", "audit", name, *where, "--workers", 1)
    assert "roles: labelled" in audit.stdout
    run = ("run", "-m", "kmeans", "-d", name, "--preset", "smoke", "--set", "image_size=16", *where, "--workers", 1)
    assert cli("data", "verify", name, *where, "--workers", 1).exit_code == 1
    refusal = cli(*run)
    assert refusal.exit_code == 2
    assert "the card says" in refusal.stderr
    result = cli(*run, "--accept-data-issues")
    assert result.exit_code == 0, result.output
    assert "All" in result.stdout


def test_simgcd_trains_on_planes_of_cifar(copies: Copies, cli, no_data: Path, tmp_path: Path) -> None:
    """One epoch from the binary edition to scores on both parts, under the literature's protocol."""
    run = ("run", "-m", "simgcd", "-d", "cifar10", "--preset", "smoke", "--set", "epochs=1", "--set", "image_size=32")
    result = cli(*run, "--data-root", copies["cifar10"], "--workers", 1, "--threads", 1, "--accept-data-issues")
    assert result.exit_code == 0, result.output
    [folder] = (tmp_path / "runs").glob("cifar10/simgcd/*")
    record = read_record(folder)
    assert (record.status, record.protocol) == (DONE, "gcd")
    [epoch] = [event for event in record.events if isinstance(event, EpochEnd)]
    assert epoch.losses
    assert all(np.isfinite(value) for value in epoch.losses.values())
    # 5 images of each of 10 classes; half of those of 5 classes, rounded up, are labelled. 10 more are the test part.
    sizes = [len(load_predictions(record, part).ids) for part in (TRANSDUCTIVE, INDUCTIVE)]
    assert sizes == [50 - 5 * 3, 10]


# ---- CIFAR


def test_planes_become_pixels() -> None:
    image = np.asarray(noise_image(1, 32, 32))
    stored = image.transpose(2, 0, 1).tobytes()
    assert np.array_equal(decode_planes(stored), image)


def test_labels_are_the_fine_ones_and_no_part_of_the_content(breakable) -> None:
    root, folder = breakable("cifar100")
    table = np.frombuffer((folder / "train.bin").read_bytes(), dtype=np.uint8).reshape(-1, 3074)
    source = opened("cifar100", root)
    assert source.labels[:300].tolist() == table[:, 1].tolist()
    assert source.raw(7) == table[7, 2:].tobytes()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: (folder / "data_batch_3.bin").unlink(), "data_batch_3.bin is missing"),
        (lambda folder: _cut(folder / "data_batch_2.bin"), "not a whole number of records"),
        (lambda folder: (folder / "test_batch.bin").write_bytes(b""), "not a whole number of records"),
        (lambda folder: (folder / "test_batch.bin").write_bytes(records(20, 1, 20, 0)), "the label 19"),
    ],
)
def test_damaged_batches_are_refused(breakable, damage, said: str) -> None:
    root, folder = breakable("cifar10")
    damage(folder)
    assert said in refused("cifar10", root)


def test_the_python_edition_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "cifar-10-batches-py").mkdir()
    (tmp_path / "cifar-10-batches-py" / "data_batch_1").write_bytes(b"\x80\x04.")
    assert "not on this machine" in refused("cifar10", tmp_path)


# ---- CUB


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: (folder / "train_test_split.txt").unlink(), "train_test_split.txt cannot be read"),
        (lambda folder: _drop_last_line(folder / "image_class_labels.txt"), "for the 800 images"),
        (lambda folder: _replace(folder / "image_class_labels.txt", "800 200", "800 201"), "the class '201'"),
        (lambda folder: _replace(folder / "train_test_split.txt", "800 0", "800 2"), "expected 1 (training)"),
        (lambda folder: _replace(folder / "classes.txt", "001.Black_footed", "001.White_footed"), "instead of"),
        (lambda folder: _drop_last_line(folder / "classes.txt"), "it has 199"),
        (lambda folder: _replace(folder / "images.txt", "\n7 ", "\nseven "), "line 7"),
        (lambda folder: shutil.rmtree(folder / "images"), "none of its images"),
        (lambda folder: _rename_bird(folder, 4, "../../secret.jpg"), "line 4, names 'images/../../secret.jpg'"),
        (lambda folder: _rename_bird(folder, 4, "a/../../../secret.jpg"), "not a file inside the dataset's folder"),
        (lambda folder: _rename_bird(folder, 4, "/etc/passwd"), "line 4, names 'images//etc/passwd', which is not"),
        (lambda folder: _rename_bird(folder, 4, "a\0b.jpg"), "not a file inside the dataset's folder"),
        (lambda folder: _rename_bird(folder, 4, _bird(folder, 3)), "images.txt, line 4, names 'images/001.Black"),
        (lambda folder: _rename_bird(folder, 4, "./" + _bird(folder, 3)), "not a file inside the dataset's folder"),
    ],
)
def test_damaged_lists_of_birds_are_refused(breakable, damage, said: str) -> None:
    root, folder = breakable("cub-200-2011")
    damage(folder)
    assert said in refused("cub-200-2011", root)


def test_a_list_that_names_a_file_twice_says_both_lines(breakable) -> None:
    root, folder = breakable("cub-200-2011")
    text = (folder / "images.txt").read_text()
    (folder / "images.txt").write_text("\n" + text.replace("\n5 ", "\n\n5 "))  # empty lines are lines, too
    _rename_bird(folder, 6, _bird(folder, 3))
    said = refused("cub-200-2011", root)
    assert "images.txt, line 8, names" in said
    assert said.count("images.txt, line 4.") == 1


def test_a_list_of_other_classes_says_which(breakable) -> None:
    root, folder = breakable("cub-200-2011")
    _drop_last_line(folder / "classes.txt")
    assert "the 200 classes of 'cub-200-2011': it has 199. It is of another" in refused("cub-200-2011", root)
    _replace(folder / "classes.txt", "002.Laysan", "002.Layson")
    assert "it has 199, and '002.Layson_Albatross' instead of '002.Laysan_Albatross'." in refused("cub-200-2011", root)


def test_a_listed_image_that_is_gone_is_named(breakable) -> None:
    root, folder = breakable("cub-200-2011")
    gone = sorted((folder / "images").rglob("*.jpg"))[5]
    gone.unlink()
    source = opened("cub-200-2011", root)
    assert len(source) == 799
    assert [item.key for item in source.raw.ignored] == [f"images/{gone.parent.name}/{gone.name}"]


# ---- aircraft


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: (folder / "images_variant_test.txt").unlink(), "images_variant_test.txt cannot be read"),
        (lambda folder: _replace(folder / "images_variant_test.txt", "707-320", "707-321"), "line 1"),
        (lambda folder: _drop_last_line(folder / "variants.txt"), "it has 99"),
        (
            lambda folder: _copy(folder, "images_variant_trainval.txt", "images_variant_test.txt"),
            "images_variant_test.txt, line 1, names 'images/1000001.jpg' again",
        ),
    ],
)
def test_damaged_lists_of_aircraft_are_refused(breakable, damage, said: str) -> None:
    root, folder = breakable("fgvc-aircraft")
    damage(folder)
    assert said in refused("fgvc-aircraft", root)


# ---- cars


def test_cars_without_the_labels_of_the_test_part(breakable) -> None:
    root, folder = breakable("stanford-cars")
    test = folder / "cars_test_annos_withlabels.mat"
    test.rename(folder / "devkit" / test.name)
    assert len(opened("stanford-cars", root)) == 196 * (TRAIN + TEST)
    (folder / "devkit" / test.name).unlink()
    source = opened("stanford-cars", root)
    assert len(source) == 196 * TRAIN
    assert "labels of the test part" in source.remarks[0].message


@pytest.mark.parametrize("name", ["stanford-cars", "herbarium-19"])
def test_a_whole_training_part_alone_is_no_partial_copy(breakable, name: str) -> None:
    """Its card states no counts of single classes, so that the number of all images decides."""
    root, folder = breakable(name)
    _without_test_part(folder)
    source = opened(name, root)
    card = replace(source.card, samples={**source.card.samples, "train": len(source)})
    [finding] = count_findings(replace(source, card=card))
    assert finding.level == "warning"
    assert f"no test part ({source.card.samples['test']:,} images)" in finding.message
    partial = replace(source, card=replace(card, samples={**card.samples, "train": len(source) + 1}))
    assert [finding.level for finding in count_findings(partial)] == ["error", "warning"]


def test_a_run_on_the_training_part_alone(breakable, monkeypatch: pytest.MonkeyPatch, cli, no_data: Path) -> None:
    """Under a card whose training part is the copy's, nothing has to be accepted; a cut test part has."""
    root, folder = breakable("stanford-cars")
    card = load_card("stanford-cars")
    small = replace(card, samples={"train": 196 * TRAIN, "test": card.samples["test"]})
    monkeypatch.setattr("gcdbench.datasets.sources.cars.load_card", lambda name: small)
    run = ("run", "-m", "kmeans", "-d", "stanford-cars", "--preset", "smoke", "--set", "image_size=16")
    run = (*run, "--data-root", root, "--workers", 1)
    refusal = cli(*run)
    assert refusal.exit_code == 2
    assert "the test part has 196 images, the card says 8,041" in refusal.stderr
    _without_test_part(folder)
    result = cli(*run)
    assert result.exit_code == 0, result.output
    assert "there is no test part" in cli("data", "verify", "stanford-cars", "--data-root", root, "--workers", 1).stdout


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: _cut(folder / "devkit" / "cars_train_annos.mat"), "damaged MATLAB file"),
        (lambda folder: (folder / "devkit" / "cars_meta.mat").write_bytes(b"\x89HDF" * 99), "not a MATLAB file"),
        (lambda folder: _fewer_classes(folder / "devkit" / "cars_meta.mat"), "it has 195"),
        (lambda folder: annotations(folder / "devkit" / "cars_train_annos.mat", [("1.jpg", 197)]), "the class '197'"),
        (lambda folder: annotations(folder / "devkit" / "cars_train_annos.mat", [("../1.jpg", 1)]), "not the name"),
        (lambda folder: annotations(folder / "devkit" / "cars_train_annos.mat", [("1.jpg", 1)] * 2), "entry 2, names"),
        (
            lambda folder: annotations(folder / "devkit" / "cars_train_annos.mat", [("1.jpg", 1)], with_class=False),
            "no classes of its images",
        ),
        (lambda folder: _copy(folder / "devkit", "cars_meta.mat", "cars_train_annos.mat"), "no variable 'annotations'"),
    ],
)  # fmt: skip
def test_damaged_annotations_of_cars_are_refused(breakable, damage, said: str) -> None:
    root, folder = breakable("stanford-cars")
    damage(folder)
    assert said in refused("stanford-cars", root)


def test_a_matlab_file_that_unpacks_to_far_more_is_refused(breakable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matlab, "MOST_BYTES", 2**24)
    root, folder = breakable("stanford-cars")
    file = folder / "devkit" / "cars_train_annos.mat"
    packer = zlib.compressobj(9)
    body = b"".join(packer.compress(bytes(2**20)) for _ in range(20)) + packer.flush()
    file.write_bytes(file.read_bytes()[:128] + struct.pack("<II", 15, len(body)) + body)
    assert file.stat().st_size < 2**15
    assert "unpacks to more than" in refused("stanford-cars", root)


# ---- herbarium and ImageNet-100


def test_herbarium_without_its_validation_part_is_training_data_alone(breakable) -> None:
    root, folder = breakable("herbarium-19")
    shutil.rmtree(folder / "small-validation")
    source = opened("herbarium-19", root)
    assert source.partition is not None
    assert set(source.partition.tolist()) == {"train"}
    assert len(source) == 2 * 683


def test_imagenet_reads_its_hundred_classes_only(copies: Copies) -> None:
    source = opened("imagenet-100", copies["imagenet-100"])
    assert not [key for key in source.keys if "n99999999" in key]
    assert source.card.classes == tuple(sorted(source.card.classes))


def test_a_class_of_imagenet_that_is_cut_short_is_named(copies: Copies) -> None:
    """Of training images only the fewest and the most of a class are published."""
    source = opened("imagenet-100", copies["imagenet-100"])
    card = replace(source.card, count_range=(TRAIN, TRAIN + 2), test_counts=(TEST,) * 100)
    assert not list(count_findings(replace(source, card=card)))
    said = [found.message for found in count_findings(source) if found.level == "error"]
    first = source.card.classes[0]
    assert f"class {first} has {TRAIN} training images, the card says 732 to 1,300" in said
    assert f"class {first} has {TEST} test images, the card says 50" in said
    assert len(said) == 200


def test_another_hundred_classes_by_a_list(copies: Copies, tmp_path: Path) -> None:
    root = copies["imagenet-100"]
    chosen = ["n99999999", *load_card("imagenet-100").classes[:4]]
    (tmp_path / "mine.txt").write_text("\n".join(f"{name} something" for name in chosen))
    source = opened("imagenet-100", root, classes=str(tmp_path / "mine.txt"))
    assert source.card.name == "imagenet-100-mine"
    assert source.card.classes == tuple(sorted(chosen))
    assert len(source) == 5 * (TRAIN + TEST)
    (tmp_path / "mine.txt").write_text("n99999999\ntench\n")
    assert "'tench' is not a synset" in refused("imagenet-100", root, classes=str(tmp_path / "mine.txt"))
    (tmp_path / "mine.txt").write_text("n99999999\nn00000001\n")
    assert "no folder for 1 of the 2 classes" in refused("imagenet-100", root, classes=str(tmp_path / "mine.txt"))


def test_imagenet_with_an_unsorted_validation_part(breakable) -> None:
    root, folder = breakable("imagenet-100")
    shutil.rmtree(folder / "val")
    (folder / "val").mkdir()
    noise_image(1).save(folder / "val" / "ILSVRC2012_val_00000001.JPEG")
    source = opened("imagenet-100", root)
    assert source.partition is not None
    assert set(source.partition.tolist()) == {"train"}
    assert "no test part" in source.remarks[0].message
    shutil.rmtree(folder / "train" / load_card("imagenet-100").classes[3])
    assert "classes=FILE" in refused("imagenet-100", root)


def _copy(folder: Path, name: str, over: str) -> None:
    shutil.copy(folder / name, folder / over)


def _bird(folder: Path, number: int) -> str:
    """The file that images.txt has under a number."""
    [line] = [line for line in (folder / "images.txt").read_text().splitlines() if line.startswith(f"{number} ")]
    return line.partition(" ")[2]


def _rename_bird(folder: Path, number: int, name: str) -> None:
    _replace(folder / "images.txt", f"\n{number} {_bird(folder, number)}\n", f"\n{number} {name}\n")


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def _drop_last_line(file: Path) -> None:
    file.write_text("\n".join(file.read_text().splitlines()[:-1]) + "\n")


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def _without_test_part(folder: Path) -> None:
    if folder.name == "herbarium-19":
        shutil.rmtree(folder / "small-validation")
    else:
        (folder / "cars_test_annos_withlabels.mat").unlink()


def _fewer_classes(file: Path) -> None:
    savemat(file, {"class_names": loadmat(file)["class_names"][:, :-1]})

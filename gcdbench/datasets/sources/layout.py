"""What the folders below a root mean: classes, parts of the dataset, or something a person has to say.

A wrong guess here gives scores of something else without any error, so a layout that can be read in two ways is refused
with a sentence that says how to choose.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gcdbench.core.errors import DataError
from gcdbench.datasets.source import Remark
from gcdbench.datasets.sources.parts import part_of

_SHOWN = 4


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a file is: its class and part ("" where it has none), and its folders below the class folder."""

    label: str = ""
    part: str = "train"
    below: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Which level of folders names the class and which the part (None: there are no parts, all is training data).

    parts: folder name -> "train" or "test", for the level of parts.
    """

    class_level: int = 0
    part_level: int | None = None
    parts: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()

    def place(self, key: str) -> Place:
        """Class and part of the file ``key`` (a path below the root, with forward slashes)."""
        folders = key.split("/")[:-1]
        part = "train"
        if self.part_level is not None:
            part = self.parts.get(folders[self.part_level], "") if self.part_level < len(folders) else ""
        label = folders[self.class_level] if self.class_level < len(folders) else ""
        return Place(label=label, part=part, below=tuple(folders[1 + max(self.class_level, self.part_level or 0) :]))


@dataclass(kw_only=True)
class _Top:
    """A folder at the top: how many images are in it directly, and the sub-folders that hold more."""

    direct: int = 0
    below: set[str] = field(default_factory=set)


def understand(root: Path, keys: Iterable[str], *, layout: str | None = None, parts: str | None = None) -> Layout:
    """How the image files ``keys`` below ``root`` are to be read.

    ``layout`` is "classes" or "parts" where the user said so; ``parts`` is "Lot A:train,Lot B:test".
    """
    tops = _tops(keys)
    if parts is not None:
        if layout == "classes":
            raise DataError("'layout=classes' says that there are no parts, and 'parts' names some: leave one out.")
        return _with_parts(root, tops, _parse_parts(root, parts, tops))
    if layout == "classes" or not tops:
        return Layout()
    named = {name: part for name in tops if (part := part_of(name)) is not None}
    if layout == "parts" or len(named) == len(tops):
        if layout == "parts" and (unknown := sorted(set(tops) - set(named))):
            raise DataError(
                f"'{unknown[0]}' in {root} is not the name of a part.", hint=f"Say which is which: {_example(tops)}."
            )
        return _with_parts(root, tops, named)
    if len(named) > 1 or any(len(tops[name].below) > 1 for name in named):
        others = _listed(set(tops) - set(named))
        raise DataError(
            f"{root} holds {_listed(named)}, which look like parts of a dataset, next to {others}, which do not.",
            hint=f"Say which folders are parts, the others are then left out: --dataset-set parts={_pairs(named)}; or "
            "that all of them are classes: --dataset-set layout=classes.",
        )
    return _without_part_names(root, tops)


def _without_part_names(root: Path, tops: Mapping[str, _Top]) -> Layout:
    """Classes at the top, unless the sub-folders look like the classes or the parts."""
    if len(tops) == 1:
        [(name, only)] = tops.items()
        if len(only.below) > 1 and not only.direct:
            raise DataError(
                f"{root} holds one folder, '{name}', with {len(only.below)} folders in it: {_listed(only.below)}.",
                hint=f"If those are the classes or the parts, name the folder itself: folder:{root / name}",
            )
        return Layout()
    shared = _shared_folders(tops)
    if len(shared) < 2:
        return Layout()
    inner = {name: part for name in shared if (part := part_of(name)) is not None}
    if len(inner) == len(shared) and set(inner.values()) == {"train", "test"}:
        message = f"the folders in each class were read as parts: {_pairs(inner)}; the classes are {_listed(tops)}"
        return Layout(part_level=1, parts=inner, remarks=(Remark(kind="layout", message=message),))
    raise DataError(
        f"The {len(tops)} folders in {root} ({_listed(tops)}) hold the same sub-folders ({_listed(shared)}): "
        "either may be the classes.",
        hint="If the folders at the top are the classes, add --dataset-set layout=classes; if they are parts, "
        f"{_example(tops)}; for anything else list the files with csv:<file>.",
    )


def _with_parts(root: Path, tops: Mapping[str, _Top], parts: Mapping[str, str]) -> Layout:
    """Parts at the top and classes below them."""
    classes = {part: set[str]() for part in ("train", "test")}
    for name, part in parts.items():
        classes[part] |= tops[name].below
    if not classes["train"] and not classes["test"]:
        raise DataError(
            f"{_listed(parts)} in {root} are parts by their names, but there are no class folders in them.",
            hint="Expected <part>/<class>/<image>; if they are classes after all, add --dataset-set layout=classes.",
        )
    if not classes["train"]:
        lone = next(name for name, part in parts.items() if part == "test" and tops[name].below)
        raise DataError(
            f"{root} has a test part, but no class folder for training.",
            hint=f"To use the test part alone, name its folder: folder:{root / lone}",
        )
    if classes["test"] and not classes["test"] & classes["train"]:
        raise DataError(
            f"The parts in {root} have no class in common: {_listed(classes['train'])} for training and "
            f"{_listed(classes['test'])} for testing.",
            hint="To use the training part alone, name its folder; otherwise list the files with csv:<file>.",
        )
    count = len(classes["train"] | classes["test"])
    remarks = [
        Remark(
            kind="layout",
            message=f"the folders at the top were read as parts: {_pairs(parts)}; the {count} classes are the folders "
            f"in them ({_listed(classes['train'] | classes['test'])})",
        )
    ]
    if flat := sorted(name for name in parts if tops[name].direct):
        images = sum(tops[name].direct for name in flat)
        message = f"{images:,} images directly in {_listed(flat)} have no class folder and are left out"
        remarks.append(Remark(kind="layout", level="warning", message=message))
    return Layout(class_level=1, part_level=0, parts=dict(parts), remarks=tuple(remarks))


def _tops(keys: Iterable[str]) -> dict[str, _Top]:
    """The folders at the top that hold images, sorted; a picture next to the folders belongs to none."""
    tops: dict[str, _Top] = {}
    for key in keys:
        folders = key.split("/")[:-1]
        if folders:
            top = tops.setdefault(folders[0], _Top())
            if len(folders) > 1:
                top.below.add(folders[1])
            else:
                top.direct += 1
    return dict(sorted(tops.items()))


def _shared_folders(tops: Mapping[str, _Top]) -> list[str]:
    """Names of sub-folders that recur in more than half of the folders at the top, where most names do, else nothing.

    Patients below classes have names of their own; classes below patients, sites or magnifications recur, though a site
    may lack a class and a stray image may be next to them.
    """
    if 2 * sum(top.direct > 0 for top in tops.values()) > len(tops):
        return []
    counts: dict[str, int] = {}
    for top in tops.values():
        for name in top.below:
            counts[name] = counts.get(name, 0) + 1
    recurring = sorted(name for name, count in counts.items() if 2 * count > len(tops))
    return recurring if 2 * len(recurring) > len(counts) else []


def _parse_parts(root: Path, text: str, tops: Mapping[str, _Top]) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for pair in text.split(","):
        folder, _, name = (side.strip() for side in pair.rpartition(":"))
        part = part_of(name)
        if not folder or part is None:
            raise DataError(f"'parts={text}' is not of the form FOLDER:train,FOLDER:test.", hint=f"{_example(tops)}.")
        if folder not in tops:
            raise DataError(f"There is no folder '{folder}' with images in {root}; it holds {_listed(tops)}.")
        chosen[folder] = part
    return chosen


def _example(tops: Iterable[str]) -> str:
    names = list(tops)
    pairs = {name: "test" if position == len(names) - 1 else "train" for position, name in enumerate(names)}
    return f"for example --dataset-set 'parts={_pairs(dict(list(pairs.items())[:2]))}'"


def _pairs(parts: Mapping[str, str]) -> str:
    return ",".join(f"{name}:{part}" for name, part in parts.items())


def _listed(names: Iterable[str]) -> str:
    ordered = sorted(names)
    rest = f" and {len(ordered) - _SHOWN} more" if len(ordered) > _SHOWN else ""
    return ", ".join(f"'{name}'" for name in ordered[:_SHOWN]) + rest

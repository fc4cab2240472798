"""Where data is looked for, and where what is made from it is kept."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path

from gcdbench.core.errors import DataError
from gcdbench.core.places import user_data_dir


class MissingDatasetError(DataError):
    """A dataset that is not on this machine."""


def data_roots(data_root: str | Path | None = None) -> tuple[Path, ...]:
    """Folders to look in, in order: ``--data-root``, ``GCDBENCH_DATA``, the user's data directory, MedMNIST's own.

    ``GCDBENCH_DATA`` may name several folders, separated as in ``PATH``. Folders need not exist.
    """
    named = [str(data_root)] if data_root else []
    named += [part for part in os.environ.get("GCDBENCH_DATA", "").split(os.pathsep) if part]
    roots = [Path(part).expanduser().absolute() for part in named]
    roots += [user_data_dir(), Path.home() / ".medmnist"]
    return tuple(dict.fromkeys(roots))


def download_root(data_root: str | Path | None = None) -> Path:
    """Where a download goes: ``--data-root``, else the first folder of ``GCDBENCH_DATA`` that can be written to,
    else the user's data directory."""
    if data_root:
        return data_roots(data_root)[0]
    named = takewhile(lambda root: root != user_data_dir(), data_roots())
    return next((root for root in named if os.access(root, os.W_OK)), user_data_dir())


def find_place(roots: Iterable[Path], places: Iterable[str]) -> Path | None:
    """The first of ``places`` that exists; an earlier root wins over an earlier place."""
    places = tuple(places)
    for root in roots:
        for place in places:
            if (root / place).exists():
                return root / place
    return None


def resolve_argument(argument: str | None, roots: Iterable[Path], kind: str) -> Path:
    """The path after the colon of ``folder:<path>``: as written, or relative to a data root."""
    if not argument:
        raise DataError(
            f"'{kind}:' needs a path after the colon.",
            hint=f"For example: --dataset {kind}:path/to/data",
        )
    given = Path(argument).expanduser()
    candidates = [given] if given.is_absolute() else [Path.cwd() / given, *(root / given for root in roots)]
    for candidate in candidates:
        if candidate.exists():
            return candidate.absolute()
    looked = ", ".join(str(candidate.parent) for candidate in candidates)
    raise DataError(f"There is no '{argument}' for '{kind}:'; looked in {looked}.")


def missing_dataset(
    name: str, title: str, places: Iterable[str], roots: Iterable[Path], how: str
) -> MissingDatasetError:
    """The one sentence a user gets when a dataset is not on this machine."""
    wanted = " or ".join(f"'{place}'" for place in places)
    looked = ", ".join(str(root) for root in roots)
    return MissingDatasetError(
        f"Dataset '{name}' ({title}) is not on this machine: no {wanted} in {looked}; {how}",
        hint=f"Set GCDBENCH_DATA or --data-root to the folder that contains {wanted}.",
    )

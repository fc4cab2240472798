"""Errors that are meant for the user: one sentence that says what is wrong, one hint that says what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

SHORTEST = 3
"""Letters that a name must have to be looked for within others: shorter ones are in too many of them."""


class GCDBenchError(Exception):
    """Base of every error a user may see without a traceback.

    The command line prints ``message`` and, on a second line, ``hint``, and exits with ``exit_code``.
    """

    exit_code = 2

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UnknownName(GCDBenchError):
    """A name that no registry holds."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, hint: str | None = None) -> None:
        known = sorted(known)
        near = nearest(name, known)
        guess = f"did you mean '{near}'?" if near else f"known: {', '.join(known) or 'none'}."
        super().__init__(f"There is no {kind} named '{name}'; {guess}", hint=hint)


def nearest(name: str, known: Sequence[str]) -> str | None:
    """What somebody who wrote ``name`` most likely meant: a name that begins with it or holds it, or one spelt alike.

    Of several the one that differs least in length, so that ``resnet`` is not taken for a long name with it inside.

    >>> nearest("cars", ["csv", "stanford-cars"]), nearest("cub", ["cub-200-2011"]), nearest("kvasri", ["kvasir"])
    ('stanford-cars', 'cub-200-2011', 'kvasir')
    """
    plain = name.lower()
    if len(plain) >= SHORTEST:
        for fits in (str.startswith, str.__contains__):
            if holding := [other for other in known if fits(other.lower(), plain)]:
                return min(holding, key=lambda other: (len(other), other))
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.5)), None)


class ConfigError(GCDBenchError):
    """A setting that does not exist or does not fit its type."""


class PluginError(GCDBenchError):
    """A plugin that could not be loaded or used."""


class DataError(GCDBenchError):
    """A dataset that is missing, partial, dirty or of the wrong shape."""


class WeightsError(GCDBenchError):
    """Pretrained weights that are missing or are not the expected file."""


class StoreError(GCDBenchError):
    """A run directory that cannot be written, or whose content does not match its record."""


class DiskSpaceError(GCDBenchError):
    """Not enough room on the disk for what is about to be written."""


class TrainingError(GCDBenchError):
    """A run that cannot continue, for example because a loss is not finite."""


class PeerLost(TrainingError):
    """Another process of a distributed run has ended; this one could have gone on."""

"""What ``model.json`` says: which network and head predict, how images get to them, and what clusters are called.

No torch here, nor in :mod:`.card_file`: a card can be read, and its names changed, without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gcdbench.images.decoding import RULE

SCHEMA = 2
"""Version 1 had neither names nor calibration, and its head was always tied to the old classes."""

NEW = -1
"""Known class of a cluster that stands for none."""

Channels = tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """From an image file to the network's input.

    rule: names the way to the stored square of ``stored_side`` pixels; its centre of ``image_size`` pixels, scaled to
    [0, 1], has ``mean`` subtracted and is divided by ``std``, channel by channel. mean and std are None in cards of
    version 1: there the backbone's own count.
    """

    image_size: int
    rule: str = RULE
    stored_side: int
    mean: Channels | None = None
    std: Channels | None = None


@dataclass(frozen=True, kw_only=True)
class Names:
    """What the K clusters stand for.

    known: (K,) the known class of each cluster, −1 for a discovered one. classes: names of the known classes; empty
    where they were not told. clusters: (K,) names that were given to clusters, "" for none; clusters of one name are
    one class. rejected: clusters that somebody looked at and found not to be a class.
    """

    known: tuple[int, ...]
    classes: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    rejected: tuple[int, ...] = ()

    def of_class(self, number: int) -> str:
        """Name of a known class."""
        return self.classes[number] if number < len(self.classes) else f"class {number}"

    def of_cluster(self, cluster: int) -> str:
        """Name of a cluster: the one it was given, else its known class's, else its number."""
        given = self.clusters[cluster] if self.clusters else ""
        if given:
            return given
        return f"cluster {cluster}" if self.known[cluster] == NEW else self.of_class(self.known[cluster])

    def is_known(self, cluster: int) -> bool:
        """Whether a cluster stands for a known class, by training or because it was given that class's name."""
        given = self.clusters[cluster] if self.clusters else ""
        return given in self.classes if given else self.known[cluster] != NEW


@dataclass(frozen=True, kw_only=True)
class Unlikeness:
    """How images unlike everything seen in training are recognised; the numbers behind it are tensors of the model.

    kind: names the score. threshold: scores above it are flagged. quantile: share of training images, not used for
    the score itself, that lie below the threshold; images: how many of them there were.
    """

    kind: str
    threshold: float
    quantile: float
    images: int


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """The content of ``model.json``.

    predictor: the head, a key of :data:`gcdbench.models.heads.HEADS`; temperature: divides its output where it
    becomes a confidence. tail: whether the file holds a trained tail or the backbone's own is meant. hidden: the
    precision in which the prefix's output reached the tail: ``"float16"`` where the run read it from a view bank.
    tensors_sha256: of ``model.safetensors``; empty in cards of version 1.
    """

    method: str
    backbone: str
    weights_sha256: str
    predictor: str
    temperature: float
    k: int
    k_old: int
    preprocessing: Preprocessing
    names: Names
    tail: Literal["trained", "pretrained"] = "trained"
    hidden: Literal["float32", "float16"] = "float32"
    unlikeness: Unlikeness | None = None
    tensors_sha256: str = ""
    schema: int = SCHEMA

    @property
    def image_size(self) -> int:
        """Side of the network's input in pixels."""
        return self.preprocessing.image_size


def anchored(k: int, k_old: int) -> tuple[int, ...]:
    """The known class of each of K clusters where the first K_old are tied to the known classes, in order."""
    return tuple(range(k_old)) + (NEW,) * (k - k_old)

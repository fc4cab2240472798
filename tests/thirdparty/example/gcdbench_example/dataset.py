"""A dataset made by code: six colours of stripes."""

import numpy as np

from gcdbench.api import DatasetCard, DatasetRequest, DatasetSource

SIDE, PER_CLASS = 24, 12
COLOURS = np.array([[200, 30, 30], [30, 200, 30], [30, 30, 200], [200, 200, 30], [200, 30, 200], [30, 200, 200]])


def raw(index: int) -> bytes:
    noise = np.random.default_rng(index).integers(0, 40, (SIDE, SIDE, 3))
    return (COLOURS[index // PER_CLASS] + noise).clip(0, 255).astype(np.uint8).tobytes()


def decode(content: bytes) -> np.ndarray:
    return np.frombuffer(content, np.uint8).reshape(SIDE, SIDE, 3)


def make_stripes(request: DatasetRequest) -> DatasetSource:
    names = ("red", "green", "blue", "yellow", "pink", "cyan")
    total = len(names) * PER_CLASS
    return DatasetSource(
        card=DatasetCard(
            name="stripes",
            title="Stripes",
            modality="synthetic",
            classes=names,
            licence="CC0",
            citation="none",
            source="made by code",
            layout="made by code",
        ),
        keys=tuple(f"stripe-{i}" for i in range(total)),
        labels=np.arange(total) // PER_CLASS,
        raw=raw,
        decode=decode,
        fingerprint="stripes-1",
    )

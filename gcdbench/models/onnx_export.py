"""A saved model as one ONNX file, checked against our own prediction before it gets its name.

The graph takes RGB images (N, 3, S, S) in [0, 1]; standardising is part of it. How files become such images, and what
clusters are called, is in the file's metadata. Needs the extra ``onnx``.
"""

from __future__ import annotations

import json
import logging
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from gcdbench.core.arrays import Pixels
from gcdbench.core.errors import ConfigError, StoreError
from gcdbench.models.image_inputs import Images, decode_ahead, find_inputs
from gcdbench.models.model_card import ModelCard
from gcdbench.models.network import Answer
from gcdbench.models.predict import Model
from gcdbench.models.short_cuts import plain_paths
from gcdbench.views.augmentation import crop_centre, to_float

if TYPE_CHECKING:
    import onnxruntime as ort

OUTPUTS = ("cluster", "confidence", "probabilities", "embedding", "likeness", "unlike_score")
"""Names of the graph's outputs, in the order of :class:`gcdbench.models.network.Answer`."""

TOLERANCE = 1e-4
"""Largest difference of a confidence between the file and our own prediction."""

ROUNDED_TOLERANCE = 1e-3
"""The same for models that round the prefix's output to float16: there the last digit of a sum, which differs between
two libraries, now and then decides on the last of float16's three digits. Nearly all images stay far below 1e-4."""

MADE_IMAGES = 16
CHUNK = 32


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """How well an exported model agrees with ours: images compared, other clusters, largest confidence difference.

    ties: images among the other clusters whose two best clusters are equally probable up to the tolerance.
    """

    images: int
    other_clusters: int
    ties: int
    largest_difference: float
    tolerance: float

    @property
    def good(self) -> bool:
        """Same clusters but for ties, confidences within the tolerance."""
        return self.other_clusters == self.ties and self.largest_difference <= self.tolerance


def export_onnx(model: Model, target: Path, *, images: Images | None = None) -> Agreement:
    """Write ``model`` to ``target``; refused where onnxruntime predicts something else than we do.

    They are compared on ``images``, or on some made ones.
    """
    _require_packages()
    if model.device.type != "cpu":
        raise ConfigError("A model is exported from the CPU.", hint="Load it without a device.")
    if not target.parent.is_dir():
        raise ConfigError(f"There is no folder '{target.parent}'.", hint="Make it, or choose another place.")
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    os.close(handle)
    draft = Path(name)
    try:
        _write(model, draft)
        agreement = compare(model, draft, images)
        if not agreement.good:
            raise StoreError(
                f"The exported model does not predict what this one does: {agreement.other_clusters} of "
                f"{agreement.images} images have another cluster, confidences differ by "
                f"{agreement.largest_difference:.2g}. Nothing was written."
            )
        draft.chmod(0o644)
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)
    return agreement


def compare(model: Model, file: Path, images: Images | None = None) -> Agreement:
    """Predict the same images with an exported file and with our own model."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    tolerance = ROUNDED_TOLERANCE if model.card.hidden == "float16" else TOLERANCE
    count = other = ties = 0
    largest = 0.0
    for pixels in _squares(model.card, images):
        views = to_float(crop_centre(pixels, model.card.image_size))
        theirs = run_session(session, views.numpy())
        with torch.no_grad():
            ours = model.network(views)
        mine = ours.probabilities.numpy()
        gap = np.sort(mine, axis=1)
        tied = gap[:, -1] - gap[:, -2] <= tolerance if mine.shape[1] > 1 else np.zeros(len(mine), dtype=bool)
        differs = theirs["cluster"] != ours.cluster.numpy()
        count, other, ties = count + len(mine), other + int(differs.sum()), ties + int((differs & tied).sum())
        largest = max(largest, float(np.abs(theirs["confidence"] - ours.confidence.numpy()).max()))
    return Agreement(images=count, other_clusters=other, ties=ties, largest_difference=largest, tolerance=tolerance)


def run_session(session: ort.InferenceSession, views: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    """Outputs by name of an exported model."""
    values = session.run(list(OUTPUTS), {"images": np.ascontiguousarray(views)})
    return dict(zip(OUTPUTS, map(np.asarray, values), strict=True))


def metadata(card: ModelCard) -> dict[str, str]:
    """What the file says about itself: the whole card, and the two things a reader looks for first."""
    how = card.preprocessing
    steps = (
        f"Decode to 8-bit RGB; resize (bicubic, antialiased) so that the short side is {how.stored_side} px and keep "
        f"the centre square; keep its centre {how.image_size} x {how.image_size}; divide by 255; order as (N, 3, H, W)."
    )
    names = [card.names.of_cluster(cluster) for cluster in range(card.k)]
    return {
        "gcdbench.card": json.dumps(asdict(card), ensure_ascii=False),
        "clusters": json.dumps(names, ensure_ascii=False),
        "preprocessing": steps,
    }


def _write(model: Model, file: Path) -> None:
    size = model.card.image_size
    example = torch.rand(2, 3, size, size, generator=torch.Generator().manual_seed(0))
    with warnings.catch_warnings(), _quiet("torch.onnx", "onnxscript", "onnx_ir"), plain_paths(), torch.no_grad():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            model.network,
            (example,),
            dynamo=True,
            dynamic_shapes={"images": {0: torch.export.Dim("batch")}},
            input_names=["images"],
            output_names=list(OUTPUTS),
            verbose=False,
        )
    assert program is not None
    assert len(OUTPUTS) == len(Answer._fields)
    # Where each node comes from, with paths of this machine, is nobody's business.
    for graph in program.model.graphs():
        graph.metadata_props.clear()
        for node in graph.all_nodes():
            node.metadata_props.clear()
            node.doc_string = None
            for value in (*node.inputs, *node.outputs):
                if value is not None:
                    value.metadata_props.clear()
    program.model.doc_string = None
    program.model.metadata_props.clear()
    program.model.metadata_props.update(metadata(model.card))
    program.save(str(file), external_data=False)


def _squares(card: ModelCard, images: Images | None) -> Iterator[Pixels]:
    """Decoded images (n, side, side, 3), some at a time."""
    side = card.preprocessing.stored_side
    if images is None:
        yield _made(side)
        return
    found, _ = find_inputs(images)
    kept: list[Pixels] = []
    for item in decode_ahead(found, side):
        if item.square is not None:
            kept.append(item.square)
        if len(kept) == CHUNK:
            yield np.stack(kept)
            kept = []
    if kept:
        yield np.stack(kept)


def _made(side: int) -> Pixels:
    """Smooth coloured pictures, always the same ones."""
    from PIL import Image

    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (MADE_IMAGES, 6, 6, 3), dtype=np.uint8)
    return np.stack(
        [np.asarray(Image.fromarray(each).resize((side, side), Image.Resampling.BICUBIC)) for each in coarse]
    )


def _require_packages() -> None:
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            f"Exporting a model needs the package '{error.name}', which is not installed.",
            hint="pip install 'gcdbench[onnx]'",
        ) from None


@contextmanager
def _quiet(*names: str) -> Iterator[None]:
    """Only errors of these loggers are heard inside the block."""
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)

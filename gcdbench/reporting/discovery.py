"""What a discovery leaves for people: a table, a page to decide from, and a file for the decisions.

These files hold the user's paths and images. They are written where the user says, never into a run's directory.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gcdbench.core.arrays import IntArray, Pixels
from gcdbench.core.errors import ConfigError, StoreError
from gcdbench.core.files import write_text
from gcdbench.models.card_file import card_path
from gcdbench.models.model_card import Names
from gcdbench.models.predictions import Predictions, is_table, join, open_whole, write_csv
from gcdbench.reporting.gallery.content import Discovered as FoundImages
from gcdbench.reporting.gallery.content import Floats, Labelled, Shown
from gcdbench.reporting.gallery.page import Names as GalleryNames
from gcdbench.reporting.gallery.page import build_gallery
from gcdbench.runs.attempt import EMBEDDINGS
from gcdbench.runs.discover import Discovered
from gcdbench.runs.naming import Decisions, apply_decisions, read_decision_file, read_decisions, ties_of
from gcdbench.runs.predictions import ScoredSet, load_arrays, load_predictions
from gcdbench.runs.reader import NAMES
from gcdbench.runs.record import TRANSDUCTIVE, Record
from gcdbench.splits.manifest import LABELLED

if TYPE_CHECKING:
    from gcdbench.models.predict import Model

AT_ONCE = 512
"""Images of a store that are in memory at one time."""
TABLE, GALLERY = "predictions.csv", "gallery.html"


@dataclass(frozen=True, kw_only=True)
class Written:
    """The files of a discovery. gallery: None where the method gives nothing to draw one from. k: clusters found."""

    table: Path
    names: Path
    gallery: Path | None
    model: Path | None
    predictions: Predictions
    k: int

    @property
    def new(self) -> int:
        """New clusters that have images."""
        ties = np.asarray(self.predictions.names.known)
        return int(np.sum(ties[np.unique(self.predictions.cluster)] < 0)) if len(self.predictions) else 0


def prepare_folder(out: Path) -> None:
    """Make the folder for a discovery's files before anything is trained; nobody else's file is replaced."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise ConfigError(
            f"Cannot write to '{out}': {error.strerror or error}.", hint="Choose another place with --out."
        ) from error
    table = out / TABLE
    if table.exists() and not is_table(table):
        raise ConfigError(
            f"'{table}' is not a table of predictions, so it is not replaced.", hint="Choose another place with --out."
        )


def write_discovery(found: Discovered, out: Path, *, device: str = "cpu") -> Written:
    """Write predictions.csv, gallery.html and names.toml into ``out``; decisions that were stored are in them."""
    record = found.result.directory.record()
    decisions = read_decisions(record)
    scored = load_predictions(record, TRANSDUCTIVE)
    predictions, labelled = _look(found, record, scored, decisions, device)
    prepare_folder(out)
    with open_whole(out / TABLE) as file:
        write_csv([predictions], file)
    gallery = None
    if predictions.embedding is not None:
        gallery = out / GALLERY
        write_text(gallery, _page(found, record, scored, predictions, labelled, decisions))
    _write_names(out / NAMES, decisions, predictions)
    model = record.home if card_path(record.home).exists() else None
    return Written(
        table=out / TABLE,
        names=out / NAMES,
        gallery=gallery,
        model=model,
        predictions=predictions,
        k=scored.k_hat,
    )


def _look(
    found: Discovered, record: Record, scored: ScoredSet, decisions: Decisions, device: str
) -> tuple[Predictions, Floats]:
    """What the run predicted, with what its model adds to that; and features of the labelled images."""
    paths = tuple(found.paths(scored.ids))
    references = found.prepared.split.ids(LABELLED)
    pixels = found.prepared.store.pixels
    if card_path(record.home).exists():
        from gcdbench.runs.saved_models import open_model

        model = open_model(record.home, record.path.parent, device=device)
        said = _ask(model, pixels, scored.ids, paths)
        known = _ask(model, pixels, references, tuple(map(str, references))).embedding
        assert said.embedding is not None
        assert known is not None
        return _as_stored(said, scored), known
    ties = ties_of(record)
    plain = Names(known=ties, classes=record.split.old_classes)
    called, gone = apply_decisions(plain, decisions)
    count = len(paths)
    unknown = np.full(count, np.nan, dtype=np.float32)
    embedding = _stored_embedding(record)
    answer = Predictions(
        path=paths,
        cluster=scored.cluster,
        confidence=unknown if scored.confidence is None else scored.confidence.astype(np.float32),
        nearest=np.full(count, -1, dtype=np.int64),
        likeness=unknown,
        unlike_score=unknown,
        unlike=np.zeros(count, dtype=np.bool_),
        names=Names(
            known=ties,
            classes=plain.classes,
            clusters=tuple(called.get(number, "") for number in range(len(ties))),
            rejected=gone,
        ),
        embedding=embedding,
    )
    return answer, np.zeros((0, 1 if embedding is None else embedding.shape[1]), dtype=np.float32)


def _as_stored(said: Predictions, scored: ScoredSet) -> Predictions:
    """The model's answer with the clusters that the run has stored: those are what is scored."""
    confidence = said.confidence if scored.confidence is None else scored.confidence.astype(np.float32)
    return replace(said, cluster=scored.cluster, confidence=confidence)


def _ask(model: Model, pixels: Pixels, ids: IntArray, names: tuple[str, ...]) -> Predictions:
    """The model's answer on these rows of a store, which is not read into memory as a whole."""
    parts = [
        model.predict_squares(
            np.asarray(pixels[ids[start : start + AT_ONCE]]), names=names[start : start + AT_ONCE], embeddings=True
        )
        for start in range(0, len(ids), AT_ONCE)
    ]
    return join(parts, model.card.names)


def _stored_embedding(record: Record) -> Floats | None:
    try:
        found = load_arrays(record.home / EMBEDDINGS / f"{TRANSDUCTIVE}.npz", None)
    except StoreError:
        return None
    return np.asarray(found["embedding"], dtype=np.float32)


def _page(
    found: Discovered,
    record: Record,
    scored: ScoredSet,
    predictions: Predictions,
    labelled: Floats,
    decisions: Decisions,
) -> str:
    assert predictions.embedding is not None
    split = found.prepared.split
    references = split.ids(LABELLED)[: len(labelled)]
    notes = [] if len(labelled) else ["This method saves no model, so clusters are not compared with known classes."]
    return build_gallery(
        FoundImages(
            images=Shown(rows=scored.ids, names=predictions.path, embedding=predictions.embedding),
            cluster=scored.cluster,
            confidence=predictions.confidence,
            unlike=predictions.unlike,
        ),
        Labelled(
            images=Shown(rows=references, names=tuple(found.paths(references)), embedding=labelled),
            label=split.labels[references],
        ),
        found.prepared.store.pixels,
        GalleryNames(
            known=record.split.old_classes,
            clusters=dict(decisions.clusters),
            merged=dict(decisions.merged),
            rejected=decisions.rejected,
            ties=predictions.names.known,
        ),
        k=scored.k_hat,
        run_id=record.run_id,
        title=f"What {record.name} discovered",
        k_estimated=record.k_policy == "estimated",
        notes=notes,
    )


def _put_aside(path: Path) -> None:
    """Give another run's decisions a name of their own; a file that decides nothing may go."""
    try:
        other = read_decision_file(path)
        if not (other.clusters or other.merged or other.rejected):
            return
    except ConfigError:
        pass  # whatever it is, it is somebody's
    number = 1
    while (aside := path.with_name(f"{path.stem}.{number}{path.suffix}")).exists():
        number += 1
    path.rename(aside)


def _write_names(path: Path, decisions: Decisions, predictions: Predictions) -> None:
    """A file to fill in, or what was decided before; somebody's work in a file of this run is not overwritten."""
    if path.exists():
        if decisions.run in path.read_text(encoding="utf-8", errors="replace"):
            return
        _put_aside(path)
    text = decisions.to_toml()
    if not (decisions.clusters or decisions.merged or decisions.rejected):
        sizes = np.bincount(predictions.cluster, minlength=len(predictions.names.known))
        new = [number for number, tie in enumerate(predictions.names.known) if tie < 0 and sizes[number]]
        text = "# What the new clusters are. Fill it in, or save it from gallery.html; then:\n"
        text += f"#   gcdbench name {decisions.run} names.toml\n" + decisions.to_toml()
        for number in new:
            text += f'\n# [clusters.{number}]  # {sizes[number]} images\n# name = ""\n'
    write_text(path, text)

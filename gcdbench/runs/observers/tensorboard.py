"""TensorBoard: losses, learning rate, speed and scores as scalars. Needs the extra ``tensorboard``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gcdbench.runs.observers.base import Observer
from gcdbench.runs.observers.figures import figures_of_event, figures_of_scores

FOLDER = "tensorboard"


class TensorBoard(Observer):
    """Writes into the run's directory, or below the folder given as argument, where each run has its own."""

    def __init__(self, directory: Path, *, argument: str | None = None) -> None:
        super().__init__(directory, argument=argument)
        # dataset/method/run id: what TensorBoard then shows as the run's name.
        self.folder = Path(argument, *directory.parts[-3:]).expanduser() if argument else directory / FOLDER
        self._writer: Any = None
        self._step = 0

    def run_event(self, run: Mapping[str, Any], event: Mapping[str, Any]) -> None:
        """Write an epoch's figures, so that they are on the disk whatever happens next."""
        figures = figures_of_event(event)
        if figures is not None:
            self._write(figures.step, figures.values)
            self._writer.flush()

    def run_finished(self, run: Mapping[str, Any], scores: Mapping[str, Any]) -> None:
        """Write the scores at the last step."""
        self._write(self._step, figures_of_scores(scores))
        self._close()

    def run_failed(self, run: Mapping[str, Any], error: BaseException) -> None:
        """Keep what there is."""
        self._close()

    def _write(self, step: int, values: Mapping[str, float]) -> None:
        from torch.utils.tensorboard import SummaryWriter

        if self._writer is None:
            # An earlier part of this run may have come further than its checkpoint: these steps are done again.
            self._writer = SummaryWriter(str(self.folder), purge_step=step)
        self._step = step
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

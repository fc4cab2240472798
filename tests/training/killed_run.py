"""A LegoGCD run that test_kill.py kills: trains slowly, keeps a checkpoint, writes the hash of its predictions."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gcdbench.methods.configs import LegoGCDConfig
from gcdbench.methods.legogcd import LegoGCD
from gcdbench.testing.tiny import shrink, tiny_context, tiny_task
from gcdbench.training.batch import Batch


def say(word: str, value: object) -> None:
    sys.stdout.write(f"{word} {value}\n")
    sys.stdout.flush()


class Slow(shrink(LegoGCD)):  # type: ignore[misc]
    """Says where it is after each step."""

    def after_step(self, batch: Batch) -> None:
        super().after_step(batch)
        say("step", batch.step)
        time.sleep(0.005)


def listen(event: Mapping[str, Any]) -> None:
    if event["type"] == "resumed":
        say("resumed", event["total_steps"])


def main(directory: Path, seconds: float) -> None:
    data, task, _ = tiny_task()
    context = tiny_context(epochs=20, checkpoint_dir=directory, checkpoint_seconds=seconds, log=listen)
    method = Slow(LegoGCDConfig(ler_threshold=0.3), task, context)
    method.fit(data)
    prediction = method.predict(data.unlabelled)
    assert prediction.embedding is not None
    digest = hashlib.sha256(prediction.cluster.tobytes() + prediction.embedding.tobytes()).hexdigest()
    say("done", digest)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))

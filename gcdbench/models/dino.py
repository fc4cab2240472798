"""DINO's and DINOv2's transformers from their authors' files; the last block trains, as in SimGCD. Needs timm."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from gcdbench.models.dino_weights import PUBLISHED, locate_dino
from gcdbench.models.timm_backbone import TimmBackbone, assemble
from gcdbench.models.timm_network import create_network, import_timm
from gcdbench.models.weights import NO_WEIGHTS, load_exactly, read_state

WRAPPERS = ("teacher", "student", "state_dict", "model")
"""Where a file that holds more than a network keeps it; of the two that were trained, the authors use the teacher."""

OUTER = re.compile(r"^(module\.|backbone\.|_orig_mod\.)+")
"""What training in several processes and several crops puts before the names."""

CHUNK = re.compile(r"^blocks\.\d+\.(\d+)\.")
"""DINOv2's training groups blocks; their number within the network comes second."""

TRAINING_ONLY = ("head.", "dino_head.", "ibot_head.", "mask_token")


def load_dino(weights: str | None = None, *, argument: str) -> TimmBackbone:
    """The network ``argument`` with its published weights, those of the file ``weights``, or random ones."""
    whole = create_network(import_timm(), PUBLISHED[argument].architecture)
    digest = NO_WEIGHTS
    if weights != NO_WEIGHTS:
        path, digest = locate_dino(argument, weights)
        load_exactly(whole, read_dino(path), path)
    network = assemble(argument, whole, digest)
    # The published code trains what is called a block, and nothing else of the transformer.
    network.tail.get_submodule("part.norm").requires_grad_(False)
    return network


def read_dino(path: Path) -> dict[str, Any]:
    """Weights by timm's names: from a file of the network alone, or from a checkpoint of its training."""
    # A checkpoint holds the options of its training, too: a plain container of values.
    state = read_state(path, wrappers=WRAPPERS, containers=(argparse.Namespace,))
    names = {key: CHUNK.sub(r"blocks.\1.", OUTER.sub("", key)) for key in state}
    return {
        names[key].replace("register_tokens", "reg_token"): value
        for key, value in state.items()
        if not names[key].startswith(TRAINING_ONLY)
    }

"""timm's networks by name, with the tag of the weights where one is meant: ``timm:vit_base_patch16_224.dino``.

Needs the extra ``timm``.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from gcdbench.core.errors import UnknownName, WeightsError
from gcdbench.models.timm_backbone import TimmBackbone, assemble
from gcdbench.models.timm_weights import locate_timm
from gcdbench.models.torchvision_shim import import_torchvision
from gcdbench.models.weights import NO_WEIGHTS, load_exactly, read_state


def load_timm(weights: str | None = None, *, argument: str) -> TimmBackbone:
    """timm's network of that name with timm's weights, those of the file ``weights``, or random ones (``"none"``)."""
    timm, name = import_timm(), argument
    _check_name(timm, name)
    whole = create_network(timm, name)
    digest = NO_WEIGHTS
    if weights != NO_WEIGHTS:
        path, digest = locate_timm(name, timm.get_pretrained_cfg(name), weights)
        _load(whole, read_state(path), path)
    return assemble(f"timm:{name}", whole, digest)


def import_timm() -> Any:
    """The package, or what to install."""
    import_torchvision()  # timm imports torchvision
    try:
        import timm
    except ImportError as error:
        raise WeightsError(
            "This backbone needs timm, which is not installed.", hint="pip install 'gcdbench[timm]'"
        ) from error
    return timm


def _check_name(timm: Any, name: str) -> None:
    architecture, _, tag = name.partition(".")
    if architecture not in timm.list_models():
        raise UnknownName("timm model", architecture, timm.list_models(), hint="Names are those of timm.list_models().")
    if tag and name not in (tagged := timm.list_models(f"{architecture}*", pretrained=True)):
        raise UnknownName("timm model", name, tagged, hint="After the dot comes the tag of a set of weights.")


def create_network(timm: Any, name: str) -> Any:
    """A network without its classifier, for images of any size where it can be asked for that.

    Its random weights are always the same: what is stored from the prefix is keyed by its weights.
    """
    with torch.random.fork_rng(devices=[]):
        for flexible in ({"dynamic_img_size": True}, {}):
            torch.manual_seed(0)
            try:
                return timm.create_model(name, num_classes=0, **flexible)
            except TypeError:  # not every network can be asked to take images of any size
                if not flexible:
                    raise
    raise AssertionError("the last attempt returns or raises")


def _load(whole: Any, state: dict[str, Any], path: Path) -> None:
    """Weights under timm's names, or under older ones that timm knows how to rename."""
    classifier = whole.pretrained_cfg.get("classifier") or ()
    heads = (classifier,) if isinstance(classifier, str) else tuple(classifier)
    ignore = tuple(f"{head}." for head in heads)
    rename = getattr(sys.modules[type(whole).__module__], "checkpoint_filter_fn", None)
    known = set(whole.state_dict())
    if rename is not None and not known <= set(state):
        with suppress(Exception):  # timm's code meets a file that it does not know: refused below, whatever it raised
            state = rename(state, whole)
    load_exactly(whole, state, path, ignore=ignore)

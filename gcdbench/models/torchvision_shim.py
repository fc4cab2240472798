"""Import torchvision even where its compiled operators do not load.

torchvision's wheel on the package index is a CUDA build. With a CPU-only torch its shared library cannot be
loaded, and ``import torchvision`` then fails while registering shape functions for two operators that were never
declared (``torchvision::nms`` and ``torchvision::qnms``). Models, transforms and datasets are pure Python and need
neither, so declaring the two schemas is enough. It is done only after a plain import has failed in that way.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

MISSING_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_LIBRARIES: list[object] = []  # a torch.library.Library withdraws its schemas when it is garbage-collected


def import_torchvision(module: str = "torchvision") -> ModuleType:
    """Import ``"torchvision"`` or a part of it, declaring the missing schemas where the import needs it."""
    try:
        return importlib.import_module(module)
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
    # The failed attempt leaves half-imported parts behind that would be found by the second one.
    for name in [name for name in sys.modules if name == "torchvision" or name.startswith("torchvision.")]:
        del sys.modules[name]
    _declare_schemas()
    return importlib.import_module(module)


def _declare_schemas() -> None:
    """Declare the operators without an implementation: calling one still fails, importing does not."""
    import torch

    if _LIBRARIES:
        return
    library = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
    for schema in MISSING_SCHEMAS:
        name = schema.partition("(")[0]
        if not hasattr(torch.ops.torchvision, name):
            library.define(schema)  # type: ignore[no-untyped-call]
    _LIBRARIES.append(library)

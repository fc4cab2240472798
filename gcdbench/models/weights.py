"""Pretrained weight files: found, checked by sha256 and read; never replaced by random numbers in silence."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcdbench.core.errors import WeightsError
from gcdbench.datasets.roots import data_roots
from gcdbench.models.pickle_nesting import nested_too_deep

if TYPE_CHECKING:
    import torch

NO_WEIGHTS = "none"


@dataclass(frozen=True, kw_only=True)
class WeightsFile:
    """One published weight file. ``sha256`` is its digest or the first digits of it (torch hub's names carry eight).

    places: where it may be already, in order; url: where it may be downloaded from, or None.
    """

    file_name: str
    sha256: str
    places: tuple[Path, ...] = ()
    url: str | None = None


def file_sha256(path: Path) -> str:
    """Digest of a file's content, 64 hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def hub_file(url: str, sha256: str) -> WeightsFile:
    """A published file that torch hub would download from ``url`` into its cache."""
    name = url.rpartition("/")[2]
    return WeightsFile(file_name=name, sha256=sha256, places=(_hub_folder() / "checkpoints" / name,), url=url)


def _hub_folder() -> Path:
    """torch hub's cache, even where torch is not imported: a finished run is recognised without it."""
    torch = sys.modules.get("torch")
    if torch is not None:
        return Path(torch.hub.get_dir())
    caches = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return Path(os.environ.get("TORCH_HOME", f"{caches}/torch")).expanduser() / "hub"


def hub_advice(published: WeightsFile) -> str:
    """What to do where such a file was not found."""
    return (
        f"Put '{published.file_name}' into torch's cache (~/.cache/torch/hub/checkpoints),"
        " or give the file with --set weights=<file>, or run once on a machine that is online, where it is downloaded;"
        " --backbone efficientnet-lite0 works offline, because its weights come with the installation."
    )


def locate(published: WeightsFile, given: str | None, *, advice: str, fetch: bool = True) -> tuple[Path, str]:
    """Path and sha256 of the weights to load: the ``given`` file, else the published one.

    A given file is taken as it is (its digest becomes part of a run's identity);
    the published one must have the published digest. ``advice`` completes the message when none is found.
    Without ``fetch`` nothing is downloaded.
    """
    if given is not None:
        path = _given_file(given)
        if path is None:
            raise WeightsError(f"There is no weight file '{given}'.", hint=advice)
        return path, file_sha256(path)
    for path in published.places:
        if path.is_file():
            return path, _checked(path, published)
    if fetch and published.url is not None and published.places:
        target = published.places[0]
        if download(published.url, target):
            return target, _checked(target, published)
    raise WeightsError(f"The weights '{published.file_name}' were not found on this machine.", hint=advice)


def _given_file(given: str) -> Path | None:
    """The file a user or a suite names: as written, else below a folder of datasets, so that a suite needs no path."""
    path = Path(given).expanduser()
    places = [path] if path.is_absolute() else [path, *(root / path for root in data_roots())]
    return next((place for place in places if place.is_file()), None)


def _checked(path: Path, published: WeightsFile) -> str:
    digest = file_sha256(path)
    if not digest.startswith(published.sha256):
        raise WeightsError(
            f"'{path}' is not the published file: its sha256 begins with {digest[:8]}, not {published.sha256[:8]}.",
            hint="Delete it and fetch it again; an interrupted download leaves a file like this.",
        )
    return digest


def download(url: str, target: Path) -> bool:
    """Fetch ``url`` into ``target``; False when the machine is offline or the server does not answer."""
    import torch

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(url, str(target), progress=False)
    except OSError:  # urllib's errors are OSErrors too
        return False
    return target.is_file()


def read_state(
    path: Path, *, wrappers: Sequence[str] = ("state_dict", "model"), containers: Sequence[type] = ()
) -> dict[str, Any]:
    """Read a state dict: safetensors, or a pickle restricted to tensors; ``{"state_dict": ...}`` is unwrapped.

    ``containers`` are further classes that may be next to the tensors; they must do nothing when they are made.
    """
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return dict(load_file(path))
        if nested_too_deep(path):
            raise ValueError("tuples are nested too deep")
        import torch

        with torch.serialization.safe_globals(list(containers)):
            state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise WeightsError(
            f"'{path}' cannot be read as a weight file ({type(error).__name__}).",
            hint="Expected a state dict saved by torch.save or as safetensors.",
        ) from error
    for wrapper in wrappers:
        if isinstance(state, dict) and isinstance(state.get(wrapper), dict):
            state = state[wrapper]
    if not isinstance(state, dict) or not all(isinstance(name, str) for name in state):
        raise WeightsError(f"'{path}' holds no state dict.", hint="Save it with torch.save(model.state_dict(), path).")
    return state


def load_exactly(module: torch.nn.Module, state: dict[str, Any], path: Path, *, ignore: Sequence[str] = ()) -> None:
    """Load ``state`` into ``module``; missing or unknown names are errors, except those starting with ``ignore``."""
    wanted = {key: value for key, value in state.items() if not key.startswith(tuple(ignore))} if ignore else state
    try:
        missing, unexpected = module.load_state_dict(wanted, strict=False)
    except RuntimeError as error:
        raise WeightsError(f"'{path}' does not fit the network: {str(error).splitlines()[-1].strip()}") from error
    missing = [key for key in missing if not key.endswith("num_batches_tracked")]
    if missing or unexpected:
        example = (list(missing) + list(unexpected))[0]
        raise WeightsError(
            f"'{path}' does not fit the network: {len(missing)} entries are missing and {len(unexpected)} are unknown,"
            f" for example '{example}'.",
            hint="Give the weight file that belongs to this backbone.",
        )

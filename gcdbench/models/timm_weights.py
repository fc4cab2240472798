"""Where the weights of timm's networks are: a given file, timm's cache, or a download."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gcdbench.models.weights import NO_WEIGHTS, WeightsFile, file_sha256, hub_file, locate

FILES = ("model.safetensors", "pytorch_model.bin")
"""How weights are called on the hub, the better format first."""


def identify_timm(weights: str | None, *, argument: str) -> str:
    """sha256 of a given file, or ``"none"``; which file timm means by a name only timm itself can tell."""
    if weights == NO_WEIGHTS:
        return NO_WEIGHTS
    published = WeightsFile(file_name=f"of timm:{argument}", sha256="")
    return locate(published, weights, advice=_advice(argument), fetch=False)[1]


def locate_timm(name: str, published: Any, weights: str | None) -> tuple[Path, str]:
    """Path and sha256 of the weight file meant by ``weights``; None: the one of ``published``, timm's own record."""
    if weights is None and published.hf_hub_id:
        names = (published.hf_hub_filename,) if published.hf_hub_filename else FILES
        path = _cached(published.hf_hub_id, names) or _downloaded(published.hf_hub_id, names)
        if path is not None:
            return path, file_sha256(path)
    # What timm called its files before there was a hub; some are numpy's archives, which hold another naming.
    url = published.url if str(published.url or "").endswith((".pth", ".pt", ".safetensors", ".bin")) else None
    fallback = WeightsFile(file_name=f"of timm:{name}", sha256="") if url is None else hub_file(url, "")
    return locate(fallback, weights, advice=_advice(name))


def _cached(repository: str, names: tuple[str, ...]) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    found = (try_to_load_from_cache(repository, name) for name in names)
    return next((Path(path) for path in found if isinstance(path, str)), None)


def _downloaded(repository: str, names: tuple[str, ...]) -> Path | None:
    """Fetched into timm's cache; None when the machine is offline or there is no such file."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, LocalEntryNotFoundError

    if not _answers(repository, names[0]):
        return None
    for name in names:
        try:
            return Path(hf_hub_download(repository, name))
        except LocalEntryNotFoundError:  # no connection, and nothing in the cache
            return None
        except EntryNotFoundError:
            continue
        except (HfHubHTTPError, OSError):
            return None
    return None


def _answers(repository: str, name: str) -> bool:
    """Whether the hub can be reached. Asked once: a download would ask again and again for half a minute."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError

    try:
        get_hf_file_metadata(hf_hub_url(repository, name))
    except (EntryNotFoundError, HfHubHTTPError):  # an answer: what it means is up to the download
        return True
    except Exception:  # no connection; which library makes it, and what that raises, depends on the hub's version
        return False
    return True


def _advice(name: str) -> str:
    return (
        "Give the file with --set weights=<file>, or run once on a machine that is online, where timm's weights are"
        f" downloaded into its cache, or ask for a random network with --set weights=none; 'timm:{name}' may have"
        " several sets of weights, which timm tells apart by a tag after a dot."
    )

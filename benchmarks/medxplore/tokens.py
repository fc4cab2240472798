"""What training did to the tokens of finished runs: how many directions they use, and what those stand for.

    python -m benchmarks.medxplore.tokens RUN [RUN ...] [--runs DIRECTORY] [--images 480] [--output FILE.json]

Works for runs of any trained method whose weights are still there; nothing is learnt. All runs are looked at on the
same unlabelled images. ``--output`` adds the numbers to a file, because weights are not kept for ever. Columns:

rank, tokens / pooled   effective rank (the exponential of the spectrum's entropy) of tokens and of pooled features,
                        both of length 1: low where a few directions serve all images
image, place            share of the tokens' variance between images, and between cells of the map (what all images
                        have in common at one place)
inside, across          mean cosine of two tokens of one image, and of tokens of two images
matched, cosine         FAAC's matches per image between two augmented views, and their mean cosine
x_out                   mean cosine between the pooled X and the pooled X_out
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from gcdbench_medxplore.anchors import find_anchors
from gcdbench_medxplore.config import FAACConfig
from gcdbench_medxplore.faac import FAAC
from torch import Tensor

from gcdbench.api import (
    Images,
    ImageSet,
    RunDirectory,
    Trained,
    find_run,
    get_manager,
    load_predictions,
    open_images,
    restore,
)

VIEW_SEED = 7


def effective_rank(rows: Tensor) -> float:
    """exp(entropy) of the normalised spectrum of centred rows (n, C)."""
    power = torch.linalg.svdvals(rows - rows.mean(dim=0)).square()
    share = power / power.sum()
    return float(torch.special.entr(share).sum().exp())


def describe(run: Trained, images: Images, ids: np.ndarray) -> dict[str, float]:
    """The numbers of one run on images ``ids``."""
    method = run.method
    if method is None:
        raise SystemExit(run.note or f"{run.name} does not train a network: there are no tokens of its own")
    method.embed(ImageSet(ids=ids[:0], store=images.store.pixels))  # opens the store
    method.backbone.eval()
    found = method.extras.get("faac")
    with torch.no_grad():
        tail = method.backbone.run_tail(method.views.test(ids))
        pair = method.backbone.run_tail(method.views.pair(ids, 0, VIEW_SEED)).map.float()
        x = tail.map.float()
        faac = found if isinstance(found, FAAC) and found.activation else FAAC(FAACConfig(), *x.shape[1:])
        tokens = F.normalize(x.flatten(2).transpose(1, 2), dim=2)  # (n, N, C)
        count, cells = tokens.shape[:2]
        centred = tokens - tokens.mean(dim=(0, 1))
        variance = centred.square().sum(dim=2).mean()
        cosines = torch.bmm(tokens, tokens.transpose(1, 2)).sum() - count * cells
        anchors = find_anchors(pair, faac.attention(pair), k=min(8, cells), delta=0.65)
        x_out = faac.feature(x, tail.pooled.float(), faac.attention(x))
        return {
            "rank tokens": effective_rank(tokens.flatten(0, 1)[:: max(1, cells // 5)]),
            "rank pooled": effective_rank(F.normalize(tail.pooled.float(), dim=1)),
            "image": float(centred.mean(dim=1).square().sum(dim=1).mean() / variance),
            "place": float(centred.mean(dim=0).square().sum(dim=1).mean() / variance),
            "inside": float(cosines / (count * cells * (cells - 1))),
            "across": float((tokens.mean(dim=1) * tokens.mean(dim=1).roll(1, dims=0)).sum(dim=1).mean()),
            "matched": float(anchors.matches.sum(dim=(1, 2)).float().mean()),
            "cosine": float(anchors.similarity[anchors.matches].mean()),
            "x_out": float(F.cosine_similarity(tail.pooled.float(), x_out).mean()),
        }


def keep(path: Path, run: Trained, numbers: dict[str, float]) -> None:
    """Add the numbers of one run to a file."""
    known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    known[run.record.run_id] = {
        "run": run.name,
        "seed": run.record.seed,
        "epochs": run.record.training["epochs"],
        "image_size": run.record.image_size,
        **{key: float(f"{value:.4g}") for key, value in numbers.items()},
    }
    path.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main() -> None:
    """Parse, look, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("run", nargs="+")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--images", type=int, default=480)
    parser.add_argument("--data-root", type=Path)
    parser.add_argument("--output", type=Path, help="a JSON file that the numbers are added to, by run id")
    options = parser.parse_args()
    manager = get_manager()
    images, ids = None, np.empty(0, dtype=np.int64)
    for name in options.run:
        run = restore(RunDirectory(find_run(options.runs, name)), manager)
        if images is None:
            images = open_images(
                run.record.dataset,
                manager,
                image_size=run.record.image_size,
                options=run.record.dataset_options,
                data_root=options.data_root,
            )
            every = load_predictions(run.record, "transductive").ids
            chosen = np.random.default_rng(0).permutation(len(every))[: options.images]
            ids = every[np.sort(chosen)]
        numbers = describe(run, images, ids)
        if options.output:
            keep(options.output, run, numbers)
        print(
            f"{run.name} seed {run.record.seed}: " + "  ".join(f"{key} {value:.3g}" for key, value in numbers.items())
        )


if __name__ == "__main__":
    main()

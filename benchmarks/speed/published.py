"""A training loop in the style of published GCD code, timed step by step.

Every view is decoded, resized and augmented by PIL in loader processes; every step sends the batch through the whole
network, frozen stages included; every epoch ends with an evaluation of all unlabelled images in the same way.
Losses, heads, optimiser, batch and augmentation are those of our loop, so only the way of working differs.

    python -m benchmarks.speed.published '{"folder": "..."}'
"""

from __future__ import annotations

import json
import time
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

from benchmarks.speed.images import open_source
from benchmarks.speed.settings import Settings, parse_settings
from gcdbench.methods.configs import SimGCDConfig
from gcdbench.methods.simgcd import SimGCD
from gcdbench.models.backbone import IMAGENET_MEAN, IMAGENET_STD, TailOutput
from gcdbench.models.heads import Projector, Prototypes
from gcdbench.models.torchvision_shim import import_torchvision
from gcdbench.training.batch import Batch
from gcdbench.training.context import RunContext
from gcdbench.training.method import TaskInfo


class TwoViews(Dataset[Any]):
    """Image i, opened again each time, as two random views (or one test view), with its label or −1."""

    def __init__(self, settings: Settings, *, train: bool) -> None:
        transforms: Any = import_torchvision("torchvision.transforms")
        self.source = open_source(Path(settings.folder))
        self.count = min(settings.images, len(self.source))
        self.train = train
        size = settings.image_size
        steps = [transforms.Resize(round(size / 0.875), transforms.InterpolationMode.BICUBIC)]
        if train:
            steps += [transforms.RandomCrop(size), transforms.RandomHorizontalFlip()]
            steps += [transforms.ColorJitter(0.4, 0.4, 0.4, 0.1)]
        else:
            steps += [transforms.CenterCrop(size)]
        steps += [transforms.ToTensor(), transforms.Normalize(IMAGENET_MEAN, IMAGENET_STD)]
        self.transform = transforms.Compose(steps)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[list[Tensor], int]:
        image = Image.open(BytesIO(self.source.raw(index))).convert("RGB")
        views = [self.transform(image) for _ in range(2 if self.train else 1)]
        return views, (index // 4 % 4 if index % 4 == 0 else -1)


class WholeNetwork(nn.Module):
    """The network as its own package writes it; all but the last stage is frozen, and yet computed with the rest."""

    def __init__(self, name: str) -> None:
        super().__init__()
        if name == "resnet18":
            network = import_torchvision("torchvision.models").resnet18(weights=None)
            network.fc = nn.Identity()
            self.features = nn.Sequential(*list(network.children())[:-2])
            trained, self.channels = [self.features[-1]], 512
        else:
            from efficientnet_lite_pytorch import EfficientNet

            network = EfficientNet.from_name("efficientnet-lite0")
            self.network = network
            self.features = network.extract_features
            trained, self.channels = [*network._blocks[11:], network._conv_head, network._bn1], 1280
        self.requires_grad_(False)
        self.trained = trained
        for module in trained:
            module.requires_grad_(True)

    def train(self, mode: bool = True) -> WholeNetwork:
        """Frozen stages keep their statistics, as in our loop; published scripts often let them drift."""
        super().train(False)
        for module in self.trained:
            module.train(mode)
        return self

    def forward(self, images: Tensor) -> TailOutput:
        feature_map = self.features(images)
        return TailOutput(map=feature_map, pooled=feature_map.mean(dim=(2, 3)))


def time_training(settings: Settings, network: WholeNetwork) -> float:
    """Seconds a training step."""
    dataset = TwoViews(settings, train=True)
    rounds = settings.batch * (settings.steps + settings.warmup + 2)
    sampler = WeightedRandomSampler([1.0] * len(dataset), rounds)
    loader = DataLoader(dataset, settings.batch, sampler=sampler, num_workers=settings.workers, drop_last=True)
    generator = torch.Generator().manual_seed(0)
    projector = Projector(network.channels, generator)
    prototypes = Prototypes(network.channels, settings.k, generator)
    context = RunContext(seed=0, image_size=settings.image_size)
    method = SimGCD(SimGCDConfig(), TaskInfo(k_old=4, k=settings.k, image_size=settings.image_size), context)
    modules = nn.ModuleList([network, projector, prototypes])
    trained = [parameter for parameter in modules.parameters() if parameter.requires_grad]
    optimiser = torch.optim.SGD(trained, lr=0.1, momentum=0.9, weight_decay=5e-5)
    modules.train()
    started = 0.0
    for step, (views, labels) in enumerate(loader):
        if step == settings.warmup:
            started = time.perf_counter()
        if step == settings.warmup + settings.steps:
            break
        tail = network(torch.cat(views))
        batch = Batch(
            ids=torch.arange(len(labels)),
            labels=labels,
            tail=tail,
            feature=tail.pooled,
            projection=projector(tail.pooled),
            logits=prototypes(tail.pooled),
            progress=0.0,
            epoch=0,
            step=step,
            k_old=4,
        )
        loss = torch.stack(list(method.losses(batch).values())).sum()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return (time.perf_counter() - started) / settings.steps


def time_evaluation(settings: Settings, network: WholeNetwork) -> float:
    """Seconds per image of the evaluation after each epoch."""
    network.eval()
    loader = DataLoader(TwoViews(settings, train=False), settings.batch, num_workers=settings.workers)
    seen, started = 0, 0.0
    with torch.no_grad():
        for step, (views, _) in enumerate(loader):
            if step == 1:
                started = time.perf_counter()
            network(views[0])
            seen += len(views[0]) if step else 0
            if step == settings.steps:
                break
    return (time.perf_counter() - started) / max(seen, 1)


def main() -> None:
    """Print seconds per step and seconds per evaluated image."""
    settings = parse_settings()
    torch.set_num_threads(settings.threads)
    network = WholeNetwork(settings.backbone)
    step = time_training(settings, network)
    print(json.dumps({"step": step, "evaluation": time_evaluation(settings, network)}))


if __name__ == "__main__":
    main()

"""What a trained method predicts from, computed again by hand from the stored pixels."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gcdbench.methods.configs import SimGCDConfig
from gcdbench.methods.simgcd import SimGCD
from gcdbench.models.backbone import IMAGENET_MEAN, IMAGENET_STD
from gcdbench.testing.tiny import IMAGE_SIZE, STORE_SIZE, shrink, tiny_context, tiny_task


@pytest.mark.parametrize(("views", "tolerance"), [("online", 1e-5), ("bank:2", 2e-3)])  # a bank holds float16
def test_embeddings_are_those_of_the_centre_of_each_image(views: str, tolerance: float) -> None:
    data, task, _ = tiny_task()
    method = shrink(SimGCD)(SimGCDConfig(), task, tiny_context(views=views))
    method.fit(data)
    made = method.predict(data.unlabelled)

    edge = (STORE_SIZE - IMAGE_SIZE) // 2
    pixels = data.unlabelled.store[data.unlabelled.ids][:, edge : edge + IMAGE_SIZE, edge : edge + IMAGE_SIZE]
    standardised = (pixels / 255 - np.array(IMAGENET_MEAN)) / np.array(IMAGENET_STD)
    network = method.backbone.eval()
    with torch.no_grad():
        images = torch.from_numpy(standardised.astype(np.float32)).permute(0, 3, 1, 2)
        pooled = network.tail(network.prefix(images)).mean(dim=(2, 3)).numpy()
    assert made.embedding is not None
    np.testing.assert_allclose(made.embedding, pooled, atol=tolerance * float(np.abs(pooled).max()))

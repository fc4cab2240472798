"""A network can be asked for its textbook form."""

from __future__ import annotations

import threading

import pytest
import torch

from gcdbench.models.lite0 import load_lite0
from gcdbench.models.resnet import load_resnet18
from gcdbench.models.short_cuts import plain_paths, short_cuts_serve


@pytest.mark.parametrize("load", [load_lite0, load_resnet18])
def test_plain_paths_use_no_operation_of_our_own(load, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    """Both forms agree up to rounding, and only one of them is taken inside the block."""
    network = load("none").eval()
    images = torch.rand(2, 3, 96, 96, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        fast = network.run_tail(network.prefix(images))
        for part, name in (
            (network.prefix, "forward_frozen"),
            (network.tail, "forward_channel_major"),
            (network.tail, "forward_cell_major"),
        ):
            if hasattr(part, name):
                monkeypatch.setattr(part, name, lambda *arguments: pytest.fail("a short cut was taken"))
        with plain_paths():
            plain = network.run_tail(network.prefix(images))
    torch.testing.assert_close(plain.map, fast.map, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(plain.pooled, fast.pooled, rtol=1e-4, atol=1e-4)


def test_the_wish_ends_with_its_block_and_stays_in_its_thread() -> None:
    x = torch.zeros(1)
    seen: list[bool] = []

    def look_and_fail() -> None:
        with plain_paths():
            assert not short_cuts_serve(x)
            other = threading.Thread(target=lambda: seen.append(short_cuts_serve(x)))
            other.start()
            other.join()
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        look_and_fail()
    assert seen == [True]
    assert short_cuts_serve(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not short_cuts_serve(x)

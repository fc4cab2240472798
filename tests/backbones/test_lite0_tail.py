"""The CPU path of Lite0's trained stage against the plain modules, in double precision."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from gcdbench.models.channel_major import filter_taps, separable
from gcdbench.models.lite0 import Lite0Tail


def make_tail(seed: int = 0) -> Lite0Tail:
    """A tail in float64 whose BatchNorm parameters are not trivial."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        tail = Lite0Tail().double()
        for module in tail.modules():
            if isinstance(module, nn.BatchNorm2d):
                nn.init.uniform_(module.weight, 0.5, 1.5)
                nn.init.normal_(module.bias)
                module.running_mean.normal_()
                module.running_var.uniform_(0.5, 2.0)
    return tail


def random_tensor(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("size", [(4, 4), (5, 7), (8, 8), (2, 2)])
def test_training_step_equals_plain(size: tuple[int, int]) -> None:
    """Map, input gradient, parameter gradients and running statistics agree."""
    plain = make_tail()
    fast = copy.deepcopy(plain)
    outcomes = []
    for tail, forward in ((plain, plain.forward_plain), (fast, fast.forward_channel_major)):
        tail.train()
        x = random_tensor(6, 112, *size).requires_grad_()
        y = forward(x)
        y.backward(random_tensor(*y.shape, seed=2))
        assert x.grad is not None
        outcomes.append((y.detach(), x.grad))
    torch.testing.assert_close(outcomes[0], outcomes[1], rtol=1e-8, atol=1e-10)
    for name, parameter in plain.named_parameters():
        torch.testing.assert_close(
            fast.get_parameter(name).grad, parameter.grad, rtol=1e-7, atol=1e-9, msg=lambda text, n=name: f"{n}: {text}"
        )
    for name, buffer in plain.named_buffers():
        torch.testing.assert_close(fast.get_buffer(name), buffer, msg=lambda text, n=name: f"{n}: {text}")


def test_evaluation_equals_plain_and_leaves_statistics_alone() -> None:
    """In evaluation mode running statistics are used and stay."""
    tail = make_tail().eval()
    before = copy.deepcopy(tail.state_dict())
    x = random_tensor(3, 112, 8, 8)
    with torch.no_grad():
        torch.testing.assert_close(tail.forward_channel_major(x), tail.forward_plain(x), rtol=1e-9, atol=1e-10)
    for name, value in tail.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_two_steps_in_one_thread_are_bit_identical() -> None:
    """Same input, same bits: runs are reproducible."""
    gradients = []
    for _ in range(2):
        tail = make_tail().float().train()
        y = tail(random_tensor(8, 112, 8, 8).float())
        y.square().mean().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in tail.parameters() if p.grad is not None]))
    assert torch.equal(gradients[0], gradients[1])


@pytest.mark.parametrize(("size", "kernel", "stride"), [(4, 5, 1), (8, 5, 2), (7, 5, 2), (4, 3, 1), (1, 5, 1)])
def test_filter_taps_count_every_pair_once(size: int, kernel: int, stride: int) -> None:
    """Loops over cells and taps give the same table."""
    outputs = -(-size // stride)
    before = max((outputs - 1) * stride + kernel - size, 0) // 2
    expected = torch.zeros(kernel, kernel, outputs, outputs, size, size)
    for u in range(kernel):
        for v in range(kernel):
            for o in range(outputs):
                for p in range(outputs):
                    i, j = o * stride + u - before, p * stride + v - before
                    if 0 <= i < size and 0 <= j < size:
                        expected[u, v, o, p, i, j] = 1
    assert torch.equal(filter_taps(size, size, kernel, stride), expected.reshape(kernel * kernel, -1))


@pytest.mark.parametrize("batch", [2, 7, 37])
@pytest.mark.parametrize("size", [(8, 8), (3, 5)])
def test_float32_step_is_close_to_float64(batch: int, size: tuple[int, int]) -> None:
    """A float32 step is the float64 step up to rounding."""
    exact = make_tail()
    single = copy.deepcopy(exact).float()
    exact.train()
    single.train()
    x = random_tensor(batch, 112, *size)
    leaf = x.float().requires_grad_()
    y = single(leaf)
    reference_leaf = leaf.detach().double().requires_grad_()
    reference = exact.forward_plain(reference_leaf)
    gradient = random_tensor(*y.shape, seed=2)
    y.backward(gradient.float())
    reference.backward(gradient.float().double())
    torch.testing.assert_close(y.double(), reference, rtol=0, atol=2e-4)
    pairs = [(leaf.grad, reference_leaf.grad)]
    pairs += [
        (single.get_parameter(name).grad, p.grad) for name, p in exact.named_parameters() if "_bn2.bias" not in name
    ]
    for ours, theirs in pairs:
        assert ours is not None
        assert theirs is not None
        # A value that rounds to the other side of a kink of ReLU6 changes single entries, and through the norms of
        # a small batch all that comes before them: how much depends on the machine. One block is compared below.
        assert (ours.double() - theirs).norm() <= 1e-1 * theirs.norm()
    for name, buffer in exact.named_buffers():
        torch.testing.assert_close(single.get_buffer(name).to(buffer.dtype), buffer, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch", [2, 37, 64, 130])
@pytest.mark.parametrize(("block", "size"), [("11", 8), ("11", 7), ("12", 4), ("15", 3)])
def test_float32_block_is_the_float64_block(block: str, size: int, batch: int) -> None:
    """Norm, ReLU6, filter, norm, ReLU6: too shallow for a flipped kink to spread, so the bound is tight."""
    exact = make_tail().train()
    single = copy.deepcopy(exact).float()
    outcomes = []
    for tail, dtype in ((exact, torch.float64), (single, torch.float32)):
        parts = tail._blocks[block]
        norms, conv = (parts._bn0, parts._bn1), parts._depthwise_conv
        leaf = random_tensor(conv.in_channels, size * size, batch).float().to(dtype).requires_grad_()
        y = separable(leaf, norms[0], conv, norms[1], size, size)
        y.backward(random_tensor(*y.shape, seed=2).float().to(dtype))
        learnt = (conv.weight, *(value for norm in norms for value in (norm.weight, norm.bias)))
        kept = [value for norm in norms for value in (norm.running_mean, norm.running_var)]
        outcomes.append([y.detach(), leaf.grad, *(value.grad for value in learnt), *kept])
    for theirs, ours in zip(*outcomes, strict=True):
        assert (ours.double() - theirs).norm() <= 3e-3 * theirs.norm()

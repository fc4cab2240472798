"""Networks are cut where their last stage or block begins, whatever their modules are called."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from gcdbench.models.cutting import Call, last_stage, learns, record, unbroken
from gcdbench.models.halves import FirstHalf, SecondHalf

IMAGE = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def conv(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, stride, 1)


class Residual(nn.Module):
    """Plain code between its modules: nothing inside it can be cut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.short, self.long = conv(inputs, outputs, stride), conv(inputs, outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.long(x) + self.short(x), inplace=True)


class Staged(nn.Module):
    """Three stages in one container, the second and third of which halve the map; a convolution and ReLU in place."""

    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.Sequential(
            nn.Sequential(conv(3, 4, 2), nn.ReLU(inplace=True)),
            nn.Sequential(Residual(4, 6, 2), Residual(6, 6, 1)),
            nn.Sequential(Residual(6, 8, 2), Residual(8, 8, 1)),
        )
        self.last = conv(8, 9)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.last(self.stages(x)))


class Attention(nn.Module):
    """A block that is told a table beside its tokens."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.mix = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x: Tensor, table: Tensor, *, causal: bool = False) -> Tensor:
        return x + table + self.mix(self.norm(x))


class Tokens(nn.Module):
    """Blocks of one size after patches; the table of positions depends on the number of tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 6, 8, 8)
        self.blocks = nn.ModuleList(Attention(6) for _ in range(3))
        self.norm = nn.LayerNorm(6)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        table = torch.linspace(0, 1, tokens.shape[1])[None, :, None]
        for block in self.blocks:
            tokens = block(tokens, table, causal=False)
        return self.norm(tokens)


class Interrupted(nn.Module):
    """Plain code after the last module."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = conv(3, 4, 2), conv(4, 5, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.two(self.one(x)) * 2


class ChangedInPlace(Interrupted):
    """The same tensor comes out of one module and goes into the next, but it has been changed in between."""

    def forward(self, x: Tensor) -> Tensor:
        x = self.one(x)
        x.mul_(2)
        return self.two(x)


def halves(network: nn.Module) -> tuple[list[Call], FirstHalf, SecondHalf]:
    network.eval()
    _, chain = last_stage(network, network, IMAGE)
    return chain, FirstHalf(network, "forward", chain), SecondHalf(chain)


@pytest.mark.parametrize(
    ("network", "begins", "names"),
    [
        (Staged, "stages.2", {"stages.2", "last", "act"}),
        (Tokens, "blocks.2", {"blocks.2", "norm"}),
        (ChangedInPlace, "two", {"two"}),
    ],
)
def test_the_last_stage_is_found_and_both_halves_are_the_whole(
    network: type[nn.Module], begins: str, names: set[str]
) -> None:
    torch.manual_seed(0)
    whole = network()
    chain, first, second = halves(whole)
    assert chain[0].path == begins
    assert {call.path for call in chain} == names
    other = torch.randn(3, 3, 32, 32)
    torch.testing.assert_close(second(first(other)), whole(other))


def test_the_halves_share_no_parameter_and_keep_their_names() -> None:
    whole = Staged()
    _, first, second = halves(whole)
    assert set(second.state_dict()) == {
        key for key in whole.state_dict() if key.startswith(("stages.2.", "last.", "act."))
    }
    ours = {name.removeprefix("network.") for name in first.state_dict()}
    assert ours == set(whole.state_dict()) - set(second.state_dict())
    assert not {id(p) for p in first.parameters()} & {id(p) for p in second.parameters()}


def test_what_a_block_is_told_beside_its_input_is_kept_and_called_bound_to_the_size() -> None:
    chain, _, second = halves(Tokens())
    assert [call.bound_to_size for call in chain] == [True, False]
    assert len(dict(second.named_buffers())) == 1
    assert not any("table" in key for key in second.state_dict())


def test_plain_code_at_the_end_leaves_nothing_to_cut() -> None:
    result, chain = last_stage(Interrupted(), Interrupted(), IMAGE)
    assert isinstance(result, Tensor)
    assert chain == []
    assert not learns(chain)


def test_a_tensor_that_was_changed_in_place_breaks_the_chain() -> None:
    network = ChangedInPlace()
    calls, result = record(network, network, IMAGE)
    assert [call.path for call in unbroken(calls, result)] == ["two"]


def test_hooks_are_gone_afterwards() -> None:
    network = Staged()
    last_stage(network, network, IMAGE)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in network.modules())


def test_a_pool_at_the_end_is_no_stage() -> None:
    """A stage has to have something to train: the convolutions before the pool go with it."""
    network = nn.Sequential(conv(3, 4, 2), nn.ReLU(), conv(4, 5, 2), nn.ReLU(), conv(5, 5), nn.MaxPool2d(2))
    chain, first, second = halves(network)
    assert chain[0].path == "2"
    torch.testing.assert_close(second(first(IMAGE)), network(IMAGE))

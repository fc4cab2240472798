"""Matrix products by either of torch's libraries: the same numbers and gradients, chosen by measurement or by wish."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from gcdbench.core.errors import ConfigError
from gcdbench.models import products
from gcdbench.models.short_cuts import plain_paths

needs_onednn = pytest.mark.skipif(not products._onednn_works(), reason="this torch has no oneDNN products")


@pytest.fixture(params=["blas", pytest.param("onednn", marks=needs_onednn)])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """One library after the other, whatever is faster here."""
    monkeypatch.setenv(products.VARIABLE, request.param)
    monkeypatch.setattr(products, "SMALLEST", 1)
    products.product_library.cache_clear()
    assert products.product_library() == request.param
    yield request.param
    products.product_library.cache_clear()


def arrange(matrix: Tensor, order: str) -> Tensor:
    """The same numbers, lying in memory row by row, column by column, or with gaps."""
    if order == "columns":
        return matrix.mT.contiguous().mT
    if order == "gaps":
        return torch.stack([matrix, torch.full_like(matrix, torch.nan)], dim=-1)[..., 0]
    return matrix


def draw(*size: int, seed: int) -> Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed))


def assert_equals_float64(found: Tensor, left: Tensor, right: Tensor) -> None:
    """Within the bound for sums of k float32 products: k · eps · |left| · |right|, in numpy's double precision."""
    exact = np.matmul(left.detach().double().numpy(), right.detach().double().numpy())
    scale = np.matmul(left.detach().double().abs().numpy(), right.detach().double().abs().numpy())
    bound = (left.shape[-1] + 2) * np.finfo(np.float32).eps * scale + 1e-30
    assert found.dtype == torch.float32
    assert found.shape == exact.shape
    assert (np.abs(found.detach().double().numpy() - exact) <= bound).all()


ORDERS = ("rows", "columns", "gaps")


@pytest.mark.parametrize("batch", [(), (1,), (5,)])
@pytest.mark.parametrize("size", [(1, 1, 1), (3, 4, 2), (65, 33, 17), (7, 1, 9), (128, 257, 64)])
@pytest.mark.parametrize("orders", [(one, other) for one in ORDERS for other in ORDERS])
@pytest.mark.usefixtures("library")
def test_products_and_gradients(batch: tuple[int, ...], size: tuple[int, int, int], orders: tuple[str, str]) -> None:
    rows, terms, columns = size
    left = arrange(draw(*batch, rows, terms, seed=1), orders[0]).requires_grad_()
    right = arrange(draw(*batch, terms, columns, seed=2), orders[1]).requires_grad_()
    towards = draw(*batch, rows, columns, seed=3)
    found = products.product(left, right)
    assert_equals_float64(found, left, right)
    to_left, to_right = torch.autograd.grad(found, (left, right), towards)
    assert_equals_float64(to_left, towards, right.mT)
    assert_equals_float64(to_right, left.mT, towards)


@pytest.mark.usefixtures("library")
def test_a_gradient_that_is_one_number_repeated() -> None:
    left, right = draw(6, 5, seed=1).requires_grad_(), draw(5, 4, seed=2).requires_grad_()
    products.product(left, right).sum().backward()
    assert left.grad is not None
    assert right.grad is not None
    assert_equals_float64(left.grad, torch.ones(6, 4), right.mT)
    assert_equals_float64(right.grad, left.mT, torch.ones(6, 4))


@pytest.mark.usefixtures("library")
def test_one_matrix_repeated_gets_the_sum_of_its_gradients() -> None:
    left, right = draw(3, 4, seed=1).requires_grad_(), draw(5, 4, 2, seed=2)
    towards = draw(5, 3, 2, seed=3)
    products.product(left.expand(5, -1, -1), right).backward(towards)
    exact = torch.einsum("brc,btc->rt", towards.double(), right.double())
    torch.testing.assert_close(left.grad, exact.float(), rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("library")
def test_second_derivatives() -> None:
    """Of Σ (l · r)²: the gradient of its gradient's sum, in float64 by torch alone."""

    def second(left: Tensor, right: Tensor, multiply: products.Multiply) -> Tensor:
        (first,) = torch.autograd.grad(multiply(left, right).square().sum(), left, create_graph=True)
        return torch.autograd.grad(first.sum(), right)[0]

    left, right = draw(6, 5, seed=1), draw(5, 4, seed=2)
    ours = second(left.requires_grad_(), right.requires_grad_(), products.product)
    exact = second(left.detach().double().requires_grad_(), right.detach().double().requires_grad_(), torch.matmul)
    torch.testing.assert_close(ours.double(), exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.usefixtures("library")
def test_linear_layers(bias: bool, order: str) -> None:
    x, weight = arrange(draw(9, 6, seed=1), order).requires_grad_(), draw(4, 6, seed=2).requires_grad_()
    offset = draw(4, seed=3).requires_grad_() if bias else None
    towards = draw(9, 4, seed=4)
    sources = [x, weight, *([offset] if offset is not None else [])]
    found = products.linear(x, weight, offset)
    doubles = [source.detach().double().requires_grad_() for source in sources]
    exact = torch.nn.functional.linear(*doubles)
    pairs = [(found, exact)]
    pairs += zip(
        torch.autograd.grad(found, sources, towards),
        torch.autograd.grad(exact, doubles, towards.double()),
        strict=True,
    )
    for ours, theirs in pairs:
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("size", [(6,), (9, 6), (2, 5, 6), (2, 3, 4, 6)])
@pytest.mark.usefixtures("library")
def test_layers_of_a_network_keep_their_parameters_values_and_gradients(size: tuple[int, ...], bias: bool) -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(6, 4, bias=bias), nn.GELU(), nn.Linear(4, 3))
    exact = copy.deepcopy(network).double()
    before = dict(network.named_parameters())
    products.speed_up_linear_layers(network)
    assert all(value is before[name] for name, value in network.named_parameters())
    x = draw(*size, seed=1)
    ours, theirs = network(x.mT.contiguous().mT if len(size) > 1 else x), exact(x.double())
    torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=1e-5)
    towards = draw(*ours.shape, seed=2)
    ours.backward(towards)
    theirs.backward(towards.double())
    for mine, other in zip(network.parameters(), exact.parameters(), strict=True):
        assert mine.grad is not None
        assert other.grad is not None
        torch.testing.assert_close(mine.grad.double(), other.grad, rtol=1e-5, atol=1e-5)


def test_only_plain_layers_are_replaced() -> None:
    class Own(nn.Linear):
        """Somebody's own layer, which may do something else."""

    network = nn.Sequential(nn.Linear(2, 2), Own(2, 2), nn.MultiheadAttention(2, 1))
    products.speed_up_linear_layers(network)
    kinds = [type(module) for module in network.modules() if isinstance(module, nn.Linear)]
    assert kinds[:2] == [products.FastLinear, Own]
    assert products.FastLinear not in kinds[2:]


def test_what_made_stored_features_is_known(library: str) -> None:
    network, said = nn.Sequential(nn.Linear(2, 2)), "" if library == "blas" else library
    assert products.products_key(network, trained_stage=False) == ""
    assert products.products_key(network, trained_stage=True) == said
    products.speed_up_linear_layers(network)
    assert products.products_key(network, trained_stage=False) == said


@needs_onednn
@pytest.mark.parametrize("size", [(192, 768), (768, 192), (384, 384)])
def test_a_row_has_the_same_bits_whatever_is_computed_with_it(size: tuple[int, int]) -> None:
    """A view's features must not depend on the views that share its chunk."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        left, right, bias = draw(1000, size[0], seed=1), draw(*size[::-1], seed=2).t(), draw(size[1], seed=3)
        whole = products.onednn_multiply(left, right, bias)
        for first, last in ((0, 50), (50, 350), (350, 1000), (123, 456)):
            assert torch.equal(products.onednn_multiply(left[first:last], right, bias), whole[first:last])
    finally:
        torch.set_num_threads(threads)


@needs_onednn
@settings(max_examples=40, deadline=None)
@given(size=st.tuples(*[st.integers(1, 40)] * 3), seed=st.integers(0, 2**31))
def test_onednn_agrees_at_any_size(size: tuple[int, int, int], seed: int) -> None:
    rows, terms, columns = size
    left, right = draw(rows, terms, seed=seed), draw(terms, columns, seed=seed + 1)
    assert_equals_float64(products.onednn_multiply(left, right), left, right)


@needs_onednn
@pytest.mark.parametrize("what", ["plain", "float64"])
def test_torch_multiplies_where_the_short_cut_does_not_serve(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(products.VARIABLE, "onednn")
    products.product_library.cache_clear()
    monkeypatch.setattr(products, "onednn_multiply", lambda *_: pytest.fail("the short cut was taken"))
    left, right = torch.ones(8, 8), torch.ones(8, 8)
    if what == "float64":
        left, right = left.double(), right.double()
        torch.testing.assert_close(products.product(left, right), 8 * torch.ones_like(left))
    else:
        with plain_paths():
            torch.testing.assert_close(products.linear(left, right), 8 * torch.ones_like(left))
    products.product_library.cache_clear()


@pytest.fixture
def choose(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[float], str]]:
    """What a new process chooses, with a cache of its own, if it measures that gain."""
    monkeypatch.delenv(products.VARIABLE, raising=False)
    monkeypatch.setenv("GCDBENCH_CACHE", str(tmp_path))
    monkeypatch.setattr(products, "_onednn_works", lambda: True)

    def choice(gain: float) -> str:
        monkeypatch.setattr(products, "measure_gain", lambda: gain)
        products.product_library.cache_clear()
        return products.product_library()

    yield choice
    products.product_library.cache_clear()


@pytest.mark.parametrize(("gain", "expected"), [(0.9, "blas"), (1.29, "blas"), (1.31, "onednn"), (2.5, "onednn")])
def test_the_faster_library_is_taken_where_it_is_clearly_faster(
    gain: float, expected: str, choose: Callable[[float], str]
) -> None:
    assert choose(gain) == expected


def test_all_processes_on_a_machine_choose_alike(choose: Callable[[float], str], tmp_path: Path) -> None:
    assert [choose(1.31), choose(1.29), choose(0.5)] == ["onednn"] * 3
    [memory] = (tmp_path / "speed").iterdir()
    memory.write_bytes(memory.read_bytes()[:-3])
    assert [choose(1.29), choose(1.31)] == ["blas"] * 2


def test_without_a_cache_to_write_to_each_process_measures(choose: Callable[[float], str], tmp_path: Path) -> None:
    (tmp_path / "speed").write_text("a file where a folder should be")
    assert [choose(1.31), choose(1.29)] == ["onednn", "blas"]


def test_a_torch_without_the_operator_uses_its_blas_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Tensor) -> Tensor:
        raise AttributeError("no operator of that name")

    monkeypatch.setenv(products.VARIABLE, "onednn")
    monkeypatch.setattr(products, "onednn_multiply", missing)
    products.product_library.cache_clear()
    assert products.product_library() == "blas"
    products.product_library.cache_clear()


@needs_onednn
def test_an_unknown_library_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(products.VARIABLE, "openblas")
    products.product_library.cache_clear()
    with pytest.raises(ConfigError, match="'openblas'"):
        products.product_library()
    products.product_library.cache_clear()


@needs_onednn
def test_measuring_leaves_the_threads_alone() -> None:
    before = torch.get_num_threads()
    assert products.measure_gain() > 0
    assert torch.get_num_threads() == before

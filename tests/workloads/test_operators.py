"""Operators that are not one kernel on all of their operands."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from required import needed

torch = needed("torch")

from captured import Launch, capture, events_of, launches  # noqa: E402
from deepum._core import lib  # noqa: E402
from torch.nn import functional  # noqa: E402

from deepum.core import Execute  # noqa: E402
from deepum.trace import Trace, work  # noqa: E402

SPARSE: int = lib.DEEPUM_EXECUTE_SPARSE
COPY: int = lib.DEEPUM_EXECUTE_COPY
MIB = 1 << 20
REGION = 1 << 16


def flops(make: Callable[[str], Callable[[], object]]) -> float:
    """As the trace has them, over all launches."""
    return sum(one.work.flops for one in launches(capture(make).trace))


def products(make: Callable[[str], Callable[[], object]]) -> float:
    """Those of matrix products and convolutions, which are cut into tiles; a model's first values
    cost FLOPs, too.
    """
    return sum(one.work.flops for one in launches(capture(make).trace) if one.work.tiles)


def is_sparse(launch: Launch) -> bool:
    """Marked as a gather or scatter."""
    return bool(launch.event.flags & SPARSE)


MODELS: dict[str, Callable[[str], tuple[Any, Any]]] = {
    "products": lambda d: (torch.nn.Linear(256, 512, device=d), torch.zeros(384, 256, device=d)),
    "convolutions": lambda d: (
        torch.nn.Sequential(
            torch.nn.Conv2d(128, 256, 3, 2, 1, device=d),
            torch.nn.ConvTranspose2d(256, 128, 4, 2, 1, device=d),
        ),
        torch.zeros(8, 128, 32, 32, device=d, requires_grad=True),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_products_of_whole_tiles_cost_what_pytorch_counts(name: str) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    def make(device: str) -> Callable[[], object]:
        model, x = MODELS[name](device)
        return lambda: model(x).sum().backward()

    counter = FlopCounterMode(display=False)
    with counter:
        make("meta")()
    assert products(make) == counter.get_total_flops()


def test_convolutions_by_groups_cost_a_product_a_group() -> None:
    def make(device: str) -> Callable[[], object]:
        model = torch.nn.Conv2d(512, 512, 3, 1, 1, groups=4, device=device)
        x = torch.zeros(8, 512, 16, 16, device=device, requires_grad=True)
        return lambda: model(x).sum().backward()

    assert products(make) == 3 * 2.0 * (8 * 16 * 16) * 512 * (512 // 4) * 9, (
        "forward, gradient of the input, of the weight"
    )


def test_random_numbers_and_norms_cost_what_they_do_on_the_simulated_gpu() -> None:
    n = 2 * 8 * 16 * 16
    assert flops(lambda device: lambda: torch.randn(n, device=device)) == 25 * n
    assert flops(lambda device: lambda: torch.zeros(n, device=device).uniform_()) == 25 * n
    made = launches(capture(lambda device: lambda: torch.randint(9, (n,), device=device)).trace)
    assert [one.sizes for one in made] == [[("w", 8 * n)]]

    def normed(device: str) -> Callable[[], object]:
        norm, x = torch.nn.BatchNorm2d(8, device=device), torch.zeros(2, 8, 16, 16, device=device)
        return lambda: norm(x)

    assert flops(normed) == (5 + 4) * n


def attention(
    device: str, dtype: Any, causal: bool = False, mask: bool = False
) -> Callable[[], object]:
    """Scaled dot products of 4 heads, 512 long, 64 deep, forward and backward."""
    x = torch.zeros(2, 4, 512, 64, device=device, dtype=dtype, requires_grad=True)
    bias = torch.zeros(512, 512, device=device, dtype=torch.bool) if mask else None
    return lambda: (
        functional.scaled_dot_product_attention(x, x, x, bias, is_causal=causal).sum().backward()
    )


PRODUCT = 2.0 * 2 * 4 * 512 * 512 * 64


@pytest.mark.parametrize(("causal", "part"), [(False, 1.0), (True, 0.5)])
def test_attention_is_fused(causal: bool, part: float) -> None:
    for dtype in (torch.float32, torch.bfloat16):
        assert flops(partial(attention, dtype=dtype, causal=causal)) == 7 * PRODUCT * part
    found = launches(capture(lambda device: attention(device, torch.float32, mask=True)).trace)
    assert sum(one.work.flops for one in found) == 7 * PRODUCT
    assert max(size for one in found for _, size in one.sizes) <= 2 * 4 * 512 * 512 * 4


def test_matrix_units_serve_half_precision() -> None:
    def product(dtype: Any) -> list[Launch]:
        def make(device: str) -> Callable[[], object]:
            x = torch.zeros(512, 512, device=device, dtype=dtype)
            return lambda: x @ x

        return [one for one in launches(capture(make).trace) if one.work.flops]

    for dtype, units in ((torch.float32, False), (torch.float16, True), (torch.bfloat16, True)):
        (launch,) = product(dtype)
        assert bool(launch.work.flags & work.MATRIX_UNITS) == units
        assert launch.work.flops == 2 * 512**3
        assert launch.work.tiles >= 16


def lookups(device: str, sparse: bool, rows: int = 200_000) -> Callable[[], object]:
    """A table of 64 MiB or so, looked up, and its gradient applied."""
    table = torch.nn.EmbeddingBag(rows, 64, mode="sum", sparse=sparse, device=device)
    optimizer = torch.optim.SGD(table.parameters(), lr=0.1)

    def step() -> None:
        table(torch.randint(rows, (64, 4), device=device)).sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def places(launch: Launch, table: int) -> set[tuple[int, int]]:
    """Regions of the table's slot that it touches in pieces."""
    return {
        (access.slot, access.offset // REGION) for access in launch.places if access.slot == table
    }


def test_lookups_touch_the_rows_that_indices_pick_and_updates_the_same() -> None:
    trace = capture(lambda device: lookups(device, True), steps=3, differs=True).trace
    made = launches(trace)
    table = made[0].places[-1].slot
    gathers = [
        one for one in made if is_sparse(one) and any(access.slot == table for access in one.places)
    ]
    assert not any(one.event.flags & COPY and one.event.read for one in made), (
        "autograd takes the gradient over"
    )
    assert len(gathers) == 6, "a lookup and an update a step"
    for gather in gathers:
        touched = sum(access.bytes for access in gather.places if access.slot == table)
        assert 0 < touched <= 256 * 64 * 4
        assert 100 < len(places(gather, table)) <= 256
    for lookup, update in zip(gathers[::2], gathers[1::2], strict=True):
        assert places(lookup, table) == places(update, table)
    assert places(gathers[0], table) != places(gathers[2], table) != places(gathers[4], table)


def test_a_dense_gradient_is_as_large_as_its_table() -> None:
    made = launches(capture(lambda device: lookups(device, False)).trace)
    whole = 200_000 * 64 * 4
    assert any(one.sizes == [("w", whole)] for one in made[1:]), "zeros first"
    assert any(("r", whole) in one.sizes for one in made), "and all of it is applied"


def test_other_seeds_draw_other_rows_and_equal_ones_the_same() -> None:
    def trace(seed: int) -> Trace:
        return capture(lambda device: lookups(device, True), steps=2, differs=True, seed=seed).trace

    assert trace(1) == trace(1)
    assert trace(1).events == trace(2).events
    assert trace(1).work != trace(2).work


GATHERS: dict[str, Callable[[Any, Any], object]] = {
    "embedding": lambda table, index: functional.embedding(index, table),
    "index_select": lambda table, index: table.index_select(0, index),
    "index": lambda table, index: table[index],
    "index_put": lambda table, index: table.index_put_(
        (index,), torch.zeros(len(index), 64, device=table.device)
    ),
    "index_add": lambda table, index: table.index_add_(
        0, index, torch.zeros(len(index), 64, device=table.device)
    ),
}


@pytest.mark.parametrize("name", GATHERS)
def test_gathers_and_scatters_are_marked_and_touch_few_places(name: str) -> None:
    def make(device: str) -> Callable[[], object]:
        table = torch.zeros(100_000, 64, device=device)
        return lambda: GATHERS[name](table, torch.randint(100_000, (20,), device=device))

    trace = capture(make).trace
    (gather,) = [one for one in launches(trace) if is_sparse(one)]
    (table,) = [access.slot for access in launches(trace)[0].places]
    assert 0 < sum(access.bytes for access in gather.places if access.slot == table) <= 20 * 64 * 4
    assert any(
        event.flags & SPARSE for event in events_of(trace, "execute") if isinstance(event, Execute)
    )


def test_an_lstm_cell_is_two_products_and_one_kernel() -> None:
    def make(device: str) -> Callable[[], object]:
        cell = torch.nn.LSTMCell(128, 128, device=device)
        x, state = (
            torch.zeros(128, 128, device=device),
            (torch.zeros(128, 128, device=device), torch.zeros(128, 128, device=device)),
        )

        def step() -> None:
            with torch.no_grad():
                cell(x, state)

        return step

    built = 4 + 3
    made = launches(capture(make).trace)[built:]
    assert [bool(one.work.flops) for one in made] == [True, True, False]


def test_dropout_is_one_kernel_with_a_mask_of_bytes() -> None:
    def make(device: str) -> Callable[[], object]:
        x = torch.zeros(512, 512, device=device)
        return lambda: functional.dropout(x, 0.1, True)

    assert launches(capture(make).trace)[-1].sizes == [("r", MIB), ("w", MIB), ("w", MIB // 4)]


def test_optimizers_work_on_lists() -> None:
    def make(device: str) -> Callable[[], object]:
        weights = [torch.zeros(256, 256, device=device, requires_grad=True) for _ in range(300)]
        optimizer = torch.optim.AdamW(weights, foreach=True)

        def step() -> None:
            for weight in weights:
                weight.grad = torch.zeros(256, 256, device=device)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

        return step

    made = launches(capture(make, steps=3).trace)
    last = [index for index, one in enumerate(made) if one.work.flags & work.ENDS_STEP]
    step = made[last[1] + 1 : last[2] + 1]
    lists = [one for one in step if len(one.sizes) > 1]
    assert 8 <= len(lists) <= 12, "300 weights, a handful of launches"
    assert max(len(one.sizes) for one in lists) == 900


def test_a_cache_is_written_and_read_where_its_rows_are() -> None:
    batches, heads, room, depth, at = 2, 3, 2048, 64, 512

    def make(device: str) -> Callable[[], object]:
        keys = torch.zeros(batches, heads, room, depth, device=device)
        row = torch.zeros(batches, heads, 1, depth, device=device)

        def step() -> object:
            keys[:, :, at : at + 1].copy_(row)
            return keys[:, :, : at + 1].sum()

        return step

    *_, copy, total = (
        one for one in launches(capture(make).trace) if len(one.work.accesses) > batches * heads
    )
    matrix, width = room * depth * 4, depth * 4
    read = [
        (access.offset, access.bytes) for access in total.work.accesses if access.flags == work.READ
    ]
    begin = read[0][0]
    assert read == [(begin + head * matrix, (at + 1) * width) for head in range(batches * heads)]
    written = [
        (access.offset, access.bytes) for access in copy.work.accesses if access.flags == work.WRITE
    ]
    assert written == [
        (begin + head * matrix + at * width, width) for head in range(batches * heads)
    ]

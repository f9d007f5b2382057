"""What a call of an operator only reads: its tensors, without what it changes."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import pytest
from checking import memory, read_by, torch, watched
from hypothesis import given
from hypothesis import strategies as st

from deepum.declarations import reads
from deepum.declarations.reads import ReadingOperator, only_read

pytestmark = pytest.mark.torch
aten: Any = torch.ops.aten
functional: Any = torch.nn.functional
nn: Any = torch.nn


def tensors(count: int, size: int = 64) -> list[Any]:
    return [torch.randn(size) for _ in range(count)]


def test_what_is_changed_in_place_is_not_only_read() -> None:
    x, y = tensors(2)
    assert read_by(aten.add.Tensor, x, y) == memory(x, y)
    assert read_by(aten.add_.Tensor, x, y) == memory(y)
    assert read_by(aten.add_.Tensor, x, x) == []


def test_an_out_argument_is_not_only_read() -> None:
    x, y, z = tensors(3)
    assert read_by(aten.mul.out, x, y, out=z) == memory(x, y)
    assert read_by(aten.mul.out, x, y, out=x) == memory(y)


def test_a_storage_that_is_read_through_one_view_and_changed_through_another() -> None:
    base, other = tensors(2)
    assert read_by(aten.add_.Tensor, base[:32], base[32:]) == []
    assert read_by(aten.copy_.default, base[:32], other[32:]) == memory(other)


def test_storages_that_share_memory() -> None:
    base, other = torch.zeros(64), torch.zeros(64)
    shared = torch.from_dlpack(base[16:32])
    assert shared.untyped_storage()._cdata != base.untyped_storage()._cdata
    assert read_by(aten.add_.Tensor, shared, base[:16]) == []
    assert read_by(aten.add_.Tensor, base[:16], shared) == []
    assert read_by(aten._foreach_add_.List, [shared], [other]) == memory(other)


def test_lists_of_tensors() -> None:
    x, y, z = tensors(3)
    assert read_by(aten.cat.default, [x, y, z]) == memory(x, y, z)
    assert read_by(aten._foreach_add_.List, [x, y], [z, z]) == memory(z)
    assert read_by(aten._foreach_addcmul_.Scalar, [x], [y], [z]) == memory(y, z)
    indices = torch.tensor([1, 2])
    assert read_by(aten.index_put_.default, x, [indices], y[:2]) == memory(indices, y)
    assert read_by(aten.index.Tensor, x.view(8, 8), [None, indices]) == memory(x, indices)


def test_a_fused_optimizer_changes_all_that_it_is_given_in_place() -> None:
    parameter, grad, first, second = tensors(4)
    step = torch.ones(())
    rates = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.0, "eps": 1e-8}
    lists: Any = ([parameter], [grad], [first], [second], [])
    read = read_by(
        aten._fused_adam_.default, *lists, [step], **rates, amsgrad=False, maximize=False
    )
    assert read == memory(step)
    found = torch.zeros(())
    read = read_by(
        *(aten._fused_adam_.default, *lists, [step]),
        **{**rates, "amsgrad": False, "maximize": False, "found_inf": found},
    )
    assert read == memory(step, found)


def test_running_statistics_of_a_batch_norm_are_changed_in_training_alone() -> None:
    x, weight, bias, mean, variance = torch.randn(4, 8, 2), *tensors(4, 8)
    call = (x, weight, bias, mean, variance)
    assert read_by(aten.native_batch_norm.default, *call, True, 0.1, 1e-5) == memory(
        x, weight, bias
    )
    assert read_by(aten.native_batch_norm.default, *call, False, 0.1, 1e-5) == memory(*call)


def test_small_tensors_and_those_of_other_devices_are_left_out() -> None:
    x, y = torch.zeros(16), torch.zeros(17)
    assert only_read(
        ReadingOperator(aten.add.Tensor), (x, y), {}, "cpu", y.untyped_storage().nbytes()
    ) == array("Q", memory(y)[0])
    assert not only_read(ReadingOperator(aten.add.Tensor), (x, y), {}, "cuda", 1)


def test_without_the_memory_of_what_is_changed_nothing_is_only_read() -> None:
    x = torch.eye(8)
    sparse = torch.eye(8).to_sparse()
    assert read_by(aten.add.Tensor, x, sparse) == memory(x)
    assert read_by(aten.add_.Tensor, sparse, sparse) == []
    assert read_by(aten.copy_.default, sparse, x) == []


def test_operators_that_change_what_nothing_says_declare_nothing() -> None:
    for function in (
        aten._cudnn_rnn.default,
        aten._cudnn_rnn_backward.default,
        aten.batch_norm_gather_stats.default,
        aten.view.default,
    ):
        assert not ReadingOperator(function).declares
    library = torch.library.Library("deepum_test", "DEF")
    library.define("change(Tensor x) -> ()")
    assert not ReadingOperator(torch.ops.deepum_test.change.default).declares
    assert ReadingOperator(aten.mm.default).declares


Ranges = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 12)).map(lambda one: (one[0], sum(one))),
    max_size=8,
)


@given(Ranges, Ranges)
def test_what_shares_no_byte_with_what_is_changed(
    read: list[tuple[int, int]], changed: list[tuple[int, int]]
) -> None:
    taken = {byte for begin, end in changed for byte in range(begin, end)}
    expected = [one for one in sorted(read) if taken.isdisjoint(range(*one))]
    assert reads._apart(sorted(read), sorted(changed)) == expected


def _trains(
    build: Callable[[], Any], inputs: Callable[[], Any], optimizer: Callable[[Any], Any]
) -> Callable[[], None]:
    def program() -> None:
        model = build()
        chosen = optimizer(model.parameters())
        for _ in range(2):
            chosen.zero_grad()
            result = model(inputs())
            result = result[0] if isinstance(result, tuple) else result
            result.float().square().mean().backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            chosen.step()

    return program


def _layers() -> Any:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.InstanceNorm2d(8, track_running_stats=True),
        nn.Dropout(0.5),
        nn.Flatten(),
        nn.LazyLinear(16),
        nn.LayerNorm(16),
        nn.GELU(),
    )


def _attention() -> Any:
    return nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)


def _embeds() -> Any:
    return nn.Sequential(nn.Embedding(50, 16, max_norm=1.0), nn.LSTM(16, 16, 2, dropout=0.1))


def _changes_in_place() -> None:
    x, y = torch.randn(8, 8), torch.randn(8, 8)
    index = torch.tensor([0, 3, 3])
    x[1:3] += y[2:4]
    x[index] = y[:3]
    x.index_add_(0, index, y[:3]).index_fill_(1, index, 0.5)
    x.scatter_(0, torch.zeros(1, 8, dtype=torch.long), y).scatter_add_(
        0, torch.ones(1, 8).long(), y
    )
    x.masked_fill_(y > 0, 0).masked_scatter_(y < 0, y)
    x.index_put_((index, index), y[0, :3], accumulate=True)
    torch.add(x, y, out=y)
    torch.sort(x, out=(y, torch.empty(8, 8, dtype=torch.long)))
    x.copy_(y.t()).add_(y.to(torch.float64)).clamp_(-1, 1).bernoulli_(0.5)
    x.put_(index, y[0, :3]), torch.nn.init.orthogonal_(x), x.resize_(4, 4), x.set_(y)
    values = torch.arange(8.0)
    torch.cumsum(values, 0, out=values), values.lerp_(values.flip(0), 0.5)


PROGRAMS = {
    "convolutions": _trains(
        _layers, lambda: torch.randn(4, 3, 10, 10), lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)
    ),
    "attention, foreach": _trains(
        _attention, lambda: torch.randn(2, 6, 16), lambda p: torch.optim.AdamW(p, foreach=True)
    ),
    "attention, fused": _trains(
        _attention, lambda: torch.randn(2, 6, 16), lambda p: torch.optim.Adam(p, fused=True)
    ),
    "recurrent": _trains(_embeds, lambda: torch.randint(0, 50, (5, 2)), torch.optim.Adagrad),
    "RMSprop": _trains(
        lambda: nn.Linear(8, 8),
        lambda: torch.randn(4, 8),
        lambda p: torch.optim.RMSprop(p, momentum=0.5, centered=True),
    ),
    "in place": _changes_in_place,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_operator_changes_what_it_only_reads(name: str) -> None:
    watch = watched(PROGRAMS[name])
    assert watch.changed == []
    assert sum(bool(ranges) for _, ranges in watch.declared) > len(watch.declared) / 4


def test_an_operator_that_changed_what_it_only_reads_would_be_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reads, "_apart", lambda read, changed: sorted({*read, *changed}))
    for program in PROGRAMS.values():
        assert watched(program).changed
